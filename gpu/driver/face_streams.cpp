// libcudart: streams, events, stream capture.
#include <algorithm>
#include <utility>

#include "gpu/driver/cuda_types.h"
#include "gpu/driver/face.h"

namespace kvscope::driver {
namespace {

constexpr unsigned kDisableTiming = 2;  // cudaEventDisableTiming
constexpr unsigned kWaitExternal = 1;   // cudaEventWaitExternal

Status make_stream(Runtime& r, void** out, unsigned flags, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->flags = flags;
  stream->priority = priority;
  stream->id = ++r.next_stream;
  *out = stream.get();
  r.streams.emplace(*out, std::move(stream));
  return kSuccess;
}

Event* find_event(Runtime& r, void* handle) {
  const auto found = r.events.find(handle);
  return found == r.events.end() ? nullptr : found->second.get();
}

Status make_event(Runtime& r, void** out, unsigned flags) {
  auto event = std::make_unique<Event>();
  event->flags = flags;
  *out = event.get();
  r.events.emplace(*out, std::move(event));
  return kSuccess;
}

Status record(Runtime& r, void* event, void* stream) {
  Event* const e = find_event(r, event);
  if (e == nullptr) return kInvalidHandle;
  Stream* s = nullptr;
  if (const Status status = r.use_stream(stream, s); status != kSuccess) return status;
  e->point = s->point;  // for cudaStreamWaitEvent
  if (s->point.capture != nullptr) return kSuccess;
  e->recorded = true;
  e->at = r.engine().warp_instructions();
  return kSuccess;
}

// For a call that asks whether the event has happened, which the capture of the event forbids.
Status state_of(const Event* event) {
  if (event == nullptr) return kInvalidHandle;
  if (event->point.capture == nullptr) return kSuccess;
  event->point.capture->invalid = true;
  return kCapturedEvent;
}

// A wait of the stream for an event of a capture brings the stream into it.
Status wait(Runtime& r, Stream& stream, const Event& event, bool external) {
  const std::shared_ptr<Capture>& from = event.point.capture;
  CapturePoint& to = stream.point;
  if (from == nullptr) {
    if (to.capture == nullptr || !event.recorded || external) return kSuccess;
    to.capture->invalid = true;
    return kCaptureIsolation;
  }
  if (from->invalid) return kCaptureInvalidated;
  if (&stream == &r.legacy_stream || (to.capture != nullptr && to.capture != from)) {
    from->invalid = true;
    if (to.capture == nullptr) return kCaptureImplicit;
    to.capture->invalid = true;
    return kCaptureMerge;
  }
  to.capture = from;
  for (GraphNode* const node : event.point.last) {
    if (std::find(to.last.begin(), to.last.end(), node) == to.last.end()) to.last.push_back(node);
  }
  return kSuccess;
}

template <class Work>
Status with_stream(const char* function, const void* caller, void* handle, Outputs outputs, Work&& work) {
  return enter(function, caller, outputs, [&](Runtime& r) {
    Stream* const stream = r.find_stream(handle);
    return stream == nullptr ? kInvalidHandle : work(r, *stream);
  });
}

}  // namespace

// --- streams ---

KVSCOPE_CUDA int cudaStreamCreate(void** stream) {
  return enter("cudaStreamCreate", KVSCOPE_CALLER, {stream}, [&](Runtime& r) { return make_stream(r, stream, 0, 0); });
}
KVSCOPE_CUDA int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return enter("cudaStreamCreateWithFlags", KVSCOPE_CALLER, {stream},
               [&](Runtime& r) { return make_stream(r, stream, flags, 0); });
}
KVSCOPE_CUDA int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return enter("cudaStreamCreateWithPriority", KVSCOPE_CALLER, {stream},
               [&](Runtime& r) { return make_stream(r, stream, flags, std::clamp(priority, -5, 0)); });
}
KVSCOPE_CUDA int cudaStreamDestroy(void* stream) {
  return enter("cudaStreamDestroy", KVSCOPE_CALLER, [&](Runtime& r) {
    const auto found = r.streams.find(stream);
    if (found == r.streams.end()) return kInvalidHandle;
    if (found->second->point.capture != nullptr) return kCaptureUnsupported;
    r.streams.erase(found);
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaStreamSynchronize(void* stream) {
  return enter("cudaStreamSynchronize", KVSCOPE_CALLER, [&](Runtime& r) { return r.synchronize(stream); });
}
KVSCOPE_CUDA int cudaStreamQuery(void* stream) {
  return enter("cudaStreamQuery", KVSCOPE_CALLER, [&](Runtime& r) { return r.synchronize(stream); });
}
KVSCOPE_CUDA int cudaStreamGetFlags(void* stream, unsigned* flags) {
  return with_stream("cudaStreamGetFlags", KVSCOPE_CALLER, stream, {flags},
                     [&](Runtime&, Stream& s) { return *flags = s.flags, kSuccess; });
}
KVSCOPE_CUDA int cudaStreamGetPriority(void* stream, int* priority) {
  return with_stream("cudaStreamGetPriority", KVSCOPE_CALLER, stream, {priority},
                     [&](Runtime&, Stream& s) { return *priority = s.priority, kSuccess; });
}
KVSCOPE_CUDA int cudaStreamGetId(void* stream, unsigned long long* id) {
  return with_stream("cudaStreamGetId", KVSCOPE_CALLER, stream, {id},
                     [&](Runtime&, Stream& s) { return *id = s.id, kSuccess; });
}
KVSCOPE_CUDA int cudaStreamGetDevice(void* stream, int* device) {
  return with_stream("cudaStreamGetDevice", KVSCOPE_CALLER, stream, {device},
                     [&](Runtime&, Stream&) { return *device = 0, kSuccess; });
}
// Cache policies and domains of fences: no effect on results.
KVSCOPE_CUDA int cudaStreamSetAttribute(void*, int, const void*) {
  return kSuccess;
}
KVSCOPE_CUDA int cudaStreamCopyAttributes(void*, void*) {
  return kSuccess;
}

KVSCOPE_CUDA int cudaStreamAddCallback(void* stream, void (*callback)(void*, int, void*), void* data, unsigned) {
  return enter("cudaStreamAddCallback", KVSCOPE_CALLER, [&](Runtime& r) {
    if (callback == nullptr) return kInvalidValue;
    return r.issue(stream, kHostNode, [=] { return callback(stream, kSuccess, data), kSuccess; });
  });
}
KVSCOPE_CUDA int cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return enter("cudaStreamWaitEvent", KVSCOPE_CALLER, [&](Runtime& r) {
    const Event* const e = find_event(r, event);
    if (e == nullptr) return kInvalidHandle;
    Stream* s = nullptr;
    if (const Status status = r.use_stream(stream, s); status != kSuccess) return status;
    return wait(r, *s, *e, flags == kWaitExternal);
  });
}

// --- events ---

KVSCOPE_CUDA int cudaEventCreate(void** event) {
  return enter("cudaEventCreate", KVSCOPE_CALLER, {event}, [&](Runtime& r) { return make_event(r, event, 0); });
}
KVSCOPE_CUDA int cudaEventCreateWithFlags(void** event, unsigned flags) {
  return enter("cudaEventCreateWithFlags", KVSCOPE_CALLER, {event},
               [&](Runtime& r) { return make_event(r, event, flags); });
}
KVSCOPE_CUDA int cudaEventDestroy(void* event) {
  return enter("cudaEventDestroy", KVSCOPE_CALLER,
               [&](Runtime& r) { return r.events.erase(event) == 1 ? kSuccess : kInvalidHandle; });
}
KVSCOPE_CUDA int cudaEventRecord(void* event, void* stream) {
  return enter("cudaEventRecord", KVSCOPE_CALLER, [&](Runtime& r) { return record(r, event, stream); });
}
KVSCOPE_CUDA int cudaEventRecordWithFlags(void* event, void* stream, unsigned) {
  return enter("cudaEventRecordWithFlags", KVSCOPE_CALLER, [&](Runtime& r) { return record(r, event, stream); });
}
KVSCOPE_CUDA int cudaEventSynchronize(void* event) {
  return enter("cudaEventSynchronize", KVSCOPE_CALLER, [&](Runtime& r) { return state_of(find_event(r, event)); });
}
KVSCOPE_CUDA int cudaEventQuery(void* event) {
  return enter("cudaEventQuery", KVSCOPE_CALLER, [&](Runtime& r) { return state_of(find_event(r, event)); });
}
// There is no clock: one warp instruction counts as a microsecond, and the result is never 0, because programs divide by it. It is
// negative if `end` was recorded before `begin`.
KVSCOPE_CUDA int cudaEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return enter("cudaEventElapsedTime", KVSCOPE_CALLER, {milliseconds}, [&](Runtime& r) {
    const Event* const from = find_event(r, begin);
    const Event* const to = find_event(r, end);
    for (const Event* const event : {from, to}) {
      if (const Status status = state_of(event); status != kSuccess) return status;
      if (!event->recorded || (event->flags & kDisableTiming) != 0) return kInvalidHandle;
    }
    const auto instructions = static_cast<std::int64_t>(to->at - from->at);
    *milliseconds = static_cast<float>(instructions == 0 ? 1 : instructions) / 1000.0F;
    return kSuccess;
  });
}
KVSCOPE_CUDA_ALIAS(cudaEventElapsedTime_v2, cudaEventElapsedTime)

// --- capture ---

KVSCOPE_CUDA int cudaStreamBeginCapture(void* stream, int mode) {
  return with_stream("cudaStreamBeginCapture", KVSCOPE_CALLER, stream, {}, [&](Runtime& r, Stream& s) {
    if (mode < kGlobalCapture || mode > kRelaxedCapture) return kInvalidValue;
    if (&s == &r.legacy_stream) return kCaptureUnsupported;
    if (s.point.capture != nullptr) return kIllegalState;
    auto graph = std::make_unique<Graph>();
    s.point.capture = std::make_shared<Capture>(
        Capture{.graph = graph.get(), .mode = mode, .thread = std::this_thread::get_id(), .id = ++r.next_capture});
    s.origin = true;
    r.graphs.emplace(graph.get(), std::move(graph));
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaStreamEndCapture(void* stream, void** graph) {
  return with_stream("cudaStreamEndCapture", KVSCOPE_CALLER, stream, {graph}, [&](Runtime& r, Stream& s) {
    const std::shared_ptr<Capture> capture = s.point.capture;
    if (capture == nullptr) return kIllegalState;
    if (!s.origin) return kCaptureUnmatched;
    if (capture->mode != kRelaxedCapture && capture->thread != std::this_thread::get_id()) return kCaptureWrongThread;
    Graph* captured = nullptr;
    const Status status = r.end_capture(s, captured);
    *graph = captured;
    return status;
  });
}

namespace {
// The legacy stream has no status while a stream that it waits for is in capture.
Status capture_info(Runtime& r, Stream& s, int* status, unsigned long long* id, void** graph) {
  if (&s == &r.legacy_stream && r.has_blocking_capture()) return kCaptureImplicit;
  const Capture* const capture = s.point.capture.get();
  *status = capture == nullptr ? kNotCapturing : capture->invalid ? kInvalidated : kCapturing;
  if (*status != kCapturing) return kSuccess;
  if (id != nullptr) *id = capture->id;
  if (graph != nullptr) *graph = capture->graph;
  return kSuccess;
}
}  // namespace

KVSCOPE_CUDA int cudaStreamIsCapturing(void* stream, int* status) {
  return with_stream("cudaStreamIsCapturing", KVSCOPE_CALLER, stream, {status},
                     [&](Runtime& r, Stream& s) { return capture_info(r, s, status, nullptr, nullptr); });
}
// _v2 and later, and 13.x, have more outputs for the dependencies of the next node, which stay as they are. The form of 12.x
// ends with `id`.
KVSCOPE_CUDA int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id, void** graph) {
  return with_stream("cudaStreamGetCaptureInfo", KVSCOPE_CALLER, stream, {status}, [&](Runtime& r, Stream& s) {
    return capture_info(r, s, status, id, runtime_version() < 13000 ? nullptr : graph);
  });
}
KVSCOPE_CUDA int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph) {
  return with_stream("cudaStreamGetCaptureInfo", KVSCOPE_CALLER, stream, {status},
                     [&](Runtime& r, Stream& s) { return capture_info(r, s, status, id, graph); });
}
KVSCOPE_CUDA int cudaThreadExchangeStreamCaptureMode(int* mode) {
  return enter("cudaThreadExchangeStreamCaptureMode", KVSCOPE_CALLER, {mode}, [&](Runtime&) {
    if (*mode < kGlobalCapture || *mode > kRelaxedCapture) return kInvalidValue;
    return std::swap(*mode, thread_capture_mode()), kSuccess;
  });
}

KVSCOPE_CUDA_PER_THREAD(cudaStreamGetCaptureInfo_v2_ptsz, cudaStreamGetCaptureInfo_v2,
                        (void* stream, int* status, unsigned long long* id, void** graph), (stream, status, id, graph))
KVSCOPE_CUDA_ALIAS(cudaStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo_v2)
KVSCOPE_CUDA_PER_THREAD(cudaStreamGetCaptureInfo_v3_ptsz, cudaStreamGetCaptureInfo_v2,
                        (void* stream, int* status, unsigned long long* id, void** graph), (stream, status, id, graph))
KVSCOPE_CUDA_PER_THREAD(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo,
                        (void* stream, int* status, unsigned long long* id, void** graph), (stream, status, id, graph))
KVSCOPE_CUDA_PER_THREAD(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture, (void* stream, int mode), (stream, mode))
KVSCOPE_CUDA_PER_THREAD(cudaStreamEndCapture_ptsz, cudaStreamEndCapture, (void* stream, void** graph), (stream, graph))
KVSCOPE_CUDA_PER_THREAD(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing, (void* stream, int* status),
                        (stream, status))
KVSCOPE_CUDA_PER_THREAD(cudaStreamSynchronize_ptsz, cudaStreamSynchronize, (void* stream), (stream))
KVSCOPE_CUDA_PER_THREAD(cudaStreamQuery_ptsz, cudaStreamQuery, (void* stream), (stream))
KVSCOPE_CUDA_PER_THREAD(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent, (void* stream, void* event, unsigned flags),
                        (stream, event, flags))
KVSCOPE_CUDA_PER_THREAD(cudaStreamAddCallback_ptsz, cudaStreamAddCallback,
                        (void* stream, void (*callback)(void*, int, void*), void* data, unsigned flags),
                        (stream, callback, data, flags))
KVSCOPE_CUDA_PER_THREAD(cudaStreamGetFlags_ptsz, cudaStreamGetFlags, (void* stream, unsigned* flags), (stream, flags))
KVSCOPE_CUDA_PER_THREAD(cudaStreamGetPriority_ptsz, cudaStreamGetPriority, (void* stream, int* priority),
                        (stream, priority))
KVSCOPE_CUDA_PER_THREAD(cudaStreamGetId_ptsz, cudaStreamGetId, (void* stream, unsigned long long* id), (stream, id))
KVSCOPE_CUDA_PER_THREAD(cudaStreamGetDevice_ptsz, cudaStreamGetDevice, (void* stream, int* device), (stream, device))
KVSCOPE_CUDA_ALIAS(cudaStreamSetAttribute_ptsz, cudaStreamSetAttribute)
KVSCOPE_CUDA_ALIAS(cudaStreamCopyAttributes_ptsz, cudaStreamCopyAttributes)
KVSCOPE_CUDA_PER_THREAD(cudaEventRecord_ptsz, cudaEventRecord, (void* event, void* stream), (event, stream))
KVSCOPE_CUDA_PER_THREAD(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags,
                        (void* event, void* stream, unsigned flags), (event, stream, flags))

}  // namespace kvscope::driver
