// What nearly equal weights add to the clump, and how many of their additions round in one direction: against P rounded
// relative to any number, against sums in f32, and kernels within the bound.
#include "core/attention/flat_weights.h"

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

namespace kvscope::attention::flat_weights_test {
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
    return flat_terms(std::span<const double>(weights), terms.sums(), sum).clump;
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
    for (const std::size_t keys : {17U, 188U, 1000U, 16384U}) {
      const std::array<double, kClumpTypes> flat = Row(normal(keys, deviation)).flat();
      EXPECT_EQ(flat[0], 0) << keys << " keys, " << deviation;
      EXPECT_EQ(flat[1], 0) << keys << " keys, " << deviation;
      EXPECT_LE(flat[2], 0.06) << keys << " keys, " << deviation;  // a quarter step is a 32nd of the number
    }
  }
  EXPECT_EQ(flat_terms(std::span<const double>(), WeightSums{}, 1).clump, none);
  const std::vector<double> zeros(100, 0.0);  // beside a sink with all the weight
  EXPECT_EQ(flat_terms(std::span<const double>(zeros), WeightSums{}, 1).clump, none);
  WeightTerms terms;
  const std::vector<double> nan(3, NAN);
  for (const double e : nan) terms.add(e);
  EXPECT_EQ(flat_terms(std::span<const double>(nan), terms.sums(), NAN).clump, none);
}

