#include "gpu/launch/virtual_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu/launch/device_error.h"
#include "gpu/launch/kernel_images.h"

namespace kvscope::gpu::virtual_gpu_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// out[i] = in[i] + 1 for i < n; lane n reads past the end if `past` is set.
constexpr const char* kAddOne = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry add_one(.param .align 8 .b8 p[24]) {
  .reg .b64 %rd<6>;
  .reg .b32 %r<6>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [p];
  ld.param.u64 %rd2, [p+8];
  ld.param.u32 %r1, [p+16];
  mov.u32 %r2, %tid.x;
  setp.ge.s32 %p1, %r2, %r1;
  @%p1 bra DONE;
  mul.wide.s32 %rd3, %r2, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r3, [%rd4];
  add.s32 %r4, %r3, 1;
  add.s64 %rd5, %rd2, %rd3;
  st.global.u32 [%rd5], %r4;
DONE:
  ret;
}
)";

struct Params {
  const int* in;
  int* out;
  std::int32_t n;
};

struct AddOne {
  explicit AddOne(VirtualGpuOptions options = {}) : device(std::move(options)) { device.use_ptx("add", kAddOne); }
  Outcome run(std::int32_t n) {
    const Params params{in.as<const int>(), out.as<int>(), n};
    return device.launch({.kernel = "add", .entry = "add_one", .block = {32, 1, 1}}, bytes_of(params));
  }
  VirtualGpu device;
  DeviceArray in = device.upload_values<int>("in", {1, 2, 3, 4, 5, 6, 7, 8});
  DeviceArray out = device.filled("out", 32, std::byte{0});
};

TEST(VirtualGpu, RunsAKernelAndCountsWhatItCost) {
  AddOne add;
  const Outcome outcome = add.run(8);
  EXPECT_THAT(outcome.faults, IsEmpty());
  EXPECT_EQ(add.out.download_as<int>(), (std::vector<int>{2, 3, 4, 5, 6, 7, 8, 9}));
  ASSERT_TRUE(outcome.costs.has_value());
  EXPECT_EQ(outcome.costs->sectors, 2);  // 32 bytes in, 32 bytes out
  EXPECT_EQ(outcome.costs->ideal_sectors, 2);
  EXPECT_EQ(outcome.costs->wavefronts, 0);
}

TEST(VirtualGpu, WhatACheckerReportsIsAFaultOfTheLaunch) {
  AddOne add;
  EXPECT_THAT(add.run(9).faults, ElementsAre(HasSubstr("OUT_OF_BOUNDS"), HasSubstr("OUT_OF_BOUNDS")));
}

TEST(VirtualGpu, ReadsOfUninitializedBytesAreFaults) {
  AddOne add;
  add.in = DeviceArray(add.device, add.device.allocate(32, "in"), 32);
  EXPECT_THAT(add.run(8).faults, ElementsAre(HasSubstr("UNINITIALIZED")));
}

TEST(VirtualGpu, AParameterBlockOfAnotherSizeIsRejected) {
  AddOne add;
  const std::int64_t wrong = 0;
  EXPECT_THROW(add.device.launch({.kernel = "add", .entry = "add_one", .block = {32, 1, 1}}, bytes_of(wrong)),
               DeviceError);
}

TEST(VirtualGpu, AKernelAndAnArchitectureThatAreNotThereAreNamed) {
  try {
    VirtualGpu device;
    device.launch({.kernel = "no_such_kernel", .entry = "x"}, {});
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no kernel 'no_such_kernel': there are"));
  }
  EXPECT_THROW(VirtualGpu({.architecture = "sm_80"}), DeviceError);
  EXPECT_THROW((void)kernel_image("gather_rows", "sm_100a"), DeviceError);
}

TEST(VirtualGpu, ARejectedTensorMapIsOfAKernelsArgument) {
  VirtualGpu device;
  TensorMap map{.data_type = TmaDataType::bf16, .rank = 1, .base = 4097};
  map.dims = {64};
  map.box = {64};
  try {
    static_cast<void>(device.encode(map));
    FAIL();
  } catch (const GeometryError& error) {
    EXPECT_THAT(error.what(), StartsWith("tensor map of a kernel's argument rejected: "));
  }
}

TEST(VirtualGpu, MemoryIsGivenBackOnce) {
  VirtualGpu device;
  std::uint64_t address = 0;
  {
    DeviceArray a = device.filled("a", 64, std::byte{1});
    address = a.address();
    DeviceArray b = std::move(a);
    EXPECT_EQ(a.address(), 0U);  // a moved-from array is empty
    EXPECT_EQ(b.download(), std::vector<std::byte>(64, std::byte{1}));
  }
  std::vector<std::byte> bytes(1);
  EXPECT_ANY_THROW(device.read(address, bytes));
}

TEST(KernelImages, EachIsPtxForTheTargetInItsName) {
  EXPECT_THAT(kernel_images(), SizeIs(::testing::Ge(10U)));
  for (const KernelImage& image : kernel_images()) {
    EXPECT_THAT(std::string(image.bytes), HasSubstr(".target " + std::string(image.architecture)));
    EXPECT_EQ(image.bytes.data()[image.bytes.size()], '\0') << image.kernel;  // the driver expects a C string
  }
}

TEST(KernelImages, MachineCodeIsElfOfAKernelThatHasPtx) {
  if (machine_images().empty()) GTEST_SKIP() << "built without nvcc or under a sanitizer: there is none";
  for (const KernelImage& image : machine_images()) {
    EXPECT_TRUE(
        image.bytes.starts_with("\x7f"
                                "ELF"))
        << image.kernel;
    EXPECT_NO_THROW((void)kernel_image(image.kernel, "sm_90a")) << image.kernel;
  }
  for (const KernelImage& image : kernel_images())
    EXPECT_NE(machine_image(image.kernel, image.architecture), nullptr) << image.kernel;
  EXPECT_EQ(machine_image("paged_prefill", "sm_100a"), nullptr);  // wgmma
}

}  // namespace
}  // namespace kvscope::gpu::virtual_gpu_test
