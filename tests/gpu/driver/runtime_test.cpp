// Programs of the CUDA runtime, right and wrong, on the functions of libcudart: their results, status codes and reports.
#include "gpu/driver/runtime.h"

#include <gmock/gmock.h>

#include <array>

#include "tests/gpu/driver/cuda_runtime_fixture.h"

namespace kvscope::driver_tests::runtime_test {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(CudaRuntime, ACleanProgramHasResultsAndNoFindings) {
  void* x = device_copy();
  void* y = nullptr;
  ASSERT_EQ(cudaMalloc(&y, sizeof output_), 0);
  EXPECT_EQ(scale(y, x), 0);
  EXPECT_EQ(cudaDeviceSynchronize(), 0);
  EXPECT_EQ(cudaMemcpy(output_.data(), y, sizeof output_, 2), 0);
  EXPECT_EQ(output_[0], 2);
  EXPECT_EQ(output_[63], 128);
  EXPECT_EQ(cudaFree(x), 0);
  EXPECT_EQ(cudaFree(y), 0);
  EXPECT_EQ(driver::runtime().finish(), 0);
}

TEST_F(CudaRuntime, TheShapeOfALaunchIsPushedAndPopped) {
  CudaDim3 grid, block;
  std::size_t shared = 0;
  void* stream = nullptr;
  int handle = 0;
  ASSERT_EQ(__cudaPushCallConfiguration({2, 3, 4}, {5, 6, 7}, 80, &handle), 0U);
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 0);
  EXPECT_EQ(grid.z, 4U);
  EXPECT_EQ(block.y, 6U);
  EXPECT_EQ(shared, 80U);
  EXPECT_EQ(stream, &handle);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 52);  // nothing pushed
}

TEST_F(CudaRuntime, ReadsOfDeviceMemoryThatNothingHasWrittenAreReported) {
  void *x = nullptr, *y = nullptr;
  ASSERT_EQ(cudaMalloc(&x, 256), 0);
  ASSERT_EQ(cudaMalloc(&y, 256), 0);
  ASSERT_EQ(cudaMemcpy(x, input_.data(), 252, 1), 0);  // all but the last number
  EXPECT_EQ(scale(y, x, 63), 0);
  EXPECT_THAT(kinds(), ElementsAre());
  EXPECT_EQ(scale(y, x, 64), 0);
  EXPECT_THAT(kinds(), ElementsAre("UNINITIALIZED"));
  EXPECT_THAT(last_text(), HasSubstr("allocated by call 1, cudaMalloc of 256 bytes"));
}

// The check of one launch does not know what the host has written: only the program's own check takes part.
TEST_F(CudaRuntime, TheCheckOfGlobalMemoryKnowsTheCopiesOfTheHost) {
  driver::RuntimeOptions options;
  options.engine.checks = {"all", "global_init"};
  start(options);
  void *x = device_copy(), *y = nullptr;
  ASSERT_EQ(cudaMalloc(&y, 256), 0);
  EXPECT_EQ(scale(y, x, 63), 0);
  EXPECT_EQ(scale(x, y, 63), 0);  // what a kernel has written
  EXPECT_THAT(kinds(), ElementsAre());
  EXPECT_EQ(scale(x, y, 64), 0);
  EXPECT_THAT(kinds(), ElementsAre("UNINITIALIZED"));
}

// The mark moves with the bytes: y is as incomplete as x.
TEST_F(CudaRuntime, ACopyOfUnwrittenBytesStaysUnwritten) {
  void *x = nullptr, *y = nullptr;
  ASSERT_EQ(cudaMalloc(&x, 256), 0);
  ASSERT_EQ(cudaMalloc(&y, 256), 0);
  ASSERT_EQ(cudaMemset(x, 0, 100), 0);
  ASSERT_EQ(cudaMemcpy(y, x, 256, 3), 0);
  ASSERT_EQ(cudaMemcpy(output_.data(), y, 100, 2), 0);
  EXPECT_THAT(kinds(), ElementsAre());
  ASSERT_EQ(cudaMemcpy(output_.data(), y, 101, 2), 0);
  EXPECT_THAT(kinds(), ElementsAre("UNINITIALIZED"));
  EXPECT_THAT(last_text(), HasSubstr("0x300000064"));
}

