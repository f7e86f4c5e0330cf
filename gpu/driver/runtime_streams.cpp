#include <algorithm>
#include <utility>

#include "gpu/driver/runtime.h"

namespace kvscope::driver {

Stream* Runtime::find_stream(void* handle) {
  // 0: the default stream; 1 and 2: cudaStreamLegacy and cudaStreamPerThread. Work is performed in the order of the calls, so one
  // object serves all three.
  if (reinterpret_cast<std::uintptr_t>(handle) <= 2) return &default_stream;
  const auto found = streams.find(handle);
  return found == streams.end() ? nullptr : found->second.get();
}

Status Runtime::issue(void* stream, NodeType type, std::function<Status()> work) {
  Stream* const to = find_stream(stream);
  if (to == nullptr) return kInvalidHandle;
  if (to->capture == nullptr) return work();
  auto node = std::make_unique<GraphNode>();
  node->graph = to->capture;
  node->type = type;
  if (!to->capture->nodes.empty()) node->after.push_back(to->capture->nodes.back().get());
  node->work = std::move(work);
  to->capture->nodes.push_back(std::move(node));
  return kSuccess;
}

// Of the nodes whose dependencies are done, the one that was created first.
GraphExec Runtime::instantiate(const Graph& graph) {
  GraphExec out;
  std::set<const GraphNode*> done;
  while (done.size() < graph.nodes.size()) {
    const auto next = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) {
      return !done.contains(node.get()) &&
             std::all_of(node->after.begin(), node->after.end(), [&](const GraphNode* n) { return done.contains(n); });
    });
    if (next == graph.nodes.end()) return {};  // the dependencies form a cycle
    done.insert(next->get());
    out.work.emplace_back(next->get(), (*next)->work);
  }
  return out;
}

}  // namespace kvscope::driver
