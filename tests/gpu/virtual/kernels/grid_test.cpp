// cooperative_groups' barrier of the grid, as nvcc compiles it: a workspace in global memory, whose address is in %envreg.
#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::grid_test {
namespace {

constexpr std::int64_t kBlocks = 5;
constexpr int kNumbers = 400;

Run grid_sum(std::uint64_t x, std::uint64_t partial, std::uint64_t out, int rounds, bool cooperative) {
  return {.kernel = "grid_sum",
          .grid = {kBlocks, 1, 1},
          .block = {64, 1, 1},
          .values = {x, value(kNumbers), partial, out, value(rounds)},
          .resident_limit = 2,
          .cooperative = cooperative};
}

TEST(GridBarrier, ACooperativeLaunchSumsOverAllBlocks) {
  std::vector<std::int32_t> x(kNumbers);
  std::iota(x.begin(), x.end(), -100);
  const std::int32_t all = std::accumulate(x.begin(), x.end(), 0);
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("grid.ptx", schedule);
    const std::uint64_t from = gpu.upload("x", x), partial = gpu.zeros("partial", 4 * kBlocks),
                        out = gpu.zeros("out", 4 * kNumbers);
    for (const int rounds : {1, 3, 2}) {  // the workspace begins anew with each launch
      gpu.run_clean(grid_sum(from, partial, out, rounds, true));
      std::vector<std::int32_t> expected = x;
      for (std::int32_t& v : expected) v -= all + static_cast<std::int32_t>(kBlocks) * (rounds - 1);
      EXPECT_EQ(gpu.download<std::int32_t>(out, kNumbers), expected);
    }
  }
}

TEST(GridBarrier, AnotherLaunchTrapsAndStatesWhatItNeeds) {
  Gpu gpu("grid.ptx", kLate);
  const std::uint64_t from = gpu.upload("x", std::vector<std::int32_t>(kNumbers)),
                      partial = gpu.zeros("partial", 4 * kBlocks), out = gpu.zeros("out", 4 * kNumbers);
  const LaunchResult result = gpu.run(grid_sum(from, partial, out, 1, false), nullptr);
  ASSERT_FALSE(result.reports.empty());
  EXPECT_EQ(result.reports.front().kind, ReportKind::trap);
  EXPECT_THAT(result.reports.front().hint, ::testing::HasSubstr("needs a cooperative launch"));
}

}  // namespace
}  // namespace kvscope::ptx::test::grid_test