TEST_F(CudaRuntime, AHostPointerInAKernelIsNamed) {
  void* y = device_copy();
  EXPECT_EQ(scale(y, input_.data()), 0);
  ASSERT_FALSE(kinds().empty());
  EXPECT_EQ(kinds().front(), "HOST_POINTER");
  EXPECT_THAT(last_text(), HasSubstr("is host memory"));
  EXPECT_EQ(cudaDeviceSynchronize(), 700);
  EXPECT_EQ(cudaMemcpy(output_.data(), y, 4, 2), 700);  // every later call returns it
  EXPECT_EQ(cudaGetLastError(), 700);
  EXPECT_EQ(cudaDeviceReset(), 0);
  EXPECT_EQ(cudaDeviceSynchronize(), 0);
}

TEST_F(CudaRuntime, AnAccessPastTheEndNamesTheAllocation) {
  void* x = device_copy();
  void* y = device_copy();
  EXPECT_EQ(scale(y, x, 65, 65), 0);
  ASSERT_FALSE(kinds().empty());
  EXPECT_EQ(kinds().front(), "OUT_OF_BOUNDS");
  EXPECT_THAT(driver::runtime().reports().all().front().text,
              HasSubstr("allocated by call 1, cudaMalloc of 256 bytes"));
}

TEST_F(CudaRuntime, RacesAreReportedAndTheProgramContinues) {
  void* d = device_copy();
  EXPECT_EQ(launch(&reverse_function, {&d}), 0);
  EXPECT_THAT(kinds(), testing::Contains(testing::StartsWith("RACE")));
  EXPECT_EQ(cudaDeviceSynchronize(), 0);
}

TEST_F(CudaRuntime, UsesAfterFreeNameBothCalls) {
  void* x = device_copy();
  void* y = device_copy();
  EXPECT_EQ(cudaFree(x), 0);
  EXPECT_EQ(cudaMemcpy(output_.data(), x, 4, 2), 1);
  EXPECT_EQ(kinds().back(), "USE_AFTER_FREE");
  EXPECT_THAT(last_text(), HasSubstr("freed by call 5, cudaFree"));
  EXPECT_EQ(scale(y, x), 0);
  EXPECT_EQ(kinds().back(), "USE_AFTER_FREE");
  EXPECT_THAT(last_text(), HasSubstr("freed by call 5, cudaFree"));
}

TEST_F(CudaRuntime, WrongFreesAreReported) {
  void* x = device_copy();
  EXPECT_EQ(cudaFree(nullptr), 0);
  EXPECT_EQ(cudaFree(static_cast<char*>(x) + 4), 1);
  EXPECT_EQ(cudaFree(input_.data()), 1);
  EXPECT_EQ(cudaFreeHost(x), 1);
  EXPECT_EQ(cudaFree(x), 0);
  EXPECT_EQ(cudaFree(x), 1);
  EXPECT_EQ(cudaGetLastError(), 1);
  EXPECT_EQ(cudaGetLastError(), 0);
  EXPECT_THAT(kinds(), ElementsAre("INVALID_FREE", "INVALID_FREE", "INVALID_FREE", "DOUBLE_FREE"));
}

TEST_F(CudaRuntime, LeaksAreReportedAtTheEnd) {
  static_cast<void>(device_copy());
  EXPECT_EQ(driver::runtime().finish(), 1);
  EXPECT_THAT(kinds(), ElementsAre("LEAK"));
}

