// Keys with equal weights, and the terms of the bound that count them as one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/bounds.h"
#include "core/attention/equal_weights.h"
#include "core/attention/fast.h"
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

// Repeated tokens under a sliding window, so that the keys of a query do not begin at the first key that is read; 19
// dims, which fill no vector of any instruction set. The expected value sums over tokens instead of sorted weights.
TEST(EqualWeights, OfAWindowAreJoinedForEveryInstructionSet) {
  constexpr std::int64_t kKeys = 90, kQueries = 40, kDims = 19, kTokens = 7, kWindow = 30;
  std::vector<float> k, v;
  for (std::int64_t t = 0; t < kKeys; ++t) {
    k.push_back(0.25F * static_cast<float>(t % kTokens));
    for (std::int64_t d = 0; d < kDims; ++d) v.push_back(1 + 0.125F * static_cast<float>(t % kTokens * d % 5));
  }
  const std::vector<float> q(kQueries, 1);
  const std::array<std::int64_t, 2> offsets{0, kQueries};
  const std::array<std::int64_t, 1> lengths{kKeys};
  const std::uint32_t block = 0;
  Problem p;
  p.batch = 1;
  p.query_heads = 1;
  p.q = reinterpret_cast<const std::byte*>(q.data());
  p.query_offsets = offsets;
  p.key_lengths = lengths;
  p.k = {.data = reinterpret_cast<const std::byte*>(k.data()),
         .blocks = 1,
         .page_size = kKeys,
         .heads = 1,
         .head_size = 1,
         .block_stride = kKeys,
         .token_stride = 1,
         .head_stride = 1,
         .table = &block,
         .table_stride = 1};
  p.v = p.k;
  p.v.data = reinterpret_cast<const std::byte*>(v.data());
  p.v.head_size = p.v.token_stride = p.v.head_stride = kDims;
  p.v.block_stride = kKeys * kDims;
  p.options.mask = MaskKind::sliding_window;
  p.options.window_left = kWindow;
  const Result baseline = reference(p, InstructionSet::baseline);
  for (const InstructionSet set : available_instruction_sets()) {
    const Result strict = reference(p, set), fast = fast_reference(p, set);
    for (std::int64_t query = 0; query < kQueries; ++query) {
      const std::int64_t last = kKeys - kQueries + query;  // its own key
      std::array<double, kTokens> weight{};                // of all keys of a token
      double sum = 0;
      for (std::int64_t t = std::max<std::int64_t>(0, last - kWindow); t <= last; ++t) {
        const double e = std::exp(0.25 * static_cast<double>(t % kTokens));
        weight[static_cast<std::size_t>(t % kTokens)] += e;
        sum += e;
      }
      for (std::int64_t d = 0; d < kDims; ++d) {
        double squares = 0;
        for (std::size_t token = 0; token < kTokens; ++token) {
          squares += std::pow(weight[token] * static_cast<double>(v[token * kDims + static_cast<std::size_t>(d)]), 2);
        }
        const double a2 = std::sqrt(squares) / sum;
        EXPECT_NEAR(strict.a2(query, 0, d), a2, 1e-12) << name(set) << ' ' << query << ' ' << d;
        EXPECT_NEAR(fast.a2(query, 0, d), a2, 1e-5) << name(set) << ' ' << query << ' ' << d;
        EXPECT_EQ(strict.a2(query, 0, d), baseline.a2(query, 0, d));
      }
    }
  }
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

// The sum of the sums so far is 1 + 2 + ... + n for n equal keys: half of all additions, in full.
TEST(EqualWeights, CountTheirSumsSoFarAsAdditionsInOneDirection) {
  const std::vector<double> equal(1000, 0.25);
  EXPECT_NEAR(EqualWeights::systematic_additions(equal, EqualWeights::sorted(equal)) / 250, 500.5, 1e-9);
  std::vector<double> tokens(48 * 341);  // 48 tokens, each 341 times: 4 deviations of 48 independent groups
  double sum = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) sum += tokens[t] = 1 + 1e-6 * static_cast<double>(t % 48);
  EXPECT_NEAR(EqualWeights::systematic_additions(tokens, EqualWeights::sorted(tokens)) / sum,
              4 * std::sqrt(48.0) * 170.5, 10);
  const std::vector<double> apart{1, 2, 3, 4};
  EXPECT_EQ(EqualWeights::systematic_additions(apart, EqualWeights::sorted(apart)), 0);
  // Faint equal weights after a large one: the sum so far is nearly the whole sum, in the other order it is not.
  const std::vector<double> late{1000, 1, 1, 1, 1};
  EXPECT_NEAR(EqualWeights::systematic_additions(late, EqualWeights::sorted(late)) / 1004, 4, 0.02);
}

