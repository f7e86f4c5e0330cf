// libcudart's memory functions: products of the program's numbers that do not fit 64 bits, what allocations cost at a
// launch, memory that the host shares with the device, and memory of graphs.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <vector>

#include "gpu/driver/cuda_types.h"
#include "tests/gpu/driver/cuda_runtime_fixture.h"

extern "C" {
int cudaMallocAsync(void** pointer, std::size_t bytes, void* stream);
int cudaFreeAsync(void* pointer, void* stream);
int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream);
int cudaMalloc3D(kvscope::driver::PitchedPointer* out, kvscope::driver::Extent extent);
int cudaGraphCreate(void** graph, unsigned flags);
int cudaGraphAddMemsetNode(void** node, void* graph, void* const* after, std::size_t count,
                           const kvscope::driver::MemsetNodeParams* p);
}

namespace kvscope::driver_tests::face_memory_test {

using CudaMemory = CudaRuntime;
constexpr int kOutOfMemory = 2;  // cudaErrorMemoryAllocation

// Width * height of the first is 2^64, which wraps to 0; the width of the second wraps when it is rounded up to the pitch.
TEST_F(CudaMemory, SizesOfRowsDoNotWrap) {
  const std::array<std::array<std::size_t, 2>, 4> sizes{{{std::size_t{1} << 33, std::size_t{1} << 31},
                                                         {~std::size_t{0}, 1},
                                                         {~std::size_t{511}, 2},
                                                         {513, SIZE_MAX / 512}}};
  for (const auto& [width, height] : sizes) {
    void* rows = this;
    std::size_t pitch = 7;
    EXPECT_EQ(cudaMallocPitch(&rows, &pitch, width, height), kOutOfMemory) << width << " x " << height;
    driver::PitchedPointer box{.pointer = this, .pitch = 7, .x_size = 0, .y_size = 0};
    EXPECT_EQ(cudaMalloc3D(&box, {width, height, 1}), kOutOfMemory) << width << " x " << height;
    EXPECT_EQ(cudaMalloc3D(&box, {width, 1, height}), kOutOfMemory) << width << " x " << height;
  }
  driver::PitchedPointer box{};
  EXPECT_EQ(cudaMalloc3D(&box, {512, std::size_t{1} << 40, std::size_t{1} << 15}), kOutOfMemory);
  EXPECT_EQ(cudaMalloc3D(&box, {100, 3, 2}), 0);
  EXPECT_EQ(box.pitch, 512U);
  EXPECT_EQ(cudaMemset(box.pointer, 1, 512 * 3 * 2), 0);
  EXPECT_EQ(cudaMemset(box.pointer, 1, 512 * 3 * 2 + 1), 1);
}

// 4 bytes * (2^62 + 1) wraps to 4: a check of the product would pass, and the loop over the elements would leave the allocation.
TEST_F(CudaMemory, AMemsetNodeOfTooManyElementsIsRejected) {
  void* x = device_copy();
  void *graph = nullptr, *node = nullptr, *exec = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), 0);
  const driver::MemsetNodeParams p{
      .to = x, .pitch = 4, .value = 9, .element = 4, .width = (std::size_t{1} << 62) + 1, .height = 1};
  ASSERT_EQ(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &p), 0);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), 0);
  EXPECT_EQ(cudaGraphLaunch(exec, nullptr), 1);
  EXPECT_THAT(kinds(), testing::ElementsAre("OUT_OF_BOUNDS"));
  ASSERT_EQ(cudaMemcpy(output_.data(), x, 4, 2), 0);
  EXPECT_EQ(output_[0], 1);
}

TEST_F(CudaMemory, CopiesAndSetsOfMoreThanAllAddressesAreOutOfBounds) {
  void* x = device_copy();
  EXPECT_EQ(cudaMemcpy(x, input_.data(), ~std::size_t{0}, 1), 1);
  EXPECT_EQ(cudaMemset(x, 0, ~std::size_t{0} - 3), 1);
  EXPECT_THAT(kinds(), testing::ElementsAre("OUT_OF_BOUNDS", "OUT_OF_BOUNDS"));
}

// --- many allocations, and large ones ---

// The runtime keeps freed allocations, to name them in reports, and which bytes of the others have been written.
TEST_F(CudaMemory, AnAllocationThatTheKernelDoesNotUseCostsNothingAtALaunch) {
  void *x = device_copy(), *y = device_copy();
  const auto seconds = [&](int times) {
    const std::clock_t began = std::clock();  // of the processor: other programs do not count
    for (int i = 0; i < times; ++i) EXPECT_EQ(scale(y, x), 0);
    return static_cast<double>(std::clock() - began);
  };
  static_cast<void>(seconds(50));
  const double before = seconds(200);
  for (int i = 0; i < 10'000; ++i) {
    void* other = nullptr;
    ASSERT_EQ(cudaMalloc(&other, 256), 0);
    ASSERT_EQ(cudaMemset(other, 0, 256), 0);
    if (i % 2 == 0) {
      ASSERT_EQ(cudaFree(other), 0);
    }
  }
  EXPECT_LT(seconds(200), 3 * before);
  EXPECT_THAT(kinds(), testing::IsEmpty());
}