TEST_F(CudaRuntime, CopiesInTheWrongDirectionAreReported) {
  void* x = device_copy();
  EXPECT_EQ(cudaMemcpy(x, input_.data(), 4, 0), 1);  // host to host
  EXPECT_EQ(kinds().back(), "DEVICE_POINTER");
  EXPECT_EQ(cudaMemcpy(output_.data(), input_.data(), 4, 2), 1);  // from the device
  EXPECT_EQ(kinds().back(), "HOST_POINTER");
  EXPECT_EQ(cudaMemcpy(static_cast<char*>(x) + 4, input_.data(), 256, 1), 1);
  EXPECT_EQ(kinds().back(), "OUT_OF_BOUNDS");
  EXPECT_EQ(cudaMemcpy(output_.data(), x, 256, 4), 0);  // by the addresses
  EXPECT_EQ(output_[63], 64);
}

TEST_F(CudaRuntime, RowsOfAPitchedCopyAreApart) {
  void* rows = nullptr;
  std::size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&rows, &pitch, 12, 5), 0);
  EXPECT_EQ(pitch, 512U);
  ASSERT_EQ(cudaMemcpy2D(rows, pitch, input_.data(), 12, 12, 5, 1), 0);
  float third = 0;
  ASSERT_EQ(cudaMemcpy(&third, static_cast<char*>(rows) + 2 * pitch, 4, 2), 0);
  EXPECT_EQ(third, input_[6]);
  EXPECT_EQ(cudaMemcpy2D(rows, 8, input_.data(), 12, 12, 5, 1), 12);  // a row is wider than the pitch
}

TEST_F(CudaRuntime, ManagedMemoryAndVariablesAreSharedWithTheHost) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer occupies the addresses of device memory, so the host cannot have memory there";
#endif
  const std::string container = fat_container({{.payload = std::string(kManagedPtx)}});
  FatWrapper wrapper{.container = container.data()};
  void* counter = nullptr;
  void** binary = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(binary, &use_function, nullptr, "use", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterVar(binary, &table_variable, nullptr, "table", 0, 16, 0, 0);
  __cudaRegisterManagedVar(binary, &counter, nullptr, "counter", 0, 4, 0, 0);
  void *y = nullptr, *x = nullptr;
  ASSERT_EQ(cudaMallocManaged(&x, 256, 1), 0);
  ASSERT_EQ(cudaMallocHost(&y, 256), 0);
  for (int i = 0; i < 64; ++i) static_cast<float*>(x)[i] = static_cast<float>(i);
  EXPECT_EQ(scale(y, x), 0);
  EXPECT_EQ(static_cast<float*>(y)[63], 126);

  ASSERT_EQ(__cudaInitModule(binary), 1);
  ASSERT_NE(counter, nullptr);
  EXPECT_EQ(*static_cast<int*>(counter), 5);
  *static_cast<int*>(counter) = 100;
  const std::array<int, 4> table{1, 2, 3, 4};
  ASSERT_EQ(cudaMemcpyToSymbol(&table_variable, table.data(), sizeof table, 0, 1), 0);
  EXPECT_EQ(launch(&use_function, {&y}, 4), 0);
  EXPECT_EQ(static_cast<int*>(y)[2], 103);
  EXPECT_EQ(*static_cast<int*>(counter), 7);
  EXPECT_EQ(cudaMemcpyToSymbol(&table_variable, table.data(), 16, 4, 1), 1);  // past its end
  EXPECT_EQ(cudaFree(x), 0);
  EXPECT_EQ(cudaFreeHost(y), 0);
  EXPECT_EQ(driver::runtime().finish(), 0);
}

