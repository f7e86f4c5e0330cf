#include <algorithm>
#include <utility>

#include "gpu/driver/runtime.h"

namespace kvscope::driver {

Stream* Runtime::find_stream(void* handle) {
  // 0: the default stream; 1 and 2: cudaStreamLegacy and cudaStreamPerThread.
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number <= 1) return &legacy_stream;
  if (number == 2) return &per_thread_streams[std::this_thread::get_id()];
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

bool Runtime::is_in_capture(const Graph& graph) {
  const auto records = [&](const Stream& stream) { return stream.capture == &graph; };
  return std::any_of(streams.begin(), streams.end(), [&](const auto& one) { return records(*one.second); }) ||
         std::any_of(per_thread_streams.begin(), per_thread_streams.end(),
                     [&](const auto& one) { return records(one.second); });
}

void Runtime::end_capture(const Graph& graph) {
  const auto release = [&](Stream& stream) {
    if (stream.capture != &graph) return;
    stream.capture = nullptr;
    stream.origin = false;
  };
  for (auto& [handle, stream] : streams) release(*stream);
  for (auto& [thread, stream] : per_thread_streams) release(stream);
  for (auto& [handle, event] : events) {
    if (event->capture == &graph) event->capture = nullptr;
  }
}

// Of the nodes whose dependencies are done, the one that was created first.
GraphExec Runtime::instantiate(const Graph& graph) {
  GraphExec out;
  std::map<const GraphNode*, std::size_t> done;  // the step of each node
  while (done.size() < graph.nodes.size()) {
    const auto next = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) {
      return !done.contains(node.get()) &&
             std::all_of(node->after.begin(), node->after.end(), [&](const GraphNode* n) { return done.contains(n); });
    });
    if (next == graph.nodes.end()) return {};
    GraphExec::Step step{.node = next->get(), .type = (*next)->type, .after = {}, .work = (*next)->work};
    for (const GraphNode* const node : (*next)->after) step.after.push_back(done.at(node));
    std::sort(step.after.begin(), step.after.end());
    done.emplace(next->get(), out.steps.size());
    out.steps.push_back(std::move(step));
  }
  return out;
}

GraphNode* Runtime::find_node(const void* handle) {
  for (const auto& [key, graph] : graphs) {
    for (const auto& node : graph->nodes) {
      if (node.get() == handle) return node.get();
    }
  }
  return nullptr;
}

}  // namespace kvscope::driver
