// Streams, events and stream capture of libcudart: streams that join a capture, calls that break it, its end, and times of events.
#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/gpu/driver/cuda_runtime_fixture.h"

extern "C" {
int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream);
int cudaStreamIsCapturing(void* stream, int* status);
int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph);
int cudaEventQuery(void* event);
int cudaEventSynchronize(void* event);
int cudaEventCreateWithFlags(void** event, unsigned flags);
int cudaGraphDestroy(void* graph);
int cudaStreamCreateWithFlags(void** stream, unsigned flags);
int cudaStreamQuery(void* stream);
int cudaThreadExchangeStreamCaptureMode(int* mode);
int cudaStreamGetId(void* stream, unsigned long long* id);
int cudaStreamGetId_ptsz(void* stream, unsigned long long* id);
int cudaStreamBeginCapture_ptsz(void* stream, int mode);
int cudaStreamEndCapture_ptsz(void* stream, void** graph);
int cudaStreamSynchronize_ptsz(void* stream);
int cudaMemcpyAsync_ptsz(void* to, const void* from, std::size_t bytes, int kind, void* stream);
int cudaMemcpy_ptds(void* to, const void* from, std::size_t bytes, int kind);
}

namespace kvscope::driver_tests::face_streams_test {

void* const kLegacy = reinterpret_cast<void*>(std::uintptr_t{1});     // cudaStreamLegacy
void* const kPerThread = reinterpret_cast<void*>(std::uintptr_t{2});  // cudaStreamPerThread
constexpr int kIsCapturing = 1, kIsInvalidated = 2;

class CudaStreams : public CudaRuntime {
 protected:
  void SetUp() override {
    CudaRuntime::SetUp();
    x_ = device_copy();
    ASSERT_EQ(cudaStreamCreate(&origin_), 0);
    ASSERT_EQ(cudaStreamCreate(&other_), 0);
    ASSERT_EQ(cudaEventCreate(&event_), 0);
  }
  // A capture of `origin_` that `event_` marks.
  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(origin_, 0), 0);
    ASSERT_EQ(cudaEventRecord(event_, origin_), 0);
  }
  int end() { return cudaStreamEndCapture(origin_, &graph_); }
  static int capturing(void* stream) {
    int status = -1;
    EXPECT_EQ(cudaStreamIsCapturing(stream, &status), 0);
    return status;
  }
  // The first number after a copy in `stream`; 0: the copy was recorded.
  float copied_in(void* stream) {
    output_ = {};
    EXPECT_EQ(cudaMemcpyAsync(output_.data(), x_, 4, 2, stream), 0);
    return output_[0];
  }

  void *x_ = nullptr, *origin_ = nullptr, *other_ = nullptr, *event_ = nullptr, *graph_ = nullptr;
};

// The graph is destroyed, so a stream that is still in the capture would record into freed memory.
TEST_F(CudaStreams, TheEndOfACaptureReleasesEveryStreamThatJoined) {
  for (void* const joins : {other_, kPerThread}) {
    begin();
    ASSERT_EQ(cudaStreamWaitEvent(joins, event_, 0), 0);
    EXPECT_EQ(capturing(joins), kIsCapturing);
    EXPECT_EQ(copied_in(joins), 0);
    ASSERT_EQ(cudaEventRecord(event_, joins), 0);
    ASSERT_EQ(cudaStreamWaitEvent(origin_, event_, 0), 0);
    EXPECT_EQ(end(), 0);
    EXPECT_EQ(capturing(joins), 0);
    ASSERT_EQ(cudaGraphDestroy(graph_), 0);
    EXPECT_EQ(copied_in(joins), 1);
    ASSERT_EQ(cudaMemcpy(output_.data(), static_cast<float*>(x_) + 1, 4, 2), 0);
    EXPECT_EQ(output_[0], 2);
  }
}

