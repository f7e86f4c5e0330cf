// Sizes of libcudart's memory functions: products of the program's numbers that do not fit 64 bits.
#include <array>
#include <cstdint>

#include "gpu/driver/cuda_types.h"
#include "tests/gpu/driver/cuda_runtime_fixture.h"

extern "C" {
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

}  // namespace kvscope::driver_tests::face_memory_test
