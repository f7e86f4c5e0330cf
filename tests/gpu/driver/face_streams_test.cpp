// Streams, events and stream capture of libcudart: streams that join a capture, the release at its end, and times of events.
#include <array>
#include <cstdint>
#include <thread>

#include "tests/gpu/driver/cuda_runtime_fixture.h"

extern "C" {
int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream);
int cudaStreamIsCapturing(void* stream, int* status);
int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph);
int cudaEventQuery(void* event);
int cudaEventSynchronize(void* event);
int cudaEventCreateWithFlags(void** event, unsigned flags);
int cudaGraphDestroy(void* graph);
}

namespace kvscope::driver_tests::face_streams_test {

void* const kLegacy = reinterpret_cast<void*>(std::uintptr_t{1});     // cudaStreamLegacy
void* const kPerThread = reinterpret_cast<void*>(std::uintptr_t{2});  // cudaStreamPerThread
constexpr int kIsCapturing = 1;

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
    ASSERT_EQ(cudaStreamEndCapture(origin_, &graph_), 0);
    EXPECT_EQ(capturing(joins), 0);
    ASSERT_EQ(cudaGraphDestroy(graph_), 0);
    EXPECT_EQ(copied_in(joins), 1);
    ASSERT_EQ(cudaMemcpy(output_.data(), static_cast<float*>(x_) + 1, 4, 2), 0);
    EXPECT_EQ(output_[0], 2);
  }
}

TEST_F(CudaStreams, TheLegacyStreamNeverJoinsACapture) {
  for (void* const legacy : {static_cast<void*>(nullptr), kLegacy}) {
    EXPECT_EQ(cudaStreamBeginCapture(legacy, 0), 900);  // cudaErrorStreamCaptureUnsupported
    begin();
    EXPECT_EQ(cudaStreamWaitEvent(legacy, event_, 0), 906);  // cudaErrorStreamCaptureImplicit
    EXPECT_EQ(copied_in(kPerThread), 1);
    ASSERT_EQ(cudaStreamEndCapture(origin_, &graph_), 0);
    EXPECT_EQ(copied_in(legacy), 1);
  }
}

// Each thread has its own stream behind cudaStreamPerThread.
TEST_F(CudaStreams, TheStreamOfAThreadIsCapturedForThatThreadOnly) {
  ASSERT_EQ(cudaStreamBeginCapture(kPerThread, 0), 0);
  EXPECT_EQ(copied_in(kPerThread), 0);
  EXPECT_EQ(copied_in(nullptr), 1);
  std::thread([&] { EXPECT_EQ(copied_in(kPerThread), 1); }).join();
  ASSERT_EQ(cudaStreamEndCapture(kPerThread, &graph_), 0);
  EXPECT_EQ(copied_in(kPerThread), 1);
  ASSERT_EQ(cudaStreamBeginCapture(kPerThread, 0), 0);
  ASSERT_EQ(cudaDeviceReset(), 0);
  EXPECT_EQ(capturing(kPerThread), 0);
}

TEST_F(CudaStreams, ObjectsOfACaptureAreProtectedUntilItsEnd) {
  begin();
  int status = 0;
  ASSERT_EQ(cudaStreamGetCaptureInfo_v2(origin_, &status, nullptr, &graph_), 0);
  ASSERT_NE(graph_, nullptr);
  EXPECT_EQ(cudaGraphDestroy(graph_), 1);
  EXPECT_EQ(cudaStreamDestroy(origin_), 900);
  EXPECT_EQ(cudaEventQuery(event_), 907);  // cudaErrorCapturedEvent
  EXPECT_EQ(cudaEventSynchronize(event_), 907);
  EXPECT_EQ(copied_in(origin_), 0);
  ASSERT_EQ(cudaStreamEndCapture(origin_, &graph_), 0);
  EXPECT_EQ(cudaGraphDestroy(graph_), 0);
  EXPECT_EQ(cudaStreamDestroy(origin_), 0);
}

TEST_F(CudaStreams, TwoCapturesAreNotMerged) {
  begin();
  ASSERT_EQ(cudaStreamBeginCapture(other_, 0), 0);
  EXPECT_EQ(cudaStreamWaitEvent(other_, event_, 0), 902);  // cudaErrorStreamCaptureMerge
  EXPECT_EQ(cudaStreamWaitEvent(origin_, event_, 0), 0);   // its own
  ASSERT_EQ(cudaStreamEndCapture(other_, &graph_), 0);
  ASSERT_EQ(cudaStreamEndCapture(origin_, &graph_), 0);
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