TEST_F(CudaRuntime, RegisteredHostMemoryHasADeviceAddress) {
  void* x = nullptr;
  void* y = device_copy();
  ASSERT_EQ(cudaHostRegister(input_.data(), sizeof input_, 0), 0);
  EXPECT_EQ(cudaHostRegister(input_.data(), sizeof input_, 0), 712);
  ASSERT_EQ(cudaHostGetDevicePointer(&x, input_.data() + 1, 0), 0);
  EXPECT_EQ(scale(y, x, 63), 0);
  ASSERT_EQ(cudaMemcpy(output_.data(), y, 252, 2), 0);
  EXPECT_EQ(output_[0], 4);
  EXPECT_EQ(cudaHostUnregister(input_.data()), 0);
  EXPECT_EQ(cudaHostUnregister(input_.data()), 713);
}

TEST_F(CudaRuntime, ACapturedGraphRunsAtEachLaunchAndNotBefore) {
  void* x = device_copy();
  void* y = device_copy();
  void *first = nullptr, *second = nullptr, *event = nullptr, *graph = nullptr, *exec = nullptr;
  ASSERT_EQ(cudaStreamCreate(&first), 0);
  ASSERT_EQ(cudaStreamCreate(&second), 0);
  ASSERT_EQ(cudaEventCreate(&event), 0);
  ASSERT_EQ(cudaStreamBeginCapture(first, 0), 0);
  EXPECT_EQ(scale(y, x, 64, 64, first), 0);
  ASSERT_EQ(cudaEventRecord(event, first), 0);
  ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), 0);  // joins the capture
  EXPECT_EQ(scale(x, y, 64, 64, second), 0);
  ASSERT_EQ(cudaEventRecord(event, second), 0);
  ASSERT_EQ(cudaStreamWaitEvent(first, event, 0), 0);  // joins the streams again
  ASSERT_EQ(cudaStreamEndCapture(first, &graph), 0);
  ASSERT_EQ(cudaMemcpy(output_.data(), x, 4, 2), 0);
  EXPECT_EQ(output_[0], 1);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), 0);
  EXPECT_EQ(cudaGraphLaunch(exec, first), 0);
  EXPECT_EQ(cudaGraphLaunch(exec, first), 0);
  ASSERT_EQ(cudaMemcpy(output_.data(), x, 4, 2), 0);
  EXPECT_EQ(output_[0], 16);
  EXPECT_EQ(scale(y, x, 64, 64, &exec), 400);  // no such stream
}

TEST_F(CudaRuntime, ACapturedLaunchOfAGraphOutlivesTheInstance) {
  void* x = device_copy();
  void* y = device_copy();
  void *stream = nullptr, *inner = nullptr, *outer = nullptr, *inner_exec = nullptr, *outer_exec = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), 0);
  ASSERT_EQ(cudaStreamBeginCapture(stream, 0), 0);
  EXPECT_EQ(scale(y, x, 64, 64, stream), 0);
  ASSERT_EQ(cudaStreamEndCapture(stream, &inner), 0);
  ASSERT_EQ(cudaGraphInstantiate(&inner_exec, inner, 0), 0);
  ASSERT_EQ(cudaStreamBeginCapture(stream, 0), 0);
  EXPECT_EQ(cudaGraphLaunch(inner_exec, stream), 0);
  ASSERT_EQ(cudaStreamEndCapture(stream, &outer), 0);
  ASSERT_EQ(cudaGraphInstantiate(&outer_exec, outer, 0), 0);
  ASSERT_EQ(cudaGraphExecDestroy(inner_exec), 0);
  EXPECT_EQ(cudaGraphLaunch(outer_exec, stream), 0);
  ASSERT_EQ(cudaMemcpy(output_.data(), y, 4, 2), 0);
  EXPECT_EQ(output_[0], 2);
}

TEST_F(CudaRuntime, ElapsedTimeIsNeverZero) {
  void *begin = nullptr, *end = nullptr;
  float milliseconds = 0;
  ASSERT_EQ(cudaEventCreate(&begin), 0);
  ASSERT_EQ(cudaEventCreate(&end), 0);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), 400);  // not recorded
  ASSERT_EQ(cudaEventRecord(begin, nullptr), 0);
  ASSERT_EQ(cudaEventRecord(end, nullptr), 0);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), 0);
  EXPECT_GT(milliseconds, 0);
}