// Four neighboring significands by the definition: few bits are counted first, and more only if they may matter. Shares
// around the smallest one that counts, so that a wrong condition for counting shows.
TEST(FlatClump, IsTheLargestOfAllQuarterSteps) {
  const auto one_by_one = [](const Row& row) {
    std::array<double, kClumpTypes> clump{};
    for (const std::size_t type : {2U, 0U, 1U}) {
      const int bits = kKept[type] + 3;
      std::vector<double> weight_of(std::size_t{1} << bits);
      for (const double e : row.weights) {
        weight_of[static_cast<std::size_t>(std::ldexp(e, bits - std::ilogb(e))) - weight_of.size()] += e;
      }
      double largest = 0;
      for (std::size_t i = 0; i < weight_of.size(); ++i) {
        double four = 0;
        for (std::size_t n = 0; n < 4; ++n) four += weight_of[(i + n) % weight_of.size()];
        largest = std::max(largest, four);
      }
      if (largest <= 2 * std::sqrt(row.terms.sums().squares)) break;
      clump[type] = largest / row.sum / 2;
    }
    return clump;
  };
  std::array<int, kClumpTypes + 1> with_types{};
  for (const std::size_t keys : {31U, 64U, 200U, 1000U, 5000U, 40'000U}) {
    for (double width = 1; width > 1e-4; width *= 0.7) {
      const Row row(spread(keys, width));
      const std::array<double, kClumpTypes> expected = one_by_one(row), flat = row.flat();
      int types = 0;
      for (std::size_t type = 0; type < kClumpTypes; ++type) {
        EXPECT_NEAR(flat[type], expected[type], 1e-9 * expected[type]) << keys << ' ' << width << ' ' << type;
        types += expected[type] > 0 ? 1 : 0;
      }
      ++with_types[static_cast<std::size_t>(types)];
    }
  }
  for (const int rows : with_types) EXPECT_GT(rows, 3);
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
  const FlatTerms of_floats = flat_terms(std::span<const float>(floats), row.terms.sums(), row.sum);
  const FlatTerms of_doubles = flat_terms(std::span<const double>(doubles), row.terms.sums(), row.sum);
  EXPECT_EQ(of_floats.clump, of_doubles.clump);
  EXPECT_EQ(of_floats.additions, of_doubles.additions);
}

TEST(FlatClump, IsOfAllTheWeightWithTheSinks) {
  const Row row(spread(4096, 0.01));
  const std::array<double, kClumpTypes> half =
      flat_terms(std::span<const double>(row.weights), row.terms.sums(), 2 * row.sum).clump;
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

// --- additions --------------------------------------------------------------------------------------------------------

double additions_of(const Row& row) {
  return flat_terms(std::span<const double>(row.weights), row.terms.sums(), row.sum).additions;
}

// Relative error of the row sum in f32, one by one, relative to a number `below` the maximum.
double error_of_f32(const Row& row, double below, bool backwards) {
  float sum = 0;
  double exact = 0;
  for (std::size_t t = 0; t < row.weights.size(); ++t) {
    const double e = row.weights[backwards ? row.weights.size() - 1 - t : t] * std::exp(below);
    sum += static_cast<float>(e);
    exact += static_cast<double>(static_cast<float>(e));
  }
  return std::fabs(static_cast<double>(sum) / exact - 1);
}

TEST(FlatAdditions, OfEqualWeightsAreAll) {
  for (const std::size_t keys : {1000u, 4096u, 20000u}) {
    const Row row(Scores(keys, 0.0));
    EXPECT_NEAR(additions_of(row) / static_cast<double>(keys), 0.5, 0.03) << keys;
  }
}

// As many as errors without a direction add up to.
TEST(FlatAdditions, AreFewOfWeightsThatVary) {
  for (const double deviation : {0.5, 1.0, 3.0}) {
    for (const std::size_t keys : {17u, 188u, 1000u, 16384u, 65536u}) {
      EXPECT_LE(additions_of(Row(normal(keys, deviation))), 2 * std::sqrt(keys)) << keys << " keys, " << deviation;
    }
  }
  EXPECT_EQ(additions_of(Row(Scores(1, 0.0))), 0);
}

// Every addition to a sink of 65,536 has the sink's unit.
TEST(FlatAdditions, OfASinkBeginAtItsWeight) {
  const Row row(spread(1000, 1e-4));
  const FlatTerms terms = flat_terms(std::span<const double>(row.weights), row.terms.sums(), 65536 + row.sum);
  EXPECT_GT(terms.additions, 850);
  EXPECT_LE(terms.additions, 1000);
}

// Sums in f32 for 25 numbers that a kernel may subtract, in both directions: the error is within the additions and
// seven deviations of independent errors, a third of all where every sum is smaller. Without the term, many are outside.
TEST(FlatAdditions, CoverSumsInF32) {
  int outside_without = 0;
  double most = 0;
  for (const std::size_t keys : {1000u, 4096u, 16384u, 65536u}) {
    std::vector<std::pair<std::string, Scores>> rows;
    for (const double deviation : {1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 0.1}) {
      rows.emplace_back("normal " + std::to_string(deviation), normal(keys, deviation));
      rows.emplace_back("spread over " + std::to_string(deviation), spread(keys, deviation));
      Scores half = normal(keys, deviation);
      for (std::size_t t = 0; t < keys; t += 2) half[t] = std::sin(static_cast<double>(t * t));
      rows.emplace_back("half of the keys normal " + std::to_string(deviation), half);
      Scores rising = normal(keys, deviation);
      std::ranges::sort(rising);
      rows.emplace_back("rising, normal " + std::to_string(deviation), rising);
    }
    for (const auto& [what, scores] : rows) {
      const Row row(scores);
      const double independent = 7 * 0.5 * std::sqrt(16 + static_cast<double>(keys) / 3);
      const double additions = additions_of(row);
      for (int i = 0; i < 25; ++i) {
        for (const bool backwards : {false, true}) {
          const double error = error_of_f32(row, std::log(2.0) * i / 25, backwards) * 0x1p24;
          EXPECT_LE(error, additions + independent) << what << ", " << keys << " keys, " << i;
          outside_without += error > independent;
          if (additions > 0) most = std::max(most, error / (additions + independent));
        }
      }
    }
  }
  EXPECT_GE(outside_without, 250);
  EXPECT_GE(most, 0.5);
}

// A correct kernel that the bound rejected before it had this term.
TEST(FlatAdditions, AcceptALongSumInF32) {
  const Row row(normal(65536, 0.001));
  Rounding rounding = rounding_of(DType::f32);
  rounding.row_sum = RowSum::exact;
  RowTerms terms;
  terms.keys = 65536, terms.lse = 11, terms.p2 = row.terms.p2(row.sum), terms.row_sum_so_far = std::sqrt(1.0 / 3);
  for (double& x : terms.clump) x = 0;
  for (double& x : terms.faint) x = 0;
  for (double& x : terms.lost) x = 0;
  double error = 0;
  for (int i = 0; i < 20; ++i) error = std::max(error, error_of_f32(row, 0.03 * i, false));
  terms.repeats = row.terms.repeats();
  EXPECT_GT(error, 2 * lse_budget(rounding, terms).sum);
  terms.repeats = additions_of(row);
  EXPECT_LE(error, lse_budget(rounding, terms).sum);
}

}  // namespace
}  // namespace kvscope::attention::flat_weights_test