// Addresses are not given out again, so they are used up after 28670 allocations. The program gets an error that it may take
// for a leak of its own: the report states the cause, once.
TEST_F(CudaMemory, AProgramThatUsesUpTheAddressesIsTold) {
  void* x = nullptr;
  int made = 0;
  while (cudaMalloc(&x, 256) == 0) {
    ASSERT_EQ(cudaFree(x), 0);
    ASSERT_LT(++made, 30'000);
  }
  EXPECT_EQ(made, 28'670);
  EXPECT_EQ(cudaMalloc(&x, 256), kOutOfMemory);
  ASSERT_THAT(kinds(), testing::ElementsAre("LIMIT"));
  EXPECT_THAT(last_text(), testing::StartsWith("LIMIT  cudaMalloc  256 bytes\n  call 57341, cudaMalloc of 256 bytes"));
  EXPECT_THAT(last_text(), testing::HasSubstr("the addresses from 0x200000000 to 0x700000000000 are used up"));
  EXPECT_EQ(driver::runtime().finish(), 1);
}

class PinnedMemory : public CudaRuntime {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP()
        << "the address sanitizer occupies the addresses of device memory, so the host cannot have memory there";
#endif
    CudaRuntime::SetUp();
  }
  // [bytes] of the host's memory that this process occupies.
  static std::int64_t resident() {
    std::int64_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * sysconf(_SC_PAGESIZE);
  }
};

// 512 MiB, of which the kernel uses 256 bytes: the other bytes of the host are not read, and the device has no copy.
TEST_F(PinnedMemory, ALaunchAccessesOnlyWhatItsKernelAccesses) {
  constexpr std::size_t kBytes = std::size_t{512} << 20;
  void* pinned = nullptr;
  const std::int64_t before = resident();
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), 0);
  auto* const numbers = static_cast<float*>(pinned);
  std::copy(input_.begin(), input_.end(), numbers);
  void* y = numbers + kBytes / sizeof(float) - 64;
  EXPECT_EQ(scale(y, numbers), 0);
  EXPECT_EQ(numbers[kBytes / sizeof(float) - 1], 128);
  EXPECT_LT(resident() - before, std::int64_t{64} << 20);
  EXPECT_EQ(cudaFreeHost(pinned), 0);
  EXPECT_THAT(kinds(), testing::IsEmpty());
}

// A pointer that the program frees is not that of a later allocation, and the rest of the registered memory stays.
TEST_F(PinnedMemory, RegisteredMemoryIsFoundByAnyOfItsAddresses) {
  std::array<std::vector<float>, 3> arrays;
  for (auto& array : arrays) {
    array.assign(64, 3.0F);
    ASSERT_EQ(cudaHostRegister(array.data(), 256, 0), 0);
  }
  EXPECT_EQ(cudaHostRegister(arrays[1].data() + 32, 256, 0), 712) << "a part of it is registered";
  ASSERT_EQ(cudaHostUnregister(arrays[1].data()), 0);
  void *first = nullptr, *last = nullptr, *none = nullptr;
  ASSERT_EQ(cudaHostGetDevicePointer(&first, arrays[0].data() + 1, 0), 0);
  ASSERT_EQ(cudaHostGetDevicePointer(&last, arrays[2].data(), 0), 0);
  EXPECT_EQ(cudaHostGetDevicePointer(&none, arrays[1].data(), 0), 1);
  EXPECT_EQ(scale(last, first, 63), 0);
  EXPECT_EQ(arrays[2][62], 6);
  EXPECT_EQ(arrays[2][63], 3);
  EXPECT_THAT(kinds(), testing::IsEmpty());
}

// --- allocations in stream order ---

class CudaMallocAsync : public CudaRuntime {
 protected:
  void SetUp() override {
    CudaRuntime::SetUp();
    ASSERT_EQ(cudaStreamCreate(&stream_), 0);
    x_ = device_copy();
  }
  // A capture that allocates y, writes y = 2 * x, and copies y to the host.
  void capture_work() {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, 0), 0);
    ASSERT_EQ(cudaMallocAsync(&y_, sizeof input_, stream_), 0);
    ASSERT_NE(y_, nullptr);
    ASSERT_EQ(scale(y_, x_, 64, 64, stream_), 0);
    ASSERT_EQ(cudaMemcpyAsync(output_.data(), y_, 4, 2, stream_), 0);
  }
  void end_capture() {
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph_), 0);
    ASSERT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), 0);
  }
  int launch_graph() {
    output_ = {};
    return cudaGraphLaunch(exec_, stream_);
  }
  void *stream_ = nullptr, *x_ = nullptr, *y_ = nullptr, *graph_ = nullptr, *exec_ = nullptr;
};

