// K08 and K24: a tile of attention scores, bit for bit.
#include "tests/gpu/virtual/kernels/qk_case.h"

#include <gtest/gtest.h>

#include <string>

namespace kvscope::ptx::test::qk_test {
namespace {

class QkTile : public ::testing::TestWithParam<const char*> {};

// Sums in the order of k, each rounded: a plain loop gives the same bits. A fragment in the wrong lane, a chunk at the
// wrong place of the swizzle, or a fused multiply-add would change some.
TEST_P(QkTile, ByTensorCopiesGivesTheBitsOfAPlainLoop) {
  const QkCase data;
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu(GetParam(), schedule);
    const QkCase::Launch launch = data.by_tensor_copies(gpu, "qk_tensor");
    gpu.run_clean(launch.run);
    EXPECT_EQ(data.differences(gpu, launch), 0);
  }
}

TEST_P(QkTile, ByCpAsyncGivesTheBitsOfAPlainLoop) {
  const QkCase data;
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu(GetParam(), schedule);
    const QkCase::Launch launch = data.by_cp_async(gpu, "qk_cp_async");
    gpu.run_clean(launch.run);
    EXPECT_EQ(data.differences(gpu, launch), 0);
  }
}

// K24: the debug build keeps all variables in a local depot and accesses them by generic addresses.
INSTANTIATE_TEST_SUITE_P(K08, QkTile, ::testing::Values("qk.ptx", "qk.debug.ptx"),
                         [](const auto& which) { return std::string(which.index == 0 ? "Release" : "Debug"); });

}  // namespace
}  // namespace kvscope::ptx::test::qk_test
