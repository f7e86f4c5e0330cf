// What a rising maximum adds to the clump: against phases computed by rounding, and kernels within the bound.
#include "core/attention/rising_clump.h"

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
#include "core/attention/detail/reference_kernels.h"
#include "core/attention/fast.h"
#include "core/attention/reference.h"
#include "core/attention/weight_terms.h"

namespace kvscope::attention::rising_clump_test {
namespace {

using Scores = std::vector<double>;

struct Row {
  Scores scores;
  std::vector<double> weights;
  WeightTerms terms;
  double sum = 0;
};

std::array<double, kClumpTypes> clump_of(const Row& row) {
  return rising_clump(std::span<const double>(row.weights), row.terms.sums(), row.sum);
}

Row row_of(Scores scores) {
  Row row{std::move(scores), {}, {}, 0};
  const double largest = *std::ranges::max_element(row.scores);
  for (const double s : row.scores) {
    row.weights.push_back(std::exp(s - largest));
    row.terms.add(row.weights.back());
    row.sum += row.weights.back();
  }
  return row;
}

// Scores that rise by `by` in all, with noise of that size.
Scores rising(std::size_t keys, double by, double noise = 0) {
  std::mt19937_64 random(keys);
  std::normal_distribution<double> normal;
  Scores scores;
  for (std::size_t t = 0; t < keys; ++t) {
    scores.push_back(by * static_cast<double>(t) / static_cast<double>(keys) + noise * normal(random));
  }
  return scores;
}

Scores reversed(Scores scores) {
  std::ranges::reverse(scores);
  return scores;
}

// The nearest number with `kept` bits behind the leading 1, by frexp.
double rounded(double x, int kept) {
  int exponent = 0;
  if (x == 0) return 0;
  static_cast<void>(std::frexp(x, &exponent));
  const double step = std::ldexp(1.0, exponent - 1 - kept);
  return std::nearbyint(x / step) * step;
}

constexpr std::array<int, kClumpTypes> kKept = {7, 10, 3};
constexpr std::array<DType, kClumpTypes> kTypes = {DType::bf16, DType::f16, DType::e4m3};

// Row sum of a kernel that sums P rounded to `kept` bits relative to the running maximum of its tiles, over the exact
// one.
double kernel_sum(const Row& row, std::size_t tile, int kept, bool backwards) {
  double maximum = -INFINITY, sum = 0;
  const std::size_t keys = row.scores.size(), tiles = (keys + tile - 1) / tile;
  for (std::size_t n = 0; n < tiles; ++n) {
    const std::size_t first = (backwards ? tiles - 1 - n : n) * tile, last = std::min(keys, first + tile);
    double next = maximum;
    for (std::size_t t = first; t < last; ++t) next = std::max(next, row.scores[t]);
    sum *= std::exp(maximum - next);
    maximum = next;
    for (std::size_t t = first; t < last; ++t) sum += rounded(std::exp(row.scores[t] - maximum), kept);
  }
  return sum * std::exp(maximum - *std::ranges::max_element(row.scores)) / row.sum;
}

TEST(RisingClump, IsZeroWhereNoTileRaisesTheMaximumBelowTheRows) {
  const std::array<double, kClumpTypes> none{};
  EXPECT_EQ(rising_clump(std::span<const double>(), WeightSums{}, 1), none);
  EXPECT_EQ(rising_clump(std::span<const double>(std::vector<double>(100, 0.0)), WeightSums{}, 1), none);
  EXPECT_EQ(clump_of(row_of(rising(16, 1))), none);  // one tile
  EXPECT_EQ(clump_of(row_of(Scores(1000, 3))), none);
}

// Each tile has one score: relative to it, every weight is 1, which no type rounds. Moved by half a step they all do.
TEST(RisingClump, OfStairsIsThatOfEqualWeights) {
  Scores stairs;
  for (int t = 0; t < 4096; ++t) stairs.push_back(t / 256);
  for (const double clump : clump_of(row_of(stairs))) EXPECT_NEAR(clump, 1, 1e-9);
}

// By rounding the weights relative to the maximum of each tile that raises it.
double brute_force(const Row& row, std::size_t type) {
  const double whole = *std::ranges::max_element(row.weights);
  const std::size_t keys = row.weights.size();
  double largest = 0;
  for (const std::size_t tile : {16U, 32U, 64U, 128U, 256U}) {
    for (const bool backwards : {false, true}) {
      std::array<double, kPhaseMoves> phases{};
      double maximum = 0;
      bool reached = false, any = false;
      const std::size_t tiles = (keys + tile - 1) / tile;
      for (std::size_t n = 0; n < tiles; ++n) {
        const std::size_t first = (backwards ? tiles - 1 - n : n) * tile, last = std::min(keys, first + tile);
        double own = 0;
        for (std::size_t t = first; t < last; ++t) own = std::max(own, row.weights[t]);
        reached = reached || own == whole;
        const bool raises = !reached && own > maximum;
        if (raises) maximum = own, any = true;
        for (std::size_t t = first; t < last; ++t) {
          const double p = raises ? row.weights[t] / own : row.weights[t];
          int exponent = 0;
          static_cast<void>(std::frexp(p, &exponent));
          const double half_step = std::ldexp(1.0, exponent - 2 - kKept[type]);
          for (std::size_t move = 0; move < kPhaseMoves; ++move) {
            const double place = (p - rounded(p, kKept[type])) / half_step + static_cast<double>(move) / 2;
            phases[move] += row.weights[t] * (place >= 1 ? place - 2 : place);
          }
        }
      }
      if (!any) continue;
      for (const double x : phases) largest = std::max(largest, std::fabs(x) / row.sum);
    }
  }
  return largest;
}

TEST(RisingClump, IsTheMeanPhaseOfTheTilesThatRaiseTheMaximum) {
  Scores two_levels = rising(256, 0.02);
  for (int t = 0; t < 16; ++t) two_levels.push_back(5.5);
  const std::vector<Scores> all = {two_levels, rising(4096, 7.5), reversed(rising(4096, 7.5)), rising(1000, 3, 0.01),
                                   rising(777, 0.3, 0.2)};
  int measured = 0;
  for (const Scores& scores : all) {
    const Row row = row_of(scores);
    const std::array<double, kClumpTypes> clump = clump_of(row);
    for (std::size_t type = 0; type < kClumpTypes; ++type) {
      const double expected = brute_force(row, type), least = 4 / std::sqrt(3) * row.terms.p2(row.sum);
      EXPECT_NEAR(clump[type], expected > least ? expected : 0, 1e-6) << row.weights.size() << " keys, type " << type;
      measured += clump[type] > 0;
    }
  }
  EXPECT_GE(measured, 6);
}

TEST(RisingClump, OfFloatsIsThatOfDoubles) {
  const Row row = row_of(rising(4096, 6, 0.001));
  const std::vector<float> floats(row.weights.begin(), row.weights.end());
  const std::vector<double> doubles(floats.begin(), floats.end());
  EXPECT_EQ(rising_clump(std::span<const float>(floats), row.terms.sums(), row.sum),
            rising_clump(std::span<const double>(doubles), row.terms.sums(), row.sum));
}

// Lengths with a last tile of any size: lanes after its end must add nothing.
TEST(RisingClump, HasTheSameBitsWithEveryInstructionSet) {
  for (const std::size_t keys : {17U, 31U, 300U, 1000U}) {
    const Row row = row_of(rising(keys, 3, 0.01));
    const std::vector<float> floats(row.weights.begin(), row.weights.end());
    const std::span<const double> doubles(row.weights);
    const WeightSums& sums = row.terms.sums();
    for (const InstructionSet set : available_instruction_sets()) {
      const ReferenceKernels& kernels = *reference_kernels(set);
      const ReferenceKernels& baseline = *reference_kernels(InstructionSet::baseline);
      EXPECT_EQ(rising_clump(kernels, doubles, sums, row.sum), rising_clump(baseline, doubles, sums, row.sum))
          << name(set) << ", " << keys << " keys";
      EXPECT_EQ(rising_clump(kernels, std::span<const float>(floats), sums, row.sum),
                rising_clump(baseline, std::span<const float>(floats), sums, row.sum))
          << name(set) << ", " << keys << " keys";
    }
  }
}

// So a wrong page of such a row is found as before. Many weights of a narrow spread share a number of e4m3: their mean
// phase is not that of independent ones, and is the clump's.
TEST(RisingClump, AddsLittleForScoresInAnyOrder) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (const std::size_t keys : {100U, 512U, 1000U, 4096U, 16384U}) {
    for (const double spread : {0.5, 1.0, 3.0}) {
      Scores scores;
      for (std::size_t t = 0; t < keys; ++t) scores.push_back(spread * normal(random));
      const Row row = row_of(scores);
      const std::array<double, kClumpTypes> clump = clump_of(row);
      EXPECT_EQ(clump[0], 0) << keys << " keys, spread " << spread;
      EXPECT_EQ(clump[1], 0) << keys << " keys, spread " << spread;
      EXPECT_LE(clump[2], row.terms.clump(2, row.sum) + 2 * row.terms.p2(row.sum))
          << keys << " keys, spread " << spread;
    }
  }
}

// Row sums of rounded P, by kernels of many tiles: each within the bound of lse, and without the term many are not.
TEST(RisingClump, CoversKernelsOnRisingAndFallingScores) {
  int outside_without = 0, kernels = 0;
  for (const std::size_t keys : {1000U, 16384U}) {
    for (const double by : {0.5, 3.0, 7.5, 20.0}) {
      for (const double noise : {0.0, 1e-3}) {
        for (const bool falls : {false, true}) {
          const Row row = row_of(falls ? reversed(rising(keys, by, noise)) : rising(keys, by, noise));
          const std::array<double, kClumpTypes> more = clump_of(row);
          for (std::size_t type = 0; type < kClumpTypes; ++type) {
            Rounding rounding = rounding_of(DType::f32);
            rounding.probabilities = kTypes[type];
            rounding.row_sum = RowSum::rounded;
            RowTerms with;
            with.keys = static_cast<double>(keys), with.lse = 10, with.p2 = row.terms.p2(row.sum), with.repeats = 0;
            for (double& x : with.faint) x = 0;
            for (double& x : with.lost) x = 0;
            RowTerms without = with;
            without.clump[type] = row.terms.clump(type, row.sum);
            with.clump[type] = std::max(without.clump[type], more[type]);
            const double allowed = lse_budget(rounding, with).p, before = lse_budget(rounding, without).p;
            EXPECT_LE(before, allowed);
            for (const std::size_t tile : {1U, 16U, 32U, 48U, 64U, 100U, 128U, 256U}) {
              for (const bool backwards : {false, true}) {
                const double error = std::fabs(std::log(kernel_sum(row, tile, kKept[type], backwards)));
                EXPECT_LE(error, allowed) << keys << " keys, rise " << by << ", noise " << noise << ", falls " << falls
                                          << ", " << name(kTypes[type]) << ", tile " << tile << ", " << backwards;
                outside_without += error > before;
                ++kernels;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(outside_without, kernels / 50);
}

// The golden output has it, and so does its fast path: the row sum of a kernel with tiles of 32 is within the bound.
TEST(RisingClump, IsInTheGoldenOutputAndItsFastPath) {
  constexpr std::int64_t kKeys = 4096, kDims = 4;
  const Row row = row_of(rising(kKeys, 7.5));
  std::vector<float> q(kDims), k(kKeys * kDims), v(kKeys * kDims, 1);
  q[0] = 1;
  for (std::size_t t = 0; t < row.scores.size(); ++t) k[t * kDims] = static_cast<float>(row.scores[t]);
  const std::array<std::int64_t, 2> offsets{0, 1};
  const std::array<std::int64_t, 1> lengths{kKeys};
  const std::uint32_t block = 0;
  Problem p;
  p.batch = p.query_heads = 1;
  p.q = reinterpret_cast<const std::byte*>(q.data());
  p.query_offsets = offsets;
  p.key_lengths = lengths;
  p.k = {.data = reinterpret_cast<const std::byte*>(k.data()),
         .blocks = 1,
         .page_size = kKeys,
         .heads = 1,
         .head_size = kDims,
         .block_stride = kKeys * kDims,
         .token_stride = kDims,
         .head_stride = kDims,
         .table = &block,
         .table_stride = 1};
  p.v = p.k;
  p.v.data = reinterpret_cast<const std::byte*>(v.data());
  p.options.scale = 1;
  Rounding rounding = rounding_of(DType::f32);
  rounding.probabilities = DType::e4m3;
  rounding.row_sum = RowSum::rounded;
  const double error = std::fabs(std::log(kernel_sum(row, 32, 3, false)));
  for (const Result& golden : {reference(p), fast_reference(p)}) {
    EXPECT_NEAR(golden.clump(0, 0, 2), clump_of(row)[2], 1e-3);
    EXPECT_LE(error, lse_budget(rounding, row_terms(golden, 0, 0, kDims)).total());
  }
  EXPECT_GT(clump_of(row)[2], 2 * row.terms.clump(2, row.sum));
}

}  // namespace
}  // namespace kvscope::attention::rising_clump_test
