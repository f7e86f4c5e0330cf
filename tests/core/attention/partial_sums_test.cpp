// The sizes of partial sums, which bound the errors of additions: worked numbers, and kernels in f32 within the bound.
#include "core/attention/partial_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/attention/bounds.h"
#include "core/attention/reference.h"

namespace kvscope::attention::partial_sums_test {
namespace {

double share(const std::vector<double>& weights, double sink = 0) {
  double sum = sink;
  for (const double e : weights) sum += e;
  return row_sum_terms(weights, sink, sum).so_far;
}

TEST(PartialSums, OfARowSumAreItsRootMeanSquareOverBlocks) {
  EXPECT_NEAR(share(std::vector<double>(1600, 1.0)), std::sqrt(338350.0) / 1000, 1e-12);
  EXPECT_EQ(share(std::vector<double>(16, 1.0)), 1);  // one block: its end is the whole sum
  EXPECT_NEAR(share(std::vector<double>(17, 1.0)), std::sqrt((16 * 17.0 * 17 + 1) / 17) / 17, 1e-12);
  EXPECT_EQ(share({}), 1);
}

// Every sum from the heavy key on is the whole one. Forwards alone would give a last heavy key 0.1.
TEST(PartialSums, OfARowSumCountAHeavyKeyAtEitherEnd) {
  std::vector<double> first(6400, 0.0), last(6400, 0.0), middle(6400, 0.0);
  first.front() = last.back() = middle[3200] = 1;
  EXPECT_EQ(share(first), 1);
  EXPECT_EQ(share(last), 1);
  EXPECT_NEAR(share(middle), std::sqrt(0.5025), 1e-12);
  EXPECT_NEAR(share(std::vector<double>(6400, 0.0), 1), 1, 1e-12);  // the sink belongs to every sum
}

TEST(PartialSums, OfAScoreAreMeasuredInTheOrdersOfKernels) {
  const std::vector<double> ones(4, 1.0), halves{1, 1, 1, 1, -1, -1, -1, -1}, alternating{1, -1, 1, -1, 1, -1, 1, -1};
  EXPECT_EQ(mean_square_of_dot(ones), 7.5);
  EXPECT_EQ(mean_square_of_dot(halves), 5.5);                          // 1 4 9 16 9 4 1 0
  EXPECT_EQ(mean_square_of_dot(alternating), 7.5);                     // in two interleaved sums: 1 1 4 4 9 9 16 16
  EXPECT_EQ(mean_square_of_dot(std::vector<double>{0, 0, 0, 4}), 16);  // from the last element on
  EXPECT_EQ(mean_square_of_dot(std::vector<double>{0, 0, 4, 0, 0}), 16 * 3.0 / 5);
  EXPECT_EQ(mean_square_of_dot(std::vector<double>{3, -3}), 9);  // in two interleaved sums
  EXPECT_EQ(mean_square_of_dot({}), 0);
}

// x and y of bounds.h: standard deviations of the errors of the scores and of the sums over 65,536 keys.
TEST(PartialSums, RaiseTheBoundOfScoresAndOfRowSums) {
  RowTerms row;
  row.keys = 65536, row.head_size = 64, row.smax = 0.25, row.lse = 11, row.p2 = 1.0 / 256, row.repeats = 0;
  for (double& clump : row.clump) clump = 0;
  for (double& faint : row.faint) faint = 0;
  const Rounding f32 = rounding_of(DType::f32);
  const auto lse = [&](double score_sum, double row_sum_squared) {
    const double x = 0x1p-25 * 8 * score_sum / 256, y = 0x1p-25 * std::sqrt(16 + 65536 * row_sum_squared);
    const Budget b = lse_budget(f32, row);
    EXPECT_NEAR(b.sum, 7 * y * y / std::hypot(x, y), 1e-18);
    EXPECT_NEAR(b.scores, 0x1p-24 * (4 + 4 * 0.25 + 2 * 11) + 7 * x * x / std::hypot(x, y), 1e-18);
    EXPECT_NEAR(b.independent, 7 * std::hypot(x, y), 1e-18);
  };
  lse(1.25, 1);  // nothing is known: 1 + smax, and the whole row sum
  row.row_sum_so_far = std::sqrt(1.0 / 3);
  lse(1.25, 1.0 / 3);
  row.score_sum = 0.125;
  lse(0.125, 1.0 / 3);
  const ElementTerms element{1, 1, 1.0 / 256, 0.6};
  const Budget o = output_budget(f32, row, element);
  const double x = 0x1p-25 * 8 * 0.125 * (1.0 / 256 + 1.0 / 256);
  const double y = 0x1p-25 * std::sqrt(65552.0) * std::hypot(0.6 + 1.0 / 256, std::sqrt((16 + 65536.0 / 3) / 65552));
  EXPECT_NEAR(o.scores, 4 * 0x1p-24 * 1.25 + 7 * x * x / std::hypot(x, y), 1e-18);
  EXPECT_NEAR(o.sum, 7 * y * y / std::hypot(x, y), 1e-18);
}

// One sequence and one head in one block of `keys` tokens.
struct Row {
  std::vector<float> q, k, v;
  std::int64_t keys, dims;
  Result golden;

