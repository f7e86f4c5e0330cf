// Kernels with one mistake in each (mutants/): their conformance cases must fail in the expected way. The kernel
// without the mistake passes the same cases, so the failure is caused by the mistake alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gpu/launch/virtual_gpu.h"
#include "gpu/verify/run_case.h"
#include "tests/conformance/kept_mutants.h"

namespace kvscope::gpu::mutants_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class Mutants : public ::testing::TestWithParam<std::size_t> {};

// Instruction budgets are not checked here; the verdict contains the findings of a case.
TEST_P(Mutants, FailTheirCases) {
  const KeptMutant& mutant = kept_mutants()[GetParam()];
  const Kernel& kernel = kernel_of(mutant.base);
  const std::string ptx = mutated_ptx(mutant);
  ASSERT_THAT(mutant.cases, Not(IsEmpty()));
  for (const std::string& name : mutant.cases) {
    const Case& c = case_of(kernel, name);
    WatchedDevice device(c.architecture, kernel.name, ptx);
    const Verdict verdict = c.run(device);
    EXPECT_THAT(verdict.faults, Not(IsEmpty())) << name << " passes although " << mutant.mistake;
    if (mutant.fails == "values") {
      EXPECT_THAT(device.reports, ElementsAre()) << name << ": " << mutant.mistake;
    } else {
      EXPECT_THAT(device.reports, Contains(StartsWith(mutant.fails))) << name << ": " << mutant.mistake;
    }
  }
}

std::vector<std::size_t> numbers() {
  std::vector<std::size_t> all(kept_mutants().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Mutants, ::testing::ValuesIn(numbers()),
                         [](const auto& test) { return kept_mutants()[test.param].name; });

TEST(MutantBases, PassTheCasesThatTheirMutantsFail) {
  std::map<std::string, std::set<std::string>> cases;
  for (const KeptMutant& mutant : kept_mutants()) cases[mutant.base].insert(mutant.cases.begin(), mutant.cases.end());
  for (const auto& [base, names] : cases) {
    const Kernel& kernel = kernel_of(base);
    for (const std::string& name : names) {
      VirtualGpu device({.architecture = case_of(kernel, name).architecture});
      device.use_ptx(kernel.name, base_ptx(base));
      EXPECT_THAT(run_case(case_of(kernel, name), device).faults, ElementsAre()) << base << ", " << name;
    }
  }
}

TEST(MutantBases, EveryKernelHasMutantsOfValuesAndThoseWithBarriersOfReports) {
  std::map<std::string, std::set<bool>> kinds;
  std::map<std::string, int> count;
  for (const KeptMutant& mutant : kept_mutants()) {
    const std::string& kernel = kernel_of(mutant.base).name;
    kinds[kernel].insert(mutant.fails == "values");
    ++count[kernel];
  }
  for (const Kernel& kernel : all_kernels()) {
    EXPECT_GE(count[kernel.name], 2) << kernel.name;
    EXPECT_TRUE(kinds[kernel.name].contains(true)) << kernel.name;
    const bool without_barriers = kernel.name == "append_tokens" || kernel.name == "populate_rows";
    EXPECT_TRUE(without_barriers || kinds[kernel.name].contains(false)) << kernel.name;
  }
}

}  // namespace
}  // namespace kvscope::gpu::mutants_test
