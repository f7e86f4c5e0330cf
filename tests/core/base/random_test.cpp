#include "core/base/random.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace kvscope::random_test {
namespace {

using Block = std::array<std::uint32_t, 4>;

// The three known answers that Random123 publishes for philox4x32-10.
TEST(RandomTest, PhiloxGivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// A generator that drops the high half of n, of the stream or of the seed repeats itself only for large values.
TEST(RandomTest, EveryBitOfSeedStreamAndCounterMatters) {
  std::set<std::uint64_t> seen = {CounterRng(0, 0).bits(0)};
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t one = std::uint64_t{1} << bit;
    seen.insert(CounterRng(one, 0).bits(0));
    seen.insert(CounterRng(0, one).bits(0));
    seen.insert(CounterRng(0, 0).bits(one));
  }
  EXPECT_EQ(seen.size(), 1u + 3 * 64);
}

TEST(RandomTest, TheSameQuestionHasTheSameAnswerInAnyOrder) {
  const CounterRng a(7, 3), b(7, 3);
  std::vector<std::uint64_t> forward;
  for (std::uint64_t n = 0; n < 100; ++n) forward.push_back(a.bits(n));
  for (std::uint64_t n = 100; n-- > 0;) EXPECT_EQ(b.bits(n), forward[n]);
  EXPECT_EQ(CounterRng(0, 0).bits(0), 0xe169c58d6627e8d5u) << "the first two words of the zero block, low word first";
}

TEST(RandomTest, UniformsLieInTheHalfOpenIntervalAndFillIt) {
  const CounterRng rng(50, 0);
  constexpr int kCount = 200000;
  std::array<int, 64> bins{};
  double sum = 0;
  for (std::uint64_t n = 0; n < kCount; ++n) {
    const double u = rng.uniform(n);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    EXPECT_EQ(u, static_cast<double>(rng.bits(n) >> 11) / 9007199254740992.0);
    ++bins[static_cast<std::size_t>(u * 64)];
    sum += u;
  }
  // Five standard deviations: mean 1/2 +- 5 / sqrt(12 n), bin n/64 +- 5 sqrt(n/64).
  EXPECT_NEAR(sum / kCount, 0.5, 5 / std::sqrt(12.0 * kCount));
  for (const int bin : bins) EXPECT_NEAR(bin, kCount / 64.0, 5 * std::sqrt(kCount / 64.0));
}

TEST(RandomTest, IntegersReachBothEndsEquallyOften) {
  const CounterRng rng(51, 0);
  std::array<int, 7> counts{};
  constexpr int kCount = 70000;
  for (std::uint64_t n = 0; n < kCount; ++n) {
    const std::int64_t i = rng.integer(n, -3, 3);
    ASSERT_GE(i, -3);
    ASSERT_LE(i, 3);
    ++counts[static_cast<std::size_t>(i + 3)];
  }
  for (const int count : counts) EXPECT_NEAR(count, kCount / 7.0, 5 * std::sqrt(kCount / 7.0));
}

TEST(RandomTest, IntegerRangesOfOneAndOfHalfTheWorldHold) {
  const CounterRng rng(52, 0);
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  bool upper_half = false;
  for (std::uint64_t n = 0; n < 1000; ++n) {
    EXPECT_EQ(rng.integer(n, 5, 5), 5);
    EXPECT_EQ(rng.integer(n, kMin, kMin), kMin);
    EXPECT_EQ(rng.integer(n, kMax, kMax), kMax);
    EXPECT_GE(rng.integer(n, 0, kMax), 0);
    EXPECT_LT(rng.integer(n, kMin, -1), 0);
    upper_half = upper_half || rng.integer(n, 0, kMax) > kMax / 2;
  }
  EXPECT_TRUE(upper_half);
}

TEST(RandomDeathTest, AnEmptyRangeIsABugOfTheCaller) {
  EXPECT_DEATH((void)CounterRng(1, 1).integer(0, 2, 1), "low <= high");
  EXPECT_DEATH((void)CounterRng(1, 1).integer(0, std::numeric_limits<std::int64_t>::min(), 0), "span < ");
}

TEST(RandomTest, ExponentialsHaveTheirMeanAndTail) {
  const CounterRng rng(53, 0);
  constexpr int kCount = 200000;
  double sum = 0;
  int past_three_means = 0;
  for (std::uint64_t n = 0; n < kCount; ++n) {
    const double x = rng.exponential(n, 0.25);
    ASSERT_GE(x, 0.0);
    ASSERT_FALSE(std::signbit(x));
    ASSERT_TRUE(std::isfinite(x));
    EXPECT_NEAR(x, -0.25 * std::log1p(-rng.uniform(n)), 1e-14);
    sum += x;
    past_three_means += x > 0.75 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kCount, 0.25, 5 * 0.25 / std::sqrt(kCount));
  const double tail = std::exp(-3.0);
  EXPECT_NEAR(past_three_means, tail * kCount, 5 * std::sqrt(tail * kCount));
}

TEST(RandomTest, BellsHaveTheirMomentsAndBound) {
  const CounterRng rng(54, 0);
  constexpr int kCount = 400000;
  double sum = 0, squares = 0, fourths = 0;
  for (std::uint64_t n = 0; n < kCount; ++n) {
    const double x = rng.bell(n);
    ASSERT_LT(std::fabs(x), 3.47);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 5 * std::sqrt(1.7 / kCount));
  EXPECT_NEAR(fourths / kCount, 2.7, 0.05);
}

}  // namespace
}  // namespace kvscope::random_test
