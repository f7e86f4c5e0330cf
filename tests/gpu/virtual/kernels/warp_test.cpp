// K03, and K23 for it.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::warp_test {
namespace {

// Detects a shuffle that ignores its width, or moves values in the wrong direction.
TEST(K03, SumsOfAWarpByShufflesAndVotes) {
  std::vector<std::int32_t> in(32);
  for (std::size_t i = 0; i < 32; ++i) in[i] = static_cast<std::int32_t>(i * i * 7 % 61) - 20;
  const std::int32_t all = std::accumulate(in.begin(), in.end(), 0);
  std::int32_t odd = 0;
  for (const std::int32_t v : in) odd += v & 1;

  for (const Dialect& dialect : kDialects)
    for (const Schedule& schedule : kSchedules) {
      SCOPED_TRACE(std::string(schedule.name) + ' ' + dialect.suffix);
      Gpu gpu(std::string("warp") + dialect.suffix, schedule, dialect.target);
      const std::uint64_t from = gpu.upload("in", in), to = gpu.zeros("out", 160 * sizeof(std::int32_t));
      gpu.run_clean({.kernel = "warp_sums", .values = {to, from}});
      const std::vector<std::int32_t> out = gpu.download<std::int32_t>(to, 160);
      EXPECT_EQ(out[0], all);
      for (std::size_t lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(out[32 + lane], all) << lane;
        EXPECT_EQ(out[64 + lane], odd) << lane;
        const auto first = in.begin() + static_cast<std::ptrdiff_t>(lane / 8 * 8);
        EXPECT_EQ(out[96 + lane], std::accumulate(first, first + 8, 0)) << lane;
        EXPECT_EQ(out[128 + lane], in[lane / 8 * 8 + 7]) << lane;
      }
    }
}

struct Shuffle {
  const char* name;
  int mode, b, c;            // idx up down bfly
  std::array<int, 8> lanes;  // the lanes read by 0 1 7 8 15 16 30 31; plus 100: no such lane, its own value
};

// Rows of the table for PTX ISA's definition of shfl: width 8 by the upper half of c, bounds by the lower. bfly may
// read an earlier segment.
TEST(K03, ShufflesReadTheLaneThatTheirSegmentAllows) {
  constexpr int kNo = 100;
  const std::vector<Shuffle> cases = {
      {"idx", 0, 3, 0x181f, {3, 3, 3, 11, 11, 19, 27, 27}},
      {"up", 1, 1, 0, {kNo + 0, 0, 6, 7, 14, 15, 29, 30}},
      {"up of 8", 1, 1, 0x1800, {kNo + 0, 0, 6, kNo + 8, 14, kNo + 16, 29, 30}},
      {"down of 8", 2, 3, 0x181f, {3, 4, kNo + 7, 11, kNo + 15, 19, kNo + 30, kNo + 31}},
      {"bfly 8 of 8", 3, 8, 0x181f, {kNo + 0, kNo + 1, kNo + 7, 0, 7, kNo + 16, 22, 23}},
      {"bfly 16 of 16", 3, 16, 0x100f, {kNo + 0, kNo + 1, kNo + 7, kNo + 8, kNo + 15, 0, 14, 15}},
  };
  constexpr std::array<std::size_t, 8> kLanesShown = {0, 1, 7, 8, 15, 16, 30, 31};
  std::vector<std::int32_t> operands;
  for (const Shuffle& s : cases) operands.insert(operands.end(), {s.mode, s.b, s.c});

  for (const Dialect& dialect : kDialects)
    for (const Schedule& schedule : kSchedules) {
      SCOPED_TRACE(std::string(schedule.name) + ' ' + dialect.suffix);
      Gpu gpu(std::string("warp") + dialect.suffix, schedule, dialect.target);
      const std::uint64_t from = gpu.upload("cases", operands), to = gpu.zeros("out", cases.size() * 32 * 4);
      gpu.run_clean({.kernel = "shuffle_sources", .values = {to, from, value(6)}});
      const std::vector<std::int32_t> out = gpu.download<std::int32_t>(to, cases.size() * 32);
      for (std::size_t i = 0; i < cases.size(); ++i)
        for (std::size_t j = 0; j < 8; ++j) {
          const int expected = cases[i].lanes[j];
          EXPECT_EQ(out[32 * i + kLanesShown[j]], 2 * (expected % kNo) + (expected < kNo ? 1 : 0))
              << cases[i].name << " lane " << kLanesShown[j];
        }
    }
}

}  // namespace
}  // namespace kvscope::ptx::test::warp_test