  Row(std::int64_t key_count, std::int64_t head_size, float query_size) : keys(key_count), dims(head_size) {
    std::mt19937_64 random(static_cast<std::uint64_t>(key_count));
    const auto draw = [&] {
      return static_cast<float>(static_cast<std::int64_t>(random() % 4'000'001) - 2'000'000) / 1e6F;
    };
    for (std::int64_t i = 0; i < dims; ++i) q.push_back(query_size * draw());
    for (std::int64_t i = 0; i < keys * dims; ++i) k.push_back(draw()), v.push_back(draw());
    compute();
  }

  void compute() {
    const std::array<std::int64_t, 2> offsets{0, 1};
    const std::array<std::int64_t, 1> lengths{keys};
    const std::uint32_t block = 0;
    Problem p;
    p.batch = p.query_heads = 1;
    p.q = reinterpret_cast<const std::byte*>(q.data());
    p.query_offsets = offsets;
    p.key_lengths = lengths;
    p.k = {.data = reinterpret_cast<const std::byte*>(k.data()),
           .blocks = 1,
           .page_size = keys,
           .heads = 1,
           .head_size = dims,
           .block_stride = keys * dims,
           .token_stride = dims,
           .head_stride = dims,
           .table = &block,
           .table_stride = 1};
    p.v = p.k;
    p.v.data = reinterpret_cast<const std::byte*>(v.data());
    golden = reference(p);
  }

