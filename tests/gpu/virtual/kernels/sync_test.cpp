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
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("sync.ptx", schedule);
    const std::uint64_t count = gpu.zeros("count", 4), lock = gpu.zeros("lock", 4);
    gpu.run_clean({.kernel = "lock_in_a_warp", .values = {count, lock}});
    EXPECT_EQ(gpu.download<std::int32_t>(count, 1)[0], 32);
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
  constexpr std::int32_t kCtas = 8, kRounds = 3;
  for (const bool cooperative : {true, false})
    for (const Schedule& schedule : kSchedules) {
      SCOPED_TRACE(std::string(schedule.name) + (cooperative ? " cooperative" : ""));
      Gpu gpu("sync.ptx", schedule);
      const std::uint64_t values = gpu.zeros("values", 3 * kCtas * 4), arrived = gpu.zeros("arrived", 4);
      gpu.run_clean({.kernel = "grid_barrier",
                     .grid = {kCtas, 1, 1},
                     .block = {64, 1, 1},
                     .values = {values, arrived, value(kRounds)},
                     .cooperative = cooperative});
      const std::vector<std::int32_t> got = gpu.download<std::int32_t>(values, 3 * kCtas);
      for (std::int32_t cta = 0; cta < kCtas; ++cta)
        EXPECT_EQ(got[static_cast<std::size_t>(2 * kCtas + cta)], (cta + kRounds) % kCtas + kRounds) << cta;
    }
}

}  // namespace
}  // namespace kvscope::ptx::test::sync_test
