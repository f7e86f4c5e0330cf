// CudaGpu without a GPU, on a fake driver that runs the kernels (fake_driver.cpp): the messages when something is
// missing, and that kernels reach the driver with the cases' parameters.
#include "gpu/launch/cuda_gpu.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu/launch/device_error.h"
#include "gpu/verify/run_case.h"
#include "tests/gpu/launch/fake_driver.h"

namespace kvscope::gpu::cuda_gpu_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

void behave(const test::FakeBehavior& behavior) {
  void* library = dlopen(KVSCOPE_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  reinterpret_cast<test::SetFakeBehavior>(dlsym(library, test::kSetFakeBehavior))(&behavior);
}

CudaGpuOptions stand_in(const test::FakeBehavior& behavior = {}, int ordinal = 0) {
  behave(behavior);
  return {.ordinal = ordinal, .library = KVSCOPE_FAKE_DRIVER};
}

template <class Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CudaGpu, NoDriverIsSaidWithTheLoadersWordsAndTheWayOut) {
  const std::string error = error_of([] { CudaGpu({.ordinal = 0, .library = "libcuda_that_is_not_there.so.1"}); });
  EXPECT_THAT(error, AllOf(HasSubstr("no CUDA driver on this machine"), HasSubstr("libcuda_that_is_not_there.so.1"),
                           HasSubstr("virtual GPU")));
}

TEST(CudaGpu, ALibraryWithoutTheFunctionsIsTooOldAndNamesThem) {
  const std::string error = error_of([] { CudaGpu({.ordinal = 0, .library = "libm.so.6"}); });
  EXPECT_THAT(error, AllOf(HasSubstr("cuTensorMapEncodeTiled"), HasSubstr("older than CUDA 12.0")));
}

TEST(CudaGpu, ADriverThatCannotStartSpeaksForItself) {
  const CudaGpuOptions options = stand_in({.init = 35});
  EXPECT_EQ(error_of([&] { CudaGpu{options}; }),
            "cuInit: CUDA_ERROR_OF_THE_FAKE_DRIVER (35): the fake driver returned this on request");
}

TEST(CudaGpu, AMachineWithoutGpuAndAnOrdinalThatIsNotThere) {
  CudaGpuOptions options = stand_in({.gpus = 0});
  EXPECT_EQ(error_of([&] { CudaGpu{options}; }), "the driver finds no GPU on this machine");
  options = stand_in({.gpus = 2}, 2);
  EXPECT_EQ(error_of([&] { CudaGpu{options}; }), "no GPU 2 on this machine: 0 to 1");
}

TEST(CudaGpu, AGpuOfAnotherArchitectureIsRejectedByName) {
  const CudaGpuOptions options = stand_in({.major = 8, .minor = 0});
  EXPECT_THAT(error_of([&] { CudaGpu{options}; }),
              AllOf(HasSubstr("Imitation H200 is sm_80"), HasSubstr("sm_90a and sm_100a")));
}

TEST(CudaGpu, AnOpenedGpuIsDescribed) {
  const CudaGpu device(stand_in());
  EXPECT_EQ(device.info().name, "Imitation H200");
  EXPECT_EQ(device.info().architecture, "sm_90a");
  EXPECT_EQ(device.info().driver, "CUDA 13.0");
  EXPECT_EQ(device.info().multiprocessors, 132);
  EXPECT_EQ(device.info().memory_bytes, std::int64_t{1} << 34);
}

TEST(CudaGpu, BytesGoThereAndBack) {
  CudaGpu device(stand_in());
  const std::vector<int> values = {3, 1, 4, 1, 5};
  const DeviceArray array = device.upload_values("digits", values);
  EXPECT_EQ(array.download_as<int>(), values);
  const DeviceArray twin = device.filled("twin", array.bytes(), std::byte{0});
  device.copy(twin.address(), array.address(), array.bytes());
  EXPECT_EQ(twin.download_as<int>(), values);
}

TEST(CudaGpu, ARejectedDriverCallNamesTheCallItsSizeAndTheDriversMessage) {
  CudaGpu device(stand_in());
  behave({.allocate = 2});
  EXPECT_EQ(error_of([&] { (void)device.allocate(4096, "pool"); }),
            "cuMemAlloc of 4096 bytes for 'pool': CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  behave({.encode = 1});
  TensorMap map{.data_type = TmaDataType::bf16, .rank = 2, .base = 4096};
  map.dims = {64, 8};
  map.strides = {128};
  map.box = {64, 8};
  EXPECT_THAT(error_of([&] { (void)device.encode(map); }), HasSubstr("cuTensorMapEncodeTiled: CUDA_ERROR"));
  behave({.module_load = 218});
  EXPECT_THAT(error_of([&] { device.enqueue({.kernel = "gather_rows", .entry = "any"}, {}); }),
              AllOf(HasSubstr("cuModuleLoadDataEx of kernel gather_rows (sm_90a, driver CUDA 13.0)"),
                    HasSubstr("unsupported version")));
  behave({});
  EXPECT_THAT(error_of([&] { device.enqueue({.kernel = "gather_rows", .entry = "no_such_entry"}, {}); }),
              HasSubstr("cuModuleGetFunction of 'no_such_entry' in kernel gather_rows"));
  EXPECT_THAT(error_of([&] { device.enqueue({.kernel = "no_such_kernel", .entry = "any"}, {}); }),
              HasSubstr("no kernel 'no_such_kernel': there are"));
}

TEST(CudaGpu, AMapThatBreaksARuleNeverReachesTheDriver) {
  CudaGpu device(stand_in());
  TensorMap map{.data_type = TmaDataType::bf16, .rank = 2, .base = 4097};
  map.dims = {64, 8};
  map.strides = {128};
  map.box = {64, 8};
  try {
    static_cast<void>(device.encode(map));
    FAIL();
  } catch (const GeometryError& error) {
    EXPECT_THAT(error.what(), StartsWith("tensor map of a kernel's argument rejected: "));
  }
}

// The small case of every kernel through the driver's calls: parameter blocks, shapes, shared memory and tensor maps.
class ThroughTheDriver : public ::testing::TestWithParam<const Case*> {};

TEST_P(ThroughTheDriver, GivesWhatTheModelGives) {
  CudaGpu device(stand_in());
  const CaseResult result = run_case(*GetParam(), device);
  EXPECT_THAT(result.faults, ElementsAre());
}

std::vector<const Case*> demo_cases() {
  std::vector<const Case*> chosen;
  for (const Case* c : select_cases("", ""))
    if (c->demo && c->architecture == "sm_90a") chosen.push_back(c);
  return chosen;
}
INSTANTIATE_TEST_SUITE_P(Kernels, ThroughTheDriver, ::testing::ValuesIn(demo_cases()),
                         [](const auto& test) { return test.param->kernel + "_" + test.param->name; });

TEST(CudaGpu, AKernelThatFailsIsAFaultOfItsLaunchInTheDriversWords) {
  CudaGpu device(stand_in());
  behave({.synchronize = 700});
  const CaseResult result = run_case(*demo_cases().front(), device);
  ASSERT_FALSE(result.passed());
  EXPECT_THAT(result.faults.front(), HasSubstr("cuCtxSynchronize: CUDA_ERROR_OF_THE_FAKE_DRIVER (700)"));
}

}  // namespace
}  // namespace kvscope::gpu::cuda_gpu_test
