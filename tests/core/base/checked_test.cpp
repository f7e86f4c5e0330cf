#include "core/base/checked.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace kvscope::checked_test {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

template <class F>
std::string overflow_message(F f) {
  try {
    f();
  } catch (const OverflowError& e) {
    return e.what();
  }
  return "no OverflowError";
}

// Truncation and flooring differ for negative dividends; floor and ceil of doubles are the oracle.
TEST(CheckedTest, DivisionsAgreeWithFloorAndCeilOverBothSigns) {
  for (std::int64_t a = -70; a <= 70; ++a) {
    for (std::int64_t b = 1; b <= 17; ++b) {
      const double exact = static_cast<double>(a) / static_cast<double>(b);
      EXPECT_EQ(ceil_div(a, b), static_cast<std::int64_t>(std::ceil(exact))) << a << " / " << b;
      EXPECT_EQ(floor_div(a, b), static_cast<std::int64_t>(std::floor(exact))) << a << " / " << b;
      EXPECT_EQ(floor_div(a, b) * b + floor_mod(a, b), a);
      EXPECT_GE(floor_mod(a, b), 0);
      EXPECT_LT(floor_mod(a, b), b);
      EXPECT_EQ(round_up(a, b) % b, 0);
      EXPECT_GE(round_up(a, b), a);
      EXPECT_LT(round_up(a, b), a + b);
    }
  }
}

TEST(CheckedTest, WorkedNumbersOfTheHeader) {
  static_assert(floor_div(-1, 4) == -1 && floor_mod(-1, 4) == 3);
  static_assert(round_up(80, 64) == 128);
  static_assert(largest_pow2_divisor(12) == 4 && largest_pow2_divisor(0) == 0 && largest_pow2_divisor(1) == 1);
  static_assert(log2_floor(10) == 3 && log2_floor(1) == 0 && log2_floor(kMax) == 62);
  static_assert(ceil_div(kMax, 2) == (kMax >> 1) + 1, "a + b - 1 would have wrapped");
}

TEST(CheckedTest, PowersOfTwoAreFoundAtEveryStepOfTheLadder) {
  EXPECT_FALSE(is_pow2(0));
  EXPECT_FALSE(is_pow2(-1));
  EXPECT_FALSE(is_pow2(kMin));
  for (int n = 0; n < 63; ++n) {
    const std::int64_t p = std::int64_t{1} << n;
    EXPECT_TRUE(is_pow2(p));
    EXPECT_EQ(log2_floor(p), n);
    EXPECT_EQ(largest_pow2_divisor(p), p);
    if (n > 1) {
      EXPECT_FALSE(is_pow2(p - 1));
      EXPECT_FALSE(is_pow2(p + 1));
      EXPECT_EQ(log2_floor(p - 1), n - 1);
      EXPECT_EQ(largest_pow2_divisor(p + p / 2), p / 2);
    }
  }
}

TEST(CheckedTest, ProductsAndSumsStandAtTheEdgeAndThrowOnePast) {
  EXPECT_EQ(checked_mul(3037000499, 3037000499), 9223372030926249001);
  EXPECT_EQ(overflow_message([] { (void)checked_mul(3037000500, 3037000500, "tensor size"); }),
            "tensor size: 3037000500 * 3037000500 does not fit in 64 bits");
  EXPECT_EQ(checked_mul(kMin, 1), kMin);
  EXPECT_EQ(overflow_message([] { (void)checked_mul(kMin, -1); }),
            "product: -9223372036854775808 * -1 does not fit in 64 bits");
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(overflow_message([] { (void)checked_add(kMax, 1, "pool bytes"); }),
            "pool bytes: 9223372036854775807 + 1 does not fit in 64 bits");
  EXPECT_EQ(checked_add(kMin + 1, -1), kMin);
  EXPECT_EQ(overflow_message([] { (void)checked_add(kMin, -1); }),
            "sum: -9223372036854775808 + -1 does not fit in 64 bits");
}

template <class To>
void narrow_ladder() {
  constexpr std::int64_t low = std::numeric_limits<To>::min();
  constexpr std::int64_t high = std::numeric_limits<To>::max();
  for (const std::int64_t inside : {low, low + 1, std::int64_t{0}, std::int64_t{1}, high - 1, high}) {
    EXPECT_EQ(std::int64_t{narrow<To>(inside, "x")}, inside);
  }
  for (const std::int64_t outside : {kMin, low - 1, high + 1, kMax}) {
    EXPECT_THROW((void)narrow<To>(outside, "x"), OverflowError) << outside;
  }
}

TEST(CheckedTest, NarrowingKeepsWhatFitsAndRejectsTheNextOnEitherSide) {
  narrow_ladder<std::int8_t>();
  narrow_ladder<std::uint8_t>();
  narrow_ladder<std::int16_t>();
  narrow_ladder<std::uint16_t>();
  narrow_ladder<std::int32_t>();
  narrow_ladder<std::uint32_t>();
  EXPECT_EQ(overflow_message([] { (void)narrow<std::int32_t>(2147483648, "TMA row coordinate"); }),
            "TMA row coordinate 2147483648 is outside [-2147483648, 2147483647]");
}

}  // namespace
}  // namespace kvscope::checked_test