TEST_F(CudaRuntime, RulesOfALaunchAreChecked) {
  void* x = device_copy();
  EXPECT_EQ(scale(x, x, 64, 2048), 9);
  EXPECT_EQ(kinds().back(), "INVALID_LAUNCH");
  EXPECT_EQ(launch(&container_, {&x}), 98);
  EXPECT_EQ(kinds().back(), "NO_KERNEL");
}

TEST_F(CudaRuntime, CodeWithoutPtxAndUnsupportedFunctionsAreNamed) {
  const std::string machine_code = fat_container({{.kind = 2, .architecture = 80, .payload = "code"}});
  const FatWrapper wrapper{.container = machine_code.data()};
  void** binary = __cudaRegisterFatBinary(const_cast<FatWrapper*>(&wrapper));
  char function = 0;
  __cudaRegisterFunction(binary, &function, nullptr, "scale", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  EXPECT_EQ(launch(&function, {}), 209);
  EXPECT_THAT(last_text(), HasSubstr("machine code for sm_80; no PTX"));
  EXPECT_EQ(cudaMallocArray(), 801);
  EXPECT_THAT(last_text(), HasSubstr("cudaMallocArray"));
}

TEST_F(CudaRuntime, TensorMapsAreEncodedThroughTheDriverEntryPoint) {
  void* encode = nullptr;
  int found = -1;
  ASSERT_EQ(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, 0, &found), 0);
  ASSERT_EQ(found, 0);
  using Encode = int (*)(void*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*,
                         const std::uint32_t*, const std::uint32_t*, int, int, int, int);
  void* x = device_copy();
  alignas(64) std::array<char, 128> map{};
  const std::array<std::uint64_t, 2> dims{8, 8};
  const std::array<std::uint64_t, 1> strides{32};
  const std::array<std::uint32_t, 2> box{8, 4}, wide{300, 4}, element_strides{1, 1};
  const auto call = reinterpret_cast<Encode>(encode);
  EXPECT_EQ(call(map.data(), 7, 2, x, dims.data(), strides.data(), box.data(), element_strides.data(), 0, 0, 0, 0), 0);
  EXPECT_EQ(call(map.data(), 7, 2, x, dims.data(), strides.data(), wide.data(), element_strides.data(), 0, 0, 0, 0), 1);
  EXPECT_EQ(kinds().back(), "TENSOR_MAP");
  EXPECT_THAT(last_text(), HasSubstr("tensor map of the program rejected"));
  ASSERT_EQ(cudaGetDriverEntryPoint("cuTensorMapReplaceAddress", &encode, 0, &found), 0);
  map.fill(0);
  EXPECT_EQ(reinterpret_cast<int (*)(void*, void*)>(encode)(map.data(), x), 1);
  EXPECT_THAT(last_text(), HasSubstr("tensor map of the program rejected: byte 0: this is not a tensor map"));
}

TEST_F(CudaRuntime, OccupancyIsLimitedByThreadsAndSharedMemory) {
  int blocks = 0;
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &scale_function, 256, 0), 0);
  EXPECT_EQ(blocks, 8);  // 2048 threads
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &scale_function, 32, 100'000), 0);
  EXPECT_EQ(blocks, 2);  // 2 * (100000 + 1024) of 233472 bytes
  ASSERT_EQ(cudaDeviceGetAttribute(&blocks, 97, 0), 0);
  EXPECT_EQ(blocks, 232448);
}

TEST(CudaStatus, HasTheNamesAndTextsOfTheRuntime) {
  EXPECT_STREQ(cudaGetErrorName(700), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(700), "an illegal memory access was encountered");
  EXPECT_STREQ(cudaGetErrorString(5555), "unrecognized error code");
}

}  // namespace kvscope::driver_tests::runtime_test