  // The dot product with `lanes` interleaved sums in f32.
  [[nodiscard]] float score(std::int64_t key, std::int64_t lanes) const {
    std::vector<float> sums(static_cast<std::size_t>(lanes));
    for (std::int64_t d = 0; d < dims; ++d) {
      sums[static_cast<std::size_t>(d % lanes)] +=
          q[static_cast<std::size_t>(d)] * k[static_cast<std::size_t>(key * dims + d)];
    }
    float total = 0;
    for (const float sum : sums) total += sum;
    return total;
  }
};

// A key of 16,384 changes lse by less than the errors of row sums whose every partial sum is as large as the last one.
TEST(PartialSums, OfLongRowsShowAMissingKeyInF32) {
  const Row row(16384, 1, 0.5F);
  const RowTerms terms = row_terms(row.golden, 0, 0, 1);
  Rounding rounding = rounding_of(DType::f32);
  rounding.row_sum = RowSum::exact;
  rounding.deviations = 8;
  EXPECT_NEAR(terms.row_sum_so_far, 0.58, 0.01);
  const auto lse_without = [&](std::int64_t missing, bool backwards) {
    float sum = 0;
    for (std::int64_t i = 0; i < row.keys; ++i) {
      const std::int64_t key = backwards ? row.keys - 1 - i : i;
      if (key != missing) sum += std::exp(row.score(key, 1));
    }
    return std::log(static_cast<double>(sum));
  };
  EXPECT_TRUE(lse_within(rounding, terms, lse_without(-1, false)));
  EXPECT_TRUE(lse_within(rounding, terms, lse_without(-1, true)));
  std::int64_t key = 1000;  // of more than the mean weight
  while (row.score(key, 1) < 0.5F) ++key;
  EXPECT_FALSE(lse_within(rounding, terms, lse_without(key, false)));
  RowTerms unknown = terms;  // every partial sum as large as the last one
  unknown.row_sum_so_far = 1;
  EXPECT_GT(lse_budget(rounding, unknown).sum, 1.7 * lse_budget(rounding, terms).sum);
}

// Nearly equal weights and values: the additions of o and of the row sum in f32 round in one direction each, and not by
// the same part.
TEST(PartialSums, OfNearlyEqualProductsRoundInOneDirection) {
  Row row(65536, 1, 0.0004F);
  double largest = 0;
  for (const float size : {0.7F, 0.83F, 0.97F}) {
    for (float& v : row.v) v = size * (1 + 1e-4F * v);
    row.compute();
    const RowTerms terms = row_terms(row.golden, 0, 0, 1);
    ElementTerms element = element_terms(row.golden, 0, 0, 0);
    Rounding rounding = rounding_of(DType::f32);
    rounding.row_sum = RowSum::exact;
    for (const double below : {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}) {
      float weights = 0, products = 0;
      for (std::int64_t key = 0; key < row.keys; ++key) {
        const float e = std::exp(row.score(key, 1) - static_cast<float>(below));
        weights += e;
        products += e * row.v[static_cast<std::size_t>(key)];
      }
      const double error = std::fabs(static_cast<double>(products / weights) - element.o);
      EXPECT_LE(error, output_budget(rounding, terms, element).total()) << size << ' ' << below;
      ElementTerms as_independent = element;
      as_independent.running = std::sqrt(1.0 / 3) * std::fabs(element.o);
      RowTerms no_additions = terms;
      no_additions.repeats = 0;
      largest = std::max(largest, error / output_budget(rounding, no_additions, as_independent).total());
    }
    EXPECT_GT(element.running, 5 * std::fabs(element.o)) << "as if its additions were independent";
    for (float& v : row.v) v = (v / size - 1) / 1e-4F;
  }
  EXPECT_GT(largest, 2) << "no sum that the terms are for";
}

// Scores of 0.02: the partial sums are as small, and so are the errors of the scores of a correct kernel.
TEST(PartialSums, OfSmallScoresAreSmall) {
  const Row row(33, 128, 0.001F);
  const double smax = row.golden.smax(0, 0), size = row.golden.partial_sums(0, 0, 0);
  EXPECT_LT(smax, 0.1);
  EXPECT_LT(size, 0.1);
  EXPECT_GT(size, smax / 3);
  for (std::int64_t key = 0; key < row.keys; ++key) {
    double exact = 0;
    for (std::int64_t d = 0; d < row.dims; ++d) {
      exact += static_cast<double>(row.q[static_cast<std::size_t>(d)]) *
               static_cast<double>(row.k[static_cast<std::size_t>(key * row.dims + d)]);
    }
    for (const std::int64_t lanes : {1, 2, 8, 32}) {
      const double error = std::fabs(static_cast<double>(row.score(key, lanes)) - exact);
      EXPECT_LT(error, 7 * 0x1p-25 * std::sqrt(128.0) * size) << key << " " << lanes;
    }
  }
  const Row large(33, 128, 0.1F);
  EXPECT_GE(large.golden.smax(0, 0), 1);
  EXPECT_EQ(large.golden.partial_sums(0, 0, 0), 1 + large.golden.smax(0, 0));
}

// --- what matrix instructions cut from row sums -----------------------------------------------------------------------

std::array<double, kClumpTypes> cut(const std::vector<double>& weights, double sink = 0) {
  double sum = sink;
  for (const double e : weights) sum += e;
  return row_sum_terms(weights, sink, sum).cut;
}

// 11 bits of P are multiples of the unit of a sum up to 2^12 P, and 8 bits up to 2^15 P.
TEST(RowSumCut, IsZeroWhilePIsAMultipleOfTheUnit) {
  for (const double x : cut(std::vector<double>(1600, 1.0))) EXPECT_EQ(x, 0);
  for (const double x : cut(std::vector<double>(4096, 0.3))) EXPECT_EQ(x, 0);
  const auto more = cut(std::vector<double>(4112, 0.3));
  EXPECT_EQ(more[0], 0);
  EXPECT_NEAR(more[1], 2 * 0x1p-24, 1e-12);  // the last block, in both directions
  EXPECT_EQ(more[2], 0);
}

TEST(RowSumCut, OfManyEqualWeightsIsThatOfResultsAndOfProducts) {
  const auto have = cut(std::vector<double>(65536, 1.0));
  double bf16 = 0, f16 = 0;
  for (double sum = 16; sum <= 65536; sum += 16) {
    if (sum > 32768) bf16 += sum * 2 * 0x1p-24;
    if (sum > 4096) f16 += sum * 2 * 0x1p-24;
    if (sum > 16384) f16 += sum * 16 * 0x1p-26;
  }
  EXPECT_NEAR(have[0], bf16 / 65536, 1e-12);
  EXPECT_NEAR(have[1], f16 / 65536, 1e-12);
  EXPECT_EQ(have[2], 0);
}

// One small weight in a block of large ones: its last bits are below the unit of the sum, those of the others are not.
TEST(RowSumCut, OneSmallWeightMakesItsBlockInexact) {
  std::vector<double> weights(64, 1.0);
  EXPECT_EQ(cut(weights)[1], 0);
  weights[40] = 0x1p-8;  // below 2^-12 of a sum of 47, and above 2^-14 of it
  const double sum = 63 + 0x1p-8;
  EXPECT_NEAR(cut(weights)[1] * sum, 2 * 0x1p-24 * (47 + 0x1p-8), 1e-15);
  EXPECT_EQ(cut(weights)[0], 0);
  weights[40] = 0x1p-10;  // its product is cut too
  EXPECT_NEAR(cut(weights)[1] * (63 + 0x1p-10), (2 * 0x1p-24 + 0x1p-26) * (47 + 0x1p-10), 1e-15);
  weights[40] = 0;  // of a hidden key
  EXPECT_EQ(cut(weights)[1], 0);
}

// Backwards, the sum is large from the beginning; a sink's weight belongs to every sum.
TEST(RowSumCut, IsThatOfTheLargerSums) {
  std::vector<double> weights(2048, 0x1p-12);
  weights.back() = 8;
  const double sum = 2047 * 0x1p-12 + 8, all = 2 * 0x1p-24 + 16 * 0x1p-26;
  EXPECT_NEAR(cut(weights)[1] * sum / (128 * 8.25 * all), 1, 0.01);
  std::ranges::reverse(weights);
  EXPECT_NEAR(cut(weights)[1] * sum / (128 * 8.25 * all), 1, 0.01);
  EXPECT_NEAR(cut(std::vector<double>(1600, 1.0), 1e6)[1] / (100 * all), 1, 0.01);
}

// The truncated sum of P as a matrix instruction makes it: `count` products and the sum so far aligned to the largest,
// cut 25 bits below its exponent, added, and cut to 24 bits.
double truncated(const std::vector<double>& p, std::size_t count) {
  double total = 0;
  for (std::size_t at = 0; at < p.size(); at += count) {
    double largest = total;
    for (std::size_t i = at; i < std::min(at + count, p.size()); ++i) largest = std::max(largest, p[i]);
    const double unit = std::ldexp(1.0, std::ilogb(largest) - 25);
    double sum = std::trunc(total / unit);
    for (std::size_t i = at; i < std::min(at + count, p.size()); ++i) sum += std::trunc(p[i] / unit);
    sum *= unit;
    const double last = std::ldexp(1.0, std::ilogb(sum) - 23);
    total = std::trunc(sum / last) * last;
  }
  return total;
}

// Weights of normal scores of several widths, P with the bits of each type, both directions, 8 and 16 products.
TEST(RowSumCut, HoldsForTruncatedSumsAndIsNotFarAboveThem) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  double largest[2] = {};
  for (const std::size_t keys : {500u, 4096u, 16384u, 65536u}) {
    for (const double width : {0.1, 1.0, 2.5}) {
      std::vector<double> weights(keys);
      for (double& e : weights) e = width * normal(random);
      const double top = *std::ranges::max_element(weights);
      for (double& e : weights) e = std::exp(e - top);
      for (const std::size_t type : {0u, 1u}) {
        std::vector<double> p = weights;
        double exact = 0;
        for (double& x : p) {
          const double step = std::ldexp(1.0, std::ilogb(x) - kClumpKeptBits[type]);
          x = std::nearbyint(x / step) * step;
          exact += x;
        }
        const double allowed = cut(weights)[type];
        for (const std::size_t count : {8u, 16u}) {
          for (int direction = 0; direction < 2; ++direction) {
            const double lost = 1 - truncated(p, count) / exact;
            EXPECT_GE(lost, -1e-15);
            EXPECT_LE(lost, allowed + 1e-15) << keys << ' ' << width << ' ' << type << ' ' << count;
            if (allowed > 1e-6) largest[type] = std::max(largest[type], lost / allowed);
            std::ranges::reverse(p);
          }
        }
      }
    }
  }
  EXPECT_GT(largest[0], 0.4);
  EXPECT_GT(largest[1], 0.4);
}

}  // namespace
}  // namespace kvscope::attention::partial_sums_test
