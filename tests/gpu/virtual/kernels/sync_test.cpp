// K11, K12 and K13: threads that wait for each other make progress, whichever runs first.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::sync_test {
namespace {

// Detects a barrier that counts lanes instead of warps, and an arrival that waits: both would deadlock.
TEST(K11, ProducersArriveAndConsumersWaitOverNamedBarriers) {
  constexpr int kRounds = 5;
  std::vector<std::int32_t> in(64 * kRounds), expected(64 * kRounds);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::int32_t>(i * 31 % 97);
  for (std::size_t i = 0; i < in.size(); ++i) expected[i] = 2 * in[i / 64 * 64 + 63 - i % 64] + 1;
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("sync.ptx", schedule);
    const std::uint64_t from = gpu.upload("in", in), to = gpu.zeros("out", in.size() * 4);
    gpu.run_clean({.kernel = "producer_consumer", .block = {128, 1, 1}, .values = {to, from, value(kRounds)}});
    EXPECT_EQ(gpu.download<std::int32_t>(to, in.size()), expected);
  }
}

// The lane that holds the lock is at a higher pc than the lanes that spin. If the lowest pc always ran, the lock would
// never be released.
TEST(K12, EveryLaneOfAWarpGetsALockInTurn) {
  const std::int64_t lanes = kvscope::test::size_for_sanitizers(6, 32);  // the time grows with the square
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("sync.ptx", schedule);
    const std::uint64_t count = gpu.zeros("count", 4), lock = gpu.zeros("lock", 4);
    gpu.run_clean({.kernel = "lock_in_a_warp", .block = {lanes, 1, 1}, .values = {count, lock}});
    EXPECT_EQ(gpu.download<std::int32_t>(count, 1)[0], lanes);
    EXPECT_EQ(gpu.download<std::int32_t>(lock, 1)[0], 0);
  }
}

TEST(K12, LanesThatPollSeeTheFlagOfTheirOwnWarp) {
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("sync.ptx", schedule);
    const std::uint64_t out = gpu.zeros("out", 128), flag = gpu.zeros("flag", 4);
    gpu.run_clean({.kernel = "flag_in_a_warp", .values = {out, flag}});
    const std::vector<std::int32_t> got = gpu.download<std::int32_t>(out, 32);
    for (std::int32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(got[static_cast<std::size_t>(lane)], 7 + lane);
  }
}

// Without a cooperative launch CTAs run one after the other: each is suspended at the barrier until the last has
// arrived.
TEST(K13, AGridBarrierEndsWithAndWithoutACooperativeLaunch) {
  constexpr std::int32_t kRounds = 3;
  const auto ctas = static_cast<std::int32_t>(kvscope::test::size_for_sanitizers(3, 8));
  const std::size_t slots = 3 * static_cast<std::size_t>(ctas);
  for (const bool cooperative : {true, false})
    for (const Schedule& schedule : kSchedules) {
      SCOPED_TRACE(std::string(schedule.name) + (cooperative ? " cooperative" : ""));
      Gpu gpu("sync.ptx", schedule);
      const std::uint64_t values = gpu.zeros("values", slots * 4), arrived = gpu.zeros("arrived", 4);
      gpu.run_clean({.kernel = "grid_barrier",
                     .grid = {ctas, 1, 1},
                     .block = {64, 1, 1},
                     .values = {values, arrived, value(kRounds)},
                     .cooperative = cooperative});
      const std::vector<std::int32_t> got = gpu.download<std::int32_t>(values, slots);
      for (std::int32_t cta = 0; cta < ctas; ++cta)
        EXPECT_EQ(got[static_cast<std::size_t>(2 * ctas + cta)], (cta + kRounds) % ctas + kRounds) << cta;
    }
}

}  // namespace
}  // namespace kvscope::ptx::test::sync_test
