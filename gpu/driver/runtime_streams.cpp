#include <algorithm>
#include <utility>

#include "gpu/driver/runtime.h"

namespace kvscope::driver {
namespace {

constexpr unsigned kNonBlocking = 1;  // cudaStreamNonBlocking

bool waits_for_legacy(const Stream& stream) {
  return (stream.flags & kNonBlocking) == 0;
}

std::set<const GraphNode*> with_ancestors(const std::vector<GraphNode*>& nodes) {
  std::set<const GraphNode*> out;
  std::vector<const GraphNode*> open(nodes.begin(), nodes.end());
  while (!open.empty()) {
    const GraphNode* const node = open.back();
    open.pop_back();
    if (out.insert(node).second) open.insert(open.end(), node->after.begin(), node->after.end());
  }
  return out;
}

}  // namespace

int& thread_capture_mode() {
  thread_local int mode = kGlobalCapture;
  return mode;
}

Stream* Runtime::find_stream(void* handle) {
  // 0: the default stream, which is one of 1 and 2: cudaStreamLegacy and cudaStreamPerThread.
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == 1 || (number == 0 && !call.per_thread)) return &legacy_stream;
  if (number <= 2) {
    const auto [place, is_new] = per_thread_streams.try_emplace(std::this_thread::get_id());
    if (is_new) place->second.id = ++next_stream;
    return &place->second;
  }
  const auto found = streams.find(handle);
  return found == streams.end() ? nullptr : found->second.get();
}

std::vector<Stream*> Runtime::streams_in_capture() {
  std::vector<Stream*> out;
  const auto add = [&](Stream& stream) {
    if (stream.point.capture != nullptr) out.push_back(&stream);
  };
  for (auto& [handle, stream] : streams) add(*stream);
  for (auto& [thread, stream] : per_thread_streams) add(stream);
  return out;
}

template <class Forbids>
Status Runtime::invalidate(Status status, Forbids&& forbids) {
  Status out = kSuccess;
  for (const Stream* const stream : streams_in_capture()) {
    if (!forbids(*stream)) continue;
    stream->point.capture->invalid = true;
    out = status;
  }
  return out;
}

// The legacy stream waits for every stream that was not created with cudaStreamNonBlocking.
Status Runtime::use_stream(void* handle, Stream*& stream) {
  stream = find_stream(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream == &legacy_stream) return invalidate(kCaptureImplicit, waits_for_legacy);
  const std::shared_ptr<Capture>& capture = stream->point.capture;
  return capture != nullptr && capture->invalid ? kCaptureInvalidated : kSuccess;
}

Status Runtime::issue(void* handle, NodeType type, std::function<Status()> work) {
  Stream* stream = nullptr;
  if (const Status status = use_stream(handle, stream); status != kSuccess) return status;
  CapturePoint& point = stream->point;
  if (point.capture == nullptr) return work();
  Graph& graph = *point.capture->graph;
  graph.nodes.push_back(std::make_unique<GraphNode>(
      GraphNode{.graph = &graph, .type = type, .after = std::move(point.last), .work = std::move(work)}));
  point.last = {graph.nodes.back().get()};
  return kSuccess;
}

Status Runtime::synchronize(void* handle) {
  Stream* stream = nullptr;
  if (const Status status = use_stream(handle, stream); status != kSuccess) return status;
  return invalidate(kCaptureUnsupported, [&](const Stream& other) { return &other == stream; });
}

Status Runtime::synchronize_device() {
  return invalidate(kCaptureUnsupported, [](const Stream&) { return true; });
}

// CUDA Runtime API, cudaThreadExchangeStreamCaptureMode.
Status Runtime::check_unsafe() {
  const int mode = thread_capture_mode();
  return invalidate(kCaptureUnsupported, [&](const Stream& stream) {
    const Capture& capture = *stream.point.capture;
    if (mode == kRelaxedCapture) return false;
    if (capture.thread == std::this_thread::get_id()) return capture.mode != kRelaxedCapture;
    return mode == kGlobalCapture && capture.mode == kGlobalCapture;
  });
}

bool Runtime::is_in_capture(const Graph& graph) {
  const std::vector<Stream*> all = streams_in_capture();
  return std::any_of(all.begin(), all.end(), [&](const Stream* s) { return s->point.capture->graph == &graph; });
}

bool Runtime::has_blocking_capture() {
  const std::vector<Stream*> all = streams_in_capture();
  return std::any_of(all.begin(), all.end(), [](const Stream* s) { return waits_for_legacy(*s); });
}

Status Runtime::end_capture(Stream& origin, Graph*& graph) {
  const std::shared_ptr<Capture> capture = origin.point.capture;
  const std::set<const GraphNode*> joined = with_ancestors(origin.point.last);
  Status status = capture->invalid ? kCaptureInvalidated : kSuccess;
  for (Stream* const stream : streams_in_capture()) {
    if (stream->point.capture != capture) continue;
    const std::vector<GraphNode*>& last = stream->point.last;
    if (status == kSuccess && !std::all_of(last.begin(), last.end(), [&](auto* n) { return joined.contains(n); }))
      status = kCaptureUnjoined;
    stream->point = {};
    stream->origin = false;
  }
  for (auto& [handle, event] : events) {
    if (event->point.capture == capture) event->point = {};
  }
  graph = status == kSuccess ? capture->graph : nullptr;
  if (graph == nullptr) graphs.erase(capture->graph);
  return status;
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