TEST(EqualWeights, PartnersAreOtherMembers) {
  for (const std::size_t size : {2u, 3u, 17u, 341u}) {
    for (std::size_t member = 0; member < size; ++member) {
      EXPECT_LT(EqualWeights::partner(member, size), size);
      EXPECT_NE(EqualWeights::partner(member, size), member);
    }
  }
}

// Equal values: every addition in full, sqrt(keys / 9) times the sum so far. Different values: independent additions.
TEST(EqualWeights, RaiseRunningWhereTheirValuesAreEqualToo) {
  const std::vector<float> scores(900, 0.0F), ones(900, 1.0F);
  std::vector<float> apart(900);
  for (std::size_t t = 0; t < apart.size(); ++t) apart[t] = 1 + static_cast<float>(t) / 1024;
  double squares = 0, blocks = 0;
  for (int t = 64; t < 900 + 64; t += 64) {
    squares += std::pow(std::min(t, 900) / 900.0, 2), blocks += 1;
  }
  EXPECT_NEAR(result_of(scores, ones).running(0, 0, 0), 10 * std::sqrt(squares / blocks), 1e-9);
  EXPECT_LT(result_of(scores, apart).running(0, 0, 0), 1.5);
}

// An f32 kernel that adds one by one. The errors of equal additions are equal, so its lse is off by more than
// independent errors of 16,384 additions would explain: 8 deviations of them are 2^-24 * 4 * 128.
TEST(EqualWeights, OfRepeatedTokensAreSummedWithinTheBound) {
  std::vector<float> scores(16384), values(scores.size());
  for (std::size_t t = 0; t < scores.size(); ++t) {
    scores[t] = static_cast<float>(std::sin(static_cast<double>(t % 48) * 1.7));
    values[t] = 1 + scores[t] / 3;
  }
  const Result golden = result_of(scores, values);
  Rounding rounding = rounding_of(DType::f32);
  const RowTerms row = row_terms(golden, 0, 0, 1);
  const ElementTerms element = element_terms(golden, 0, 0, 0);
  double largest = 0, largest_bound = 0;
  for (int shift = 0; shift < 200; ++shift) {
    const float maximum = 1 + 0.0137F * static_cast<float>(shift);
    float sum = 0, o = 0;
    for (std::size_t t = 0; t < scores.size(); ++t) {
      const float p = std::exp(scores[t] - maximum);
      sum += p;
      o += p * values[t];
    }
    const double lse = static_cast<double>(maximum) + std::log(static_cast<double>(sum));
    largest = std::max(largest, std::fabs(lse - golden.lse(0, 0)));
    largest_bound = lse_budget(rounding, row).total();
    EXPECT_TRUE(lse_within(rounding, row, lse)) << shift;
    EXPECT_TRUE(output_within(rounding, row, element, static_cast<double>(o / sum))) << shift;
  }
  EXPECT_GT(largest, 0x1p-24 * 4 * 128);
  EXPECT_GT(largest, largest_bound / 8);  // the bound is not much larger than the errors of correct kernels
}

// The first key has 99 % of the weight and the value 0. All other probabilities are below the normal range of f16. A
// correct kernel's errors have both signs; allowing them in one direction would hide a page of 16 of 4,096 keys.
TEST(SubnormalProbabilities, RoundWithinABoundThatShowsAMissingPage) {
  constexpr std::size_t kKeys = 4096;
  std::vector<float> scores(kKeys), values(kKeys);
  for (std::size_t t = 1; t < kKeys; ++t) {
    scores[t] = static_cast<float>(std::sin(static_cast<double>(t) * 0.73) - std::log(99.0 * kKeys));
    values[t] = static_cast<float>(1 + 0.2 * std::cos(static_cast<double>(t) * 1.91));
  }
  const Result golden = result_of(scores, values);
  const Rounding rounding = rounding_of(DType::f16);
  const RowTerms row = row_terms(golden, 0, 0, 1);
  const ElementTerms element = element_terms(golden, 0, 0, 0);
  const auto computed = [&](std::size_t left_out, float maximum) {
    double sum = 0, o = 0;
    for (std::size_t t = 0; t < kKeys; ++t) {
      if (t / 16 == left_out) continue;
      const float p = std::exp(scores[t] - maximum);
      sum += static_cast<double>(p);
      o += std::nearbyint(static_cast<double>(p) * 0x1p24) * 0x1p-24 * static_cast<double>(values[t]);
    }
    return o / sum;
  };
  for (int shift = 0; shift < 50; ++shift) {
    EXPECT_TRUE(output_within(rounding, row, element, computed(kKeys, -0.1F * static_cast<float>(shift)))) << shift;
  }
  EXPECT_FALSE(output_within(rounding, row, element, computed(17, 0)));
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