// The second stream is joined, and then records once more; the third records and is never joined.
TEST_F(CudaStreams, WorkOfAForkedStreamThatIsNotJoinedEndsTheCapture) {
  for (const bool joined : {true, false}) {
    begin();
    ASSERT_EQ(cudaStreamWaitEvent(other_, event_, 0), 0);
    EXPECT_EQ(copied_in(other_), 0);
    if (joined) {
      ASSERT_EQ(cudaEventRecord(event_, other_), 0);
      ASSERT_EQ(cudaStreamWaitEvent(origin_, event_, 0), 0);
      EXPECT_EQ(copied_in(origin_), 0);
      EXPECT_EQ(copied_in(other_), 0);
    }
    EXPECT_EQ(end(), 904);  // cudaErrorStreamCaptureUnjoined
    EXPECT_EQ(graph_, nullptr);
    EXPECT_EQ(capturing(origin_), 0);
    EXPECT_EQ(copied_in(other_), 1);
  }
}

TEST_F(CudaStreams, AForkWithoutWorkNeedsNoJoin) {
  begin();
  EXPECT_EQ(copied_in(origin_), 0);
  ASSERT_EQ(cudaStreamWaitEvent(other_, event_, 0), 0);
  EXPECT_EQ(end(), 0);
  EXPECT_NE(graph_, nullptr);
}

// A join through a third stream. The graph runs in the order of its dependencies.
TEST_F(CudaStreams, AJoinMayPassThroughAnotherStream) {
  void* third = nullptr;
  ASSERT_EQ(cudaStreamCreate(&third), 0);
  begin();
  ASSERT_EQ(cudaStreamWaitEvent(other_, event_, 0), 0);
  EXPECT_EQ(copied_in(other_), 0);
  ASSERT_EQ(cudaEventRecord(event_, other_), 0);
  ASSERT_EQ(cudaStreamWaitEvent(third, event_, 0), 0);
  EXPECT_EQ(copied_in(third), 0);
  ASSERT_EQ(cudaEventRecord(event_, third), 0);
  ASSERT_EQ(cudaStreamWaitEvent(origin_, event_, 0), 0);
  EXPECT_EQ(end(), 0);
  void* exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph_, 0), 0);
  ASSERT_EQ(cudaGraphLaunch(exec, origin_), 0);
  EXPECT_EQ(output_[0], 1);
}

// While a blocking stream is in capture, the legacy stream would wait for it: every use of it is an error that ends the capture.
TEST_F(CudaStreams, AUseOfTheLegacyStreamInvalidatesTheCapturesThatItWouldWaitFor) {
  constexpr int kImplicit = 906;  // cudaErrorStreamCaptureImplicit
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, 0), 900);
  EXPECT_EQ(cudaStreamBeginCapture(kLegacy, 0), 900);
  const std::vector<std::function<int()>> uses{
      [&] { return cudaStreamWaitEvent(nullptr, event_, 0); },
      [&] { return cudaStreamWaitEvent(kLegacy, event_, 0); },
      [&] { return cudaMemcpyAsync(output_.data(), x_, 4, 2, nullptr); },
      [&] { return cudaMemcpy(output_.data(), x_, 4, 2); },
      [&] { return cudaMemset(x_, 0, 0); },
      [&] { return scale(x_, x_, 1, 1, nullptr); },
      [&] { return cudaEventRecord(event_, kLegacy); },
      [&] { return cudaStreamSynchronize(nullptr); },
      [&] { return cudaStreamQuery(kLegacy); },
  };
  for (void* const captured : {origin_, kPerThread}) {
    for (const auto& use : uses) {
      ASSERT_EQ(cudaStreamBeginCapture(captured, 0), 0);
      ASSERT_EQ(cudaEventRecord(event_, captured), 0);
      EXPECT_EQ(use(), kImplicit);
      EXPECT_EQ(capturing(captured), kIsInvalidated);
      EXPECT_EQ(cudaMemcpyAsync(output_.data(), x_, 4, 2, captured), 901);  // cudaErrorStreamCaptureInvalidated
      graph_ = this;
      EXPECT_EQ(cudaStreamEndCapture(captured, &graph_), 901);
      EXPECT_EQ(graph_, nullptr);
      EXPECT_EQ(copied_in(nullptr), 1);
    }
  }
}

