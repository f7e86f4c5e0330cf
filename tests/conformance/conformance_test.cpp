// Every case of every kernel: on the virtual GPU with all checkers, with copies that land as late as possible, as early
// as possible, and at random points; and on hardware if there is a GPU of this architecture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "gpu/launch/cuda_gpu.h"
#include "gpu/launch/device_error.h"
#include "gpu/launch/virtual_gpu.h"
#include "gpu/verify/run_case.h"

namespace kvscope::gpu::conformance_test {
namespace {

using ::testing::ElementsAre;

class Conformance : public ::testing::TestWithParam<const Case*> {};

TEST_P(Conformance, OnTheVirtualGpu) {
  VirtualGpu device({.architecture = GetParam()->architecture});
  EXPECT_THAT(run_case(*GetParam(), device).faults, ElementsAre());
}

std::vector<const Case*> every_case() {
  return select_cases("", "");
}
std::string name_of(const Case& c) {
  return c.kernel + "_" + c.name;
}
INSTANTIATE_TEST_SUITE_P(Kernels, Conformance, ::testing::ValuesIn(every_case()),
                         [](const auto& test) { return name_of(*test.param); });

// A kernel that breaks the driver's context makes its later cases fail too; gpu-check runs each case in a process.
class OnHardware : public ::testing::TestWithParam<std::string> {};

TEST_P(OnHardware, EveryCaseOfTheKernel) {
  std::unique_ptr<CudaGpu> device;
  try {
    device = std::make_unique<CudaGpu>();
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
  for (const Case* c : select_cases(GetParam(), "")) {
    if (device->info().architecture != c->architecture) continue;  // gather4 on sm_90
    EXPECT_THAT(run_case(*c, *device).faults, ElementsAre()) << c->name;
  }
}

std::vector<std::string> every_kernel() {
  std::vector<std::string> names;
  for (const Kernel& kernel : all_kernels()) names.push_back(kernel.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Kernels, OnHardware, ::testing::ValuesIn(every_kernel()),
                         [](const auto& test) { return test.param; });

// The budgets are those of the late schedule; values must not depend on the schedule.
class Schedules : public ::testing::TestWithParam<const Case*> {};

TEST_P(Schedules, EarlyAndSeededGiveTheSame) {
  for (const auto& [policy, seed] : {std::pair{ptx::Policy::early, 0U},
                                     {ptx::Policy::seeded, 1U},
                                     {ptx::Policy::seeded, 2U},
                                     {ptx::Policy::seeded, 3U}}) {
    VirtualGpu device({.architecture = GetParam()->architecture, .policy = policy, .seed = seed});
    EXPECT_THAT(run_case(*GetParam(), device, Budgets::left_alone).faults, ElementsAre()) << "seed " << seed;
  }
}

std::vector<const Case*> demo_cases() {
  std::vector<const Case*> chosen;
  for (const Case* c : every_case())
    if (c->demo) chosen.push_back(c);
  return chosen;
}
INSTANTIATE_TEST_SUITE_P(Kernels, Schedules, ::testing::ValuesIn(demo_cases()),
                         [](const auto& test) { return name_of(*test.param); });

TEST(Cases, EveryKernelHasOneForTheDemoAndNoNameTwice) {
  for (const Kernel& kernel : all_kernels()) {
    std::set<std::string> names;
    int demos = 0;
    for (const Case& c : kernel.cases) {
      EXPECT_EQ(c.kernel, kernel.name);
      EXPECT_TRUE(names.insert(c.name).second) << name_of(c);
      EXPECT_FALSE(c.what.empty()) << name_of(c);
      demos += c.demo ? 1 : 0;
    }
    EXPECT_EQ(demos, 1) << kernel.name;
  }
  EXPECT_EQ(all_kernels().size(), 10U);
}

}  // namespace
}  // namespace kvscope::gpu::conformance_test
