#include "apps/labs/softmax_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace kvscope::labs::softmax_case_test {
namespace {

constexpr CounterRng kRandom(11, 3);

// Softmax over all keys of the row in double, without tiles.
std::vector<double> by_formula(const SoftmaxCase& made) {
  double largest = -INFINITY, sum = 0;
  for (std::int64_t key = 0; key < made.keys(); ++key) largest = std::max(largest, double{made.score(key)});
  std::vector<double> result(static_cast<std::size_t>(made.dim + 1), 0);
  for (std::int64_t key = 0; key < made.keys(); ++key) {
    const double p = largest == -INFINITY ? 0 : std::exp(double{made.score(key)} - largest);
    sum += p;
    for (std::int64_t d = 0; d < made.dim; ++d) result[static_cast<std::size_t>(d)] += p * double{made.value(key, d)};
  }
  for (std::int64_t d = 0; d < made.dim && sum > 0; ++d) result[static_cast<std::size_t>(d)] /= sum;
  result.back() = sum > 0 ? largest + std::log(sum) : -INFINITY;
  return result;
}

// A row of repeated tiles has the output of one period, and a larger lse.
TEST(SoftmaxCase, ExpectedResultsAreThoseOfTheWholeRow) {
  for (const Scores kind : {Scores::small, Scores::large, Scores::rising, Scores::masked, Scores::once}) {
    for (std::size_t number = 0; number < kSoftmaxCases; ++number) {
      SoftmaxCase made = make_softmax_case(kind, kRandom, number);
      made.repeats = std::min<std::int64_t>(made.repeats, 5);  // the formula over the long row takes seconds
      const Allowed allowed = expected_result(made);
      const std::vector<double> right = by_formula(made);
      for (std::size_t i = 0; i < right.size(); ++i) {
        if (right[i] == -INFINITY) {
          EXPECT_EQ(allowed.value[i], right[i]);
        } else {
          EXPECT_NEAR(allowed.value[i], right[i], 1e-9 * (1 + std::abs(right[i]))) << number << " element " << i;
        }
      }
    }
  }
}

// A rescaling factor that is missing, or a last tile that is not full, must not fail one_pass: other tests name these.
TEST(SoftmaxCase, OnePassHasItsMaximumFirstAndFullTiles) {
  for (std::size_t number = 0; number < kSoftmaxCases; ++number) {
    const SoftmaxCase made = make_softmax_case(Scores::once, kRandom, number);
    EXPECT_TRUE(made.taken);
    EXPECT_EQ(std::ranges::max_element(made.scores), made.scores.begin());
    EXPECT_EQ(made.period() % made.tile, 0);
    EXPECT_GE(made.period() / made.tile, 2);
    EXPECT_GT(*std::ranges::min_element(made.values), 0);  // an overwritten value is far above any output
    EXPECT_LT(*std::ranges::max_element(made.values), 2);
  }
}

TEST(SoftmaxCase, TheLongRowHasTwiceTheMemoryOfTheProcess) {
  for (std::size_t number = 0; number + 1 < kSoftmaxCases; ++number) {
    EXPECT_LT(make_softmax_case(Scores::once, kRandom, number).bytes(), 64 << 10);
  }
  EXPECT_EQ(make_softmax_case(Scores::once, kRandom, kSoftmaxCases - 1).bytes(), 2 * kOnePassMemory);
}

// The bound of a long row allows any order of its additions, and still tells a value of 1.3 from one of 1.2.
TEST(SoftmaxCase, TheBoundOfTheLongRowIsBelowTheEffectOfAWrongTile) {
  const Allowed allowed = expected_result(make_softmax_case(Scores::once, kRandom, kSoftmaxCases - 1));
  for (const double error : allowed.error) {
    EXPECT_GT(error, 0x1p-24 * 262144);
    EXPECT_LT(error, 0.07);
  }
}

}  // namespace
}  // namespace kvscope::labs::softmax_case_test