TEST_F(CudaStreams, ANonBlockingStreamInCaptureLeavesTheLegacyStreamUsable) {
  void* stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, 1), 0);  // cudaStreamNonBlocking
  ASSERT_EQ(cudaStreamBeginCapture(stream, 0), 0);
  EXPECT_EQ(copied_in(nullptr), 1);
  EXPECT_EQ(capturing(nullptr), 0);
  EXPECT_EQ(copied_in(stream), 0);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph_), 0);
}

// A question about the legacy stream is an error too, but ends no capture.
TEST_F(CudaStreams, TheStatusOfTheLegacyStreamIsUnknownDuringACapture) {
  begin();
  int status = 0;
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), 906);
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), 0);
}

// Each thread has its own stream behind cudaStreamPerThread.
TEST_F(CudaStreams, TheStreamOfAThreadIsCapturedForThatThreadOnly) {
  ASSERT_EQ(cudaStreamBeginCapture(kPerThread, 0), 0);
  EXPECT_EQ(copied_in(kPerThread), 0);
  std::thread([&] { EXPECT_EQ(copied_in(kPerThread), 1); }).join();
  ASSERT_EQ(cudaStreamEndCapture(kPerThread, &graph_), 0);
  EXPECT_EQ(copied_in(kPerThread), 1);
  ASSERT_EQ(cudaStreamBeginCapture(kPerThread, 0), 0);
  ASSERT_EQ(cudaDeviceReset(), 0);
  EXPECT_EQ(capturing(kPerThread), 0);
}

// A program compiled with --default-stream per-thread calls these names: its stream 0 is cudaStreamPerThread, which can be captured
// and for which other threads do not wait.
TEST_F(CudaStreams, StreamZeroOfAProgramWithPerThreadDefaultStreamsIsThatOfTheThread) {
  ASSERT_EQ(cudaStreamBeginCapture_ptsz(nullptr, 0), 0);
  EXPECT_EQ(capturing(kPerThread), kIsCapturing);
  const auto copy = [&](std::array<float, 64>& to) { return cudaMemcpyAsync_ptsz(to.data(), x_, 4, 2, nullptr); };
  output_ = {};
  EXPECT_EQ(copy(output_), 0);
  EXPECT_EQ(output_[0], 0);  // recorded
  std::thread([&] {
    std::array<float, 64> mine{};
    EXPECT_EQ(copy(mine), 0);
    EXPECT_EQ(mine[0], 1);
    EXPECT_EQ(cudaStreamSynchronize_ptsz(nullptr), 0);
  }).join();
  EXPECT_EQ(cudaMemcpyAsync_ptsz(output_.data(), x_, 4, 2, kLegacy), 906);
  EXPECT_EQ(cudaStreamEndCapture_ptsz(nullptr, &graph_), 901);

  ASSERT_EQ(cudaStreamBeginCapture_ptsz(nullptr, 0), 0);
  EXPECT_EQ(copy(output_), 0);
  EXPECT_EQ(cudaStreamEndCapture_ptsz(nullptr, &graph_), 0);
  EXPECT_EQ(output_[0], 0);

  ASSERT_EQ(cudaStreamBeginCapture_ptsz(nullptr, 0), 0);
  EXPECT_EQ(cudaMemcpy_ptds(output_.data(), x_, 4, 2), 900);  // waits, so that no capture can record it
  EXPECT_EQ(output_[0], 0);
  EXPECT_EQ(cudaStreamEndCapture_ptsz(nullptr, &graph_), 901);
  EXPECT_EQ(cudaMemcpy_ptds(output_.data(), x_, 4, 2), 0);
  EXPECT_EQ(output_[0], 1);
}

