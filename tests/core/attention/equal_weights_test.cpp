// Keys with equal weights, and the terms of the bound that count them as one.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/detail/equal_weights.h"
#include "core/attention/reference.h"

namespace kvscope::attention::equal_weights_test {
namespace {

TEST(EqualWeights, AreManyFromOneKeyIn64OrOfTheirWeight) {
  EqualWeights equal;
  std::vector<double> weights(128);
  for (std::size_t t = 0; t < weights.size(); ++t) weights[t] = 1.0 / static_cast<double>(t + 2);
  EXPECT_FALSE(equal.many(weights));
  weights[127] = weights[40];
  EXPECT_FALSE(equal.many(weights));  // 1 of 128 keys, and under 1/64 of the squared weight
  weights[126] = weights[40];
  EXPECT_TRUE(equal.many(weights));
  for (std::size_t t = 0; t < weights.size(); ++t) weights[t] = 0;
  EXPECT_FALSE(equal.many(weights));  // weights of 0 round to 0
  weights[3] = weights[77] = 1;
  EXPECT_TRUE(equal.many(weights));
  EXPECT_FALSE(equal.many(std::span<const double>{}));
}

TEST(EqualWeights, AreSortedByWeightAndThenByKey) {
  const std::array<double, 6> weights{0.5, 0, 0.25, 0.5, 0.25, 1};
  EXPECT_EQ(EqualWeights::sorted(weights), (std::vector<std::size_t>{2, 4, 0, 3, 5}));
}

// `scores` are the keys' scores, and the values are those of one dim.
Result result_of(const std::vector<float>& scores, const std::vector<float>& values) {
  static const float one = 1;
  const auto keys = static_cast<std::int64_t>(scores.size());
  const std::array<std::int64_t, 2> offsets{0, 1};
  const std::array<std::int64_t, 1> lengths{keys};
  const std::uint32_t block = 0;
  Problem p;
  p.batch = 1;
  p.query_heads = 1;
  p.q = reinterpret_cast<const std::byte*>(&one);
  p.query_offsets = offsets;
  p.key_lengths = lengths;
  p.k = {.data = reinterpret_cast<const std::byte*>(scores.data()),
         .blocks = 1,
         .page_size = keys,
         .heads = 1,
         .head_size = 1,
         .block_stride = keys,
         .token_stride = 1,
         .head_stride = 1,
         .table = &block,
         .table_stride = 1};
  p.v = p.k;
  p.v.data = reinterpret_cast<const std::byte*>(values.data());
  return reference(p);
}

// The errors of four equal probabilities are equal: they add up instead of canceling. Independent ones give half.
TEST(EqualWeights, CountAsOneInA2AndP2) {
  const Result equal = result_of({0, 0, 0, 0}, {1, 1, 1, 1});
  EXPECT_NEAR(equal.a2(0, 0, 0), 1, 1e-12);
  EXPECT_NEAR(equal.p2(0, 0), 1, 1e-12);
  const Result two = result_of({0, 1, 0, 1}, {1, 2, 3, 4});
  const double e = std::exp(1.0), sum = 2 + 2 * e;
  EXPECT_NEAR(two.a2(0, 0, 0), std::hypot(4 / sum, 6 * e / sum), 1e-12);
  EXPECT_NEAR(two.p2(0, 0), std::hypot(2 / sum, 2 * e / sum), 1e-12);
  const Result apart = result_of({0, 1, 2, 3}, {1, 1, 1, 1});
  double squares = 0, weights = 0;
  for (int t = 0; t < 4; ++t) squares += std::exp(2.0 * t), weights += std::exp(t);
  EXPECT_NEAR(apart.a2(0, 0, 0), std::sqrt(squares) / weights, 1e-12);
}

// Values that cancel within a weight may not hide what remains when the running maximum changes between the keys.
TEST(EqualWeights, NeverMakeTheTermSmaller) {
  const Result r = result_of({0, 0, 0, 0}, {1, -1, 1, -1});
  EXPECT_NEAR(r.a2(0, 0, 0), 0.5, 1e-12);
}

// 2^-25 of the sum is lost by an f32 sum each time, always in the same direction.
TEST(EqualWeights, WeightsThatAnF32SumAbsorbsCountAsRepeats) {
  const float faint = static_cast<float>(-25 * std::log(2.0));
  const Result r = result_of({0, faint, faint + 0.1F, faint + 0.2F}, {1, 1, 1, 1});
  EXPECT_NEAR(r.repeats(0, 0), 0.5 * (1 + std::exp(0.1) + std::exp(0.2)), 1e-4);
  EXPECT_EQ(result_of({0, 1, 2, 3}, {1, 1, 1, 1}).repeats(0, 0), 0);
}

}  // namespace
}  // namespace kvscope::attention::equal_weights_test
