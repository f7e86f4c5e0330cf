// The budgets of many elements in vectors against those of one element at a time, over a grid of kernels and magnitudes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/attention/bounds.h"
#include "core/attention/reference.h"
#include "core/base/random.h"

namespace kvscope::attention::budget_row_test {
namespace {

struct Elements {
  std::vector<double> o, a1, a2, running;
  [[nodiscard]] ElementRow row() const {
    return {o.data(), a1.data(), a2.data(), running.data(), static_cast<std::int64_t>(o.size())};
  }
};

// Magnitudes from 10^-300 to 10^140, values that are 0, and elements whose weight is in one key: a1 = a2 = running.
Elements elements(std::size_t count, std::uint64_t seed) {
  const CounterRng rng(seed, 5);
  Elements e;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double size = i % 3 == 0 ? std::pow(10.0, 440 * rng.uniform(8 * i) - 300) : 1;
    const double a1 = size * rng.uniform(8 * i + 1);
    const bool one_key = i % 7 == 0;
    e.a1.push_back(i % 11 == 0 ? 0 : a1);
    e.a2.push_back(one_key ? e.a1.back() : e.a1.back() * rng.uniform(8 * i + 2));
    e.running.push_back(one_key ? e.a1.back() : e.a1.back() * rng.uniform(8 * i + 3));
    e.o.push_back(i % 5 == 0 ? 0.0 : e.a1.back() * (2 * rng.uniform(8 * i + 4) - 1));
  }
  return e;
}

std::vector<Rounding> kernels() {
  std::vector<Rounding> all;
  for (const DType output : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const DType probabilities : {output, DType::e4m3}) {
      Rounding r = rounding_of(output);
      r.probabilities = probabilities;
      all.push_back(r);
      r.tile_keys = 64;
      r.accumulator_bits = 14;
      all.push_back(r);
      r.inputs = DType::f16;
      r.partials = DType::bf16;
      r.tile_keys = 1;
      all.push_back(r);
    }
  }
  return all;
}

std::vector<RowTerms> rows() {
  RowTerms plain;
  plain.keys = 4096;
  plain.head_size = 128;
  plain.smax = 3.5;
  plain.lse = 8.5;
  plain.p2 = 0.025;
  plain.repeats = 3;
  for (double& clump : plain.clump) clump = 0.02;
  for (double& faint : plain.faint) faint = 0.001;
  RowTerms unknown;  // the largest values of all terms
  unknown.keys = 65536;
  RowTerms fast = plain;
  fast.score_error = 1e-6;
  fast.sum_error = 1e-7;
  RowTerms sink = plain;
  sink.largest_value = 0.5;
  return {plain, unknown, fast, sink};
}

TEST(BudgetRow, EqualsTheBudgetOfEachElementForEachKernelAndMagnitude) {
  const Elements e = elements(333, 1);
  std::vector<double> total(e.o.size()), systematic(e.o.size()), variance(e.o.size());
  for (const Rounding& rounding : kernels()) {
    for (const RowTerms& row : rows()) {
      const OutputBudgets budgets(rounding, row);
      budgets.of_row(e.row(), {total.data(), systematic.data(), variance.data()});
      for (std::size_t i = 0; i < e.o.size(); ++i) {
        const Budget b = budgets.of({e.o[i], e.a1[i], e.a2[i], e.running[i]});
        ASSERT_NEAR(total[i], b.total(), 1e-14 * b.total()) << name(rounding.output) << ' ' << i;
        ASSERT_NEAR(systematic[i], b.before_output() - b.independent, 1e-14 * b.total()) << i;
        // Below 2^-1022 a square has fewer bits.
        ASSERT_NEAR(std::sqrt(variance[i]), b.deviation, 1e-14 * b.deviation + 0x1p-530) << i;
      }
    }
  }
}

// A result that depended on the machine would make two reports of one comparison differ.
TEST(BudgetRow, HasTheSameBitsForEachInstructionSetAndLength) {
  for (const std::size_t count : {0u, 1u, 2u, 3u, 7u, 8u, 9u, 15u, 16u, 17u, 128u}) {
    const Elements e = elements(count, 2 + count);
    for (const RowTerms& row : rows()) {
      const OutputBudgets budgets(rounding_of(DType::bf16), row);
      std::vector<double> want[3], have[3];
      for (int part = 0; part < 3; ++part) want[part] = have[part] = std::vector<double>(count + 1, -1);
      budgets.of_row(e.row(), {want[0].data(), want[1].data(), want[2].data()});
      for (const InstructionSet set : available_instruction_sets()) {
        budgets.of_row(e.row(), {have[0].data(), have[1].data(), have[2].data()}, set);
        for (int part = 0; part < 3; ++part) {
          EXPECT_EQ(std::memcmp(want[part].data(), have[part].data(), 8 * count + 8), 0) << name(set) << ' ' << count;
        }
        EXPECT_EQ(have[0][count], -1) << "written past the end";
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::attention::budget_row_test