// The name of one call must not decide about the next one.
TEST_F(CudaStreams, ACallByThePerThreadNameLeavesOtherCallsOnTheLegacyStream) {
  unsigned long long legacy = 0, by_handle = 0, per_thread = 0, of_another = 0, created = 0;
  ASSERT_EQ(cudaStreamGetId_ptsz(nullptr, &per_thread), 0);
  ASSERT_EQ(cudaStreamGetId(nullptr, &legacy), 0);
  EXPECT_EQ(cudaStreamGetId_ptsz(nullptr, nullptr), 1);
  ASSERT_EQ(cudaStreamGetId(nullptr, &by_handle), 0);
  EXPECT_EQ(by_handle, legacy);
  ASSERT_EQ(cudaStreamGetId(kPerThread, &by_handle), 0);
  EXPECT_EQ(by_handle, per_thread);
  std::thread([&] { EXPECT_EQ(cudaStreamGetId_ptsz(nullptr, &of_another), 0); }).join();
  ASSERT_EQ(cudaStreamGetId(other_, &created), 0);
  EXPECT_EQ((std::set{legacy, per_thread, of_another, created}.size()), 4U);
}

TEST_F(CudaStreams, ObjectsOfACaptureAreProtectedUntilItsEnd) {
  begin();
  int status = 0;
  ASSERT_EQ(cudaStreamGetCaptureInfo_v2(origin_, &status, nullptr, &graph_), 0);
  ASSERT_NE(graph_, nullptr);
  EXPECT_EQ(cudaGraphDestroy(graph_), 1);
  EXPECT_EQ(cudaStreamDestroy(origin_), 900);
  EXPECT_EQ(copied_in(origin_), 0);
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(cudaGraphDestroy(graph_), 0);
  EXPECT_EQ(cudaStreamDestroy(origin_), 0);
}

// What waits for the work of a capture, or depends on it from outside, breaks it.
TEST_F(CudaStreams, ACallThatNeedsTheResultsOfACaptureInvalidatesIt) {
  void* outside = nullptr;
  float milliseconds = 0;
  ASSERT_EQ(cudaEventCreate(&outside), 0);
  ASSERT_EQ(cudaEventRecord(outside, other_), 0);
  const std::vector<std::pair<int, std::function<int()>>> calls{
      {900, [&] { return cudaStreamSynchronize(origin_); }},
      {900, [&] { return cudaStreamQuery(origin_); }},
      {900, [&] { return cudaDeviceSynchronize(); }},
      {905, [&] { return cudaStreamWaitEvent(origin_, outside, 0); }},  // cudaErrorStreamCaptureIsolation
      {907, [&] { return cudaEventQuery(event_); }},                    // cudaErrorCapturedEvent
      {907, [&] { return cudaEventSynchronize(event_); }},
      {907, [&] { return cudaEventElapsedTime(&milliseconds, outside, event_); }},
  };
  for (const auto& [status, call] : calls) {
    begin();
    EXPECT_EQ(call(), status);
    EXPECT_EQ(capturing(origin_), kIsInvalidated) << status;
    EXPECT_EQ(end(), 901) << status;
    EXPECT_EQ(graph_, nullptr);
    EXPECT_EQ(copied_in(origin_), 1);
  }
}

TEST_F(CudaStreams, AnEventFromOutsideIsAllowedIfItIsExternalOrNeverRecorded) {
  void* outside = nullptr;
  ASSERT_EQ(cudaEventCreate(&outside), 0);
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(origin_, outside, 0), 0);
  ASSERT_EQ(cudaEventRecord(outside, other_), 0);
  EXPECT_EQ(cudaStreamWaitEvent(origin_, outside, 1), 0);  // cudaEventWaitExternal
  EXPECT_EQ(end(), 0);
}

TEST_F(CudaStreams, TwoCapturesAreNotMerged) {
  begin();
  ASSERT_EQ(cudaStreamBeginCapture(other_, 0), 0);
  EXPECT_EQ(cudaStreamWaitEvent(origin_, event_, 0), 0);   // its own
  EXPECT_EQ(cudaStreamWaitEvent(other_, event_, 0), 902);  // cudaErrorStreamCaptureMerge
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph_), 901);
  EXPECT_EQ(end(), 901);
}