// An allocation that is made once, at the capture, is freed by the first launch, and the second frees it again.
TEST_F(CudaMallocAsync, AGraphAllocatesAndFreesItsMemoryAtEachLaunch) {
  capture_work();
  ASSERT_EQ(cudaFreeAsync(y_, stream_), 0);
  end_capture();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(launch_graph(), 0);
    EXPECT_EQ(output_[0], 2);
  }
  EXPECT_THAT(kinds(), testing::IsEmpty());
  EXPECT_EQ(driver::runtime().finish(), 1);  // x
}

TEST_F(CudaMallocAsync, MemoryOfAGraphExistsFromItsLaunchToTheFree) {
  capture_work();
  end_capture();
  EXPECT_EQ(cudaMemcpy(output_.data(), y_, 4, 2), 1);
  EXPECT_THAT(kinds(), testing::ElementsAre("USE_AFTER_FREE"));
  EXPECT_THAT(last_text(), testing::HasSubstr("exists only while its graph runs"));
  EXPECT_EQ(launch_graph(), 0);
  EXPECT_EQ(cudaMemcpy(output_.data(), y_, 4, 2), 0);
  EXPECT_EQ(launch_graph(), 1);  // the memory of the first launch is not freed
  EXPECT_EQ(cudaFreeAsync(y_, stream_), 0);
  EXPECT_EQ(cudaMemcpy(output_.data(), y_, 4, 2), 1);
  EXPECT_EQ(launch_graph(), 0);
  EXPECT_EQ(cudaFree(y_), 0);
  EXPECT_THAT(kinds(), testing::ElementsAre("USE_AFTER_FREE", "USE_AFTER_FREE"));
}

// The values of the first launch are at the same address, and are not those of the second.
TEST_F(CudaMallocAsync, MemoryOfAGraphIsUninitializedAtEachLaunch) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, 0), 0);
  ASSERT_EQ(cudaMallocAsync(&y_, sizeof input_, stream_), 0);
  end_capture();
  EXPECT_EQ(launch_graph(), 0);
  ASSERT_EQ(cudaMemcpy(y_, x_, sizeof input_, 3), 0);
  ASSERT_EQ(cudaFree(y_), 0);
  EXPECT_EQ(launch_graph(), 0);
  ASSERT_EQ(cudaMemcpy(output_.data(), y_, 4, 2), 0);
  EXPECT_THAT(kinds(), testing::ElementsAre("UNINITIALIZED"));
}

// A free node needs memory of an allocation node, and one free node is enough.
TEST_F(CudaMallocAsync, ACaptureFreesOnlyMemoryOfAGraphAndOnce) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, 0), 0);
  EXPECT_EQ(cudaFreeAsync(nullptr, stream_), 0);
  EXPECT_EQ(cudaFreeAsync(x_, stream_), 1);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), 901);
  capture_work();
  ASSERT_EQ(cudaFreeAsync(y_, stream_), 0);
  EXPECT_EQ(cudaFreeAsync(y_, stream_), 1);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), 901);
  EXPECT_THAT(kinds(), testing::IsEmpty());
}

// The free of one graph's memory in another, as programs that capture the work in parts do.
TEST_F(CudaMallocAsync, AnotherGraphMayFreeTheMemory) {
  capture_work();
  end_capture();
  void *graph = nullptr, *exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, 0), 0);
  ASSERT_EQ(cudaFreeAsync(y_, stream_), 0);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), 0);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(launch_graph(), 0);
    EXPECT_EQ(output_[0], 2);
    EXPECT_EQ(cudaGraphLaunch(exec, stream_), 0);
  }
  EXPECT_THAT(kinds(), testing::IsEmpty());
}

TEST_F(CudaMallocAsync, OutsideOfACaptureItIsAllocatedAndFreedAtOnce) {
  EXPECT_EQ(cudaMallocAsync(&y_, 64, &y_), 400);  // no such stream
  ASSERT_EQ(cudaMallocAsync(&y_, sizeof input_, stream_), 0);
  EXPECT_EQ(scale(y_, x_, 64, 64, stream_), 0);
  EXPECT_EQ(cudaFreeAsync(y_, &y_), 400);
  EXPECT_EQ(cudaFreeAsync(y_, stream_), 0);
  EXPECT_EQ(cudaFreeAsync(y_, stream_), 1);
  EXPECT_THAT(kinds(), testing::ElementsAre("DOUBLE_FREE"));
}

}  // namespace kvscope::driver_tests::face_memory_test
