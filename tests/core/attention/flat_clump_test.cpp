// What nearly equal weights add to the clump: against P rounded relative to any number, and one kernel within the bound.
#include "core/attention/flat_clump.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/attention/bounds.h"
#include "core/attention/weight_terms.h"

namespace kvscope::attention::flat_clump_test {
namespace {

using Scores = std::vector<double>;

constexpr std::array<int, kClumpTypes> kKept = {7, 10, 3};

struct Row {
  Scores scores;
  std::vector<double> weights;
  WeightTerms terms;
  double sum = 0;

  explicit Row(Scores all) : scores(std::move(all)) {
    const double largest = *std::ranges::max_element(scores);
    for (const double s : scores) {
      weights.push_back(std::exp(s - largest));
      terms.add(weights.back());
      sum += weights.back();
    }
  }
  [[nodiscard]] std::array<double, kClumpTypes> flat() const {
    return flat_clump(std::span<const double>(weights), terms.sums(), sum);
  }
  // Relative error of the sum of P, rounded to `kept` bits relative to a number `below` the maximum.
  [[nodiscard]] double error(int kept, double below) const {
    double rounded = 0, exact = 0;
    for (const double e : weights) {
      const double p = e * std::exp(below);
      const double step = std::ldexp(1.0, std::ilogb(p) - kept);
      rounded += std::nearbyint(p / step) * step;
      exact += p;
    }
    return rounded / exact - 1;
  }
};

Scores drawn(std::size_t keys, const std::function<double(std::mt19937_64&)>& one) {
  std::mt19937_64 random(keys);
  Scores scores;
  for (std::size_t t = 0; t < keys; ++t) scores.push_back(one(random));
  return scores;
}
Scores spread(std::size_t keys, double width) {
  return drawn(keys, [&](auto& random) { return std::uniform_real_distribution<double>(0, width)(random); });
}
Scores normal(std::size_t keys, double deviation) {
  return drawn(keys, [&](auto& random) { return std::normal_distribution<double>(0, deviation)(random); });
}

TEST(FlatClump, IsTheShareOfAQuarterStep) {
  for (const double width : {0.004, 0.008, 0.016, 0.03}) {
    const std::array<double, kClumpTypes> flat = Row(spread(100'000, width)).flat();
    // Weights just below the maximum, 1: four numbers of the type with three more bits are a quarter of a wide step.
    EXPECT_NEAR(2 * flat[0], 0.25 / (width * 128), 0.02) << width;
    EXPECT_NEAR(2 * flat[1], 0.25 / (width * 1024), 0.01) << width;
    EXPECT_NEAR(2 * flat[2], 1, 1e-3) << width;
  }
}

TEST(FlatClump, IsZeroForWeightsThatVary) {
  const std::array<double, kClumpTypes> none{};
  for (const double deviation : {0.5, 1.0, 3.0}) {
    for (const std::size_t keys : {17, 188, 1000, 16384}) {
      const std::array<double, kClumpTypes> flat = Row(normal(keys, deviation)).flat();
      EXPECT_EQ(flat[0], 0) << keys << " keys, " << deviation;
      EXPECT_EQ(flat[1], 0) << keys << " keys, " << deviation;
      EXPECT_LE(flat[2], 0.06) << keys << " keys, " << deviation;  // a quarter step is a 32nd of the number
    }
  }
  EXPECT_EQ(flat_clump(std::span<const double>(), WeightSums{}, 1), none);
  const std::vector<double> zeros(100, 0.0);  // beside a sink with all the weight
  EXPECT_EQ(flat_clump(std::span<const double>(zeros), WeightSums{}, 1), none);
  WeightTerms terms;
  const std::vector<double> nan(3, NAN);
  for (const double e : nan) terms.add(e);
  EXPECT_EQ(flat_clump(std::span<const double>(nan), terms.sums(), NAN), none);
}

// Half of the keys at half the weight have the phases of the others; at a third of it, theirs alone.
TEST(FlatClump, FoldsWeightsThatDifferByAPowerOfTwo) {
  const Scores scores = spread(16384, 0.008);
  const double whole = 2 * Row(scores).flat()[0];
  Scores halves = scores, thirds = scores;
  for (std::size_t t = 0; t < scores.size(); t += 2) halves[t] -= std::log(2.0), thirds[t] -= std::log(3.0);
  EXPECT_NEAR(2 * Row(halves).flat()[0], whole, 0.02);
  EXPECT_NEAR(2 * Row(thirds).flat()[0], whole * 3 / 4, 0.02);
}

TEST(FlatClump, OfFloatsIsThatOfDoubles) {
  const Row row(spread(4096, 0.01));
  const std::vector<float> floats(row.weights.begin(), row.weights.end());
  const std::vector<double> doubles(floats.begin(), floats.end());
  EXPECT_EQ(flat_clump(std::span<const float>(floats), row.terms.sums(), row.sum),
            flat_clump(std::span<const double>(doubles), row.terms.sums(), row.sum));
}

TEST(FlatClump, IsOfAllTheWeightWithTheSinks) {
  const Row row(spread(4096, 0.01));
  const std::array<double, kClumpTypes> half =
      flat_clump(std::span<const double>(row.weights), row.terms.sums(), 2 * row.sum);
  for (std::size_t type = 0; type < kClumpTypes; ++type) EXPECT_EQ(half[type], row.flat()[type] / 2);
}

// Whatever number a kernel subtracts: the error of its row sum is within the clump and four deviations of independent
// errors. Without the term many are outside.
TEST(FlatClump, CoversEveryNumberThatAKernelSubtracts) {
  std::vector<std::pair<std::string, Scores>> rows;
  for (const double width :
       {0.0001, 0.0005, 0.001, 0.002, 0.004, 0.006, 0.008, 0.012, 0.016, 0.03, 0.06, 0.12, 0.25, 0.5}) {
    rows.emplace_back("spread over " + std::to_string(width), spread(4096, width));
    Scores higher = spread(4096, width);
    higher[7] = 2;
    rows.emplace_back("one key at 2, others over " + std::to_string(width), higher);
    for (const double apart : {std::log(2.0), std::log(3.0), 4.0}) {
      Scores groups = spread(4096, width);
      for (std::size_t t = 0; t < groups.size(); t += 2) groups[t] -= apart;
      rows.emplace_back("two groups over " + std::to_string(width) + ", apart " + std::to_string(apart), groups);
    }
  }
  for (const double deviation : {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0}) {
    rows.emplace_back("normal, " + std::to_string(deviation), normal(4096, deviation));
  }
  int outside_without = 0;
  for (const auto& [what, scores] : rows) {
    const Row row(scores);
    for (std::size_t type = 0; type < kClumpTypes; ++type) {
      double largest = 0;
      // All shifts of a binade in small steps, and those that put the lower or the upper end of the bulk, or a place
      // between them, just above a power of two.
      std::vector<double> shifts;
      for (int i = 0; i < 200; ++i) shifts.push_back(std::log(2.0) * i / 200);
      Scores sorted = row.scores;
      std::ranges::sort(sorted);
      for (std::size_t i = 0; i < 64; ++i) shifts.push_back(sorted.back() - sorted[i * (sorted.size() - 2) / 63]);
      for (const double shift : shifts) largest = std::max(largest, std::fabs(row.error(kKept[type], shift)));
      const double unit = std::ldexp(1.0, -kKept[type] - 1), independent = 4 / std::sqrt(3) * row.terms.p2(row.sum);
      const double before = std::min(1.0, 2 * row.terms.clump(type, row.sum));
      const double now = std::min(1.0, std::max(before, 2 * row.flat()[type]));
      EXPECT_LE(largest / unit, now + independent) << what << ", type " << type;
      outside_without += largest / unit > before + independent;
    }
  }
  EXPECT_GE(outside_without, 30);
}

// A correct kernel that the bound rejected before it had this term: its row sum is of P in bf16, relative to a number
// 0.017 below the maximum.
TEST(FlatClump, AcceptsAKernelThatSubtractsLessThanTheMaximum) {
  const Row row(spread(16384, 0.004));
  Rounding rounding = rounding_of(DType::f32);
  rounding.probabilities = DType::bf16;
  rounding.row_sum = RowSum::rounded;
  RowTerms terms;
  terms.keys = 16384, terms.lse = 10, terms.p2 = row.terms.p2(row.sum), terms.repeats = 0;
  for (double& x : terms.faint) x = 0;
  for (double& x : terms.lost) x = 0;
  const double error = std::fabs(std::log1p(row.error(7, 0.0045)));
  terms.clump[0] = row.terms.clump(0, row.sum);
  EXPECT_GT(error, lse_budget(rounding, terms).p);
  terms.clump[0] = std::max(terms.clump[0], row.flat()[0]);
  EXPECT_LE(error, lse_budget(rounding, terms).p);
}

}  // namespace
}  // namespace kvscope::attention::flat_clump_test