TEST_F(CudaStreams, ACaptureIsBegunAndEndedOnce) {
  constexpr int kIllegalState = 401;  // cudaErrorIllegalState
  EXPECT_EQ(cudaStreamEndCapture(origin_, &graph_), kIllegalState);
  EXPECT_EQ(cudaStreamBeginCapture(origin_, 3), 1);
  EXPECT_EQ(cudaStreamBeginCapture(origin_, -1), 1);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(origin_, 0), kIllegalState);
  ASSERT_EQ(cudaStreamWaitEvent(other_, event_, 0), 0);
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph_), 903);  // cudaErrorStreamCaptureUnmatched
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(end(), kIllegalState);
}

// Only a relaxed capture may be ended by another thread.
TEST_F(CudaStreams, TheThreadThatBeganACaptureEndsIt) {
  constexpr int kRelaxed = 2;
  for (const int mode : {0, 1, kRelaxed}) {
    ASSERT_EQ(cudaStreamBeginCapture(origin_, mode), 0);
    int status = -1;
    std::thread([&] { status = cudaStreamEndCapture(origin_, &graph_); }).join();
    EXPECT_EQ(status, mode == kRelaxed ? 0 : 908) << mode;  // cudaErrorStreamCaptureWrongThread
    if (mode != kRelaxed) {
      EXPECT_EQ(end(), 0) << mode;
    }
  }
}

// By the mode of the capture and that of the thread: [capture][thread][the capturing thread, another one].
TEST_F(CudaStreams, AllocationsAreForbiddenDuringACaptureByItsModeAndThatOfTheThread) {
  constexpr std::array<std::array<std::array<bool, 2>, 3>, 3> kForbidden{{
      {{{true, true}, {true, false}, {false, false}}},    // global
      {{{true, false}, {true, false}, {false, false}}},   // of the thread
      {{{false, false}, {false, false}, {false, false}}}  // relaxed
  }};
  for (int capture = 0; capture < 3; ++capture) {
    for (int thread = 0; thread < 3; ++thread) {
      for (const std::size_t another : {0U, 1U}) {
        ASSERT_EQ(cudaStreamBeginCapture(origin_, capture), 0);
        const auto allocate = [&] {
          int mode = thread;
          ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), 0);
          EXPECT_EQ(mode, 0);
          void* memory = nullptr;
          const bool forbidden =
              kForbidden[static_cast<std::size_t>(capture)][static_cast<std::size_t>(thread)][another];
          EXPECT_EQ(cudaMalloc(&memory, 4), forbidden ? 900 : 0) << capture << " " << thread << " " << another;
          ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), 0);
          EXPECT_EQ(mode, thread);
          EXPECT_EQ(capturing(origin_), forbidden ? kIsInvalidated : kIsCapturing);
        };
        another == 1 ? std::thread(allocate).join() : allocate();
        static_cast<void>(end());
      }
    }
  }
  int mode = 3;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), 1);
}

// One warp instruction is a microsecond; an unsigned difference of the reverse order is 1.8e16 ms.
TEST_F(CudaStreams, ElapsedTimeIsNegativeInReverseOrder) {
  void* later = nullptr;
  ASSERT_EQ(cudaEventCreate(&later), 0);
  ASSERT_EQ(cudaEventRecord(event_, nullptr), 0);
  void* y = device_copy();
  ASSERT_EQ(scale(y, x_), 0);
  ASSERT_EQ(cudaEventRecord(later, nullptr), 0);
  float forward = 0, backward = 0;
  ASSERT_EQ(cudaEventElapsedTime(&forward, event_, later), 0);
  ASSERT_EQ(cudaEventElapsedTime(&backward, later, event_), 0);
  EXPECT_GT(forward, 0.001F);
  EXPECT_LT(forward, 1);
  EXPECT_EQ(backward, -forward);
}

TEST_F(CudaStreams, AnEventWithoutTimingHasNoTime) {
  void* untimed = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, 2), 0);  // cudaEventDisableTiming
  ASSERT_EQ(cudaEventRecord(event_, nullptr), 0);
  ASSERT_EQ(cudaEventRecord(untimed, nullptr), 0);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event_, untimed), 400);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, untimed, event_), 400);
  EXPECT_EQ(cudaEventElapsedTime(nullptr, event_, event_), 1);
}

}  // namespace kvscope::driver_tests::face_streams_test
