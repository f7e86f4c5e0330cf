// The expected sum of squares, and the share of correct and of shifted groups that fail.
#include "core/golden/verdict/group_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace kvscope::golden::group_tests_test {
namespace {

// A normal number: the sum of twelve uniform ones.
double normal(std::uint64_t n) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) sum += CounterRng(11, i).uniform(n);
  return sum;
}

struct Case {
  std::vector<RowEvidence> rows;
  std::vector<RowLabel> labels;
};

// `rows` rows of 64 elements whose errors are `size` deviations, rounded to a step of `step` deviations. With `common`,
// all elements of a row have the same error.
Case errors(std::size_t rows, double size, double step, bool common, std::uint64_t seed) {
  Case c;
  for (std::size_t row = 0; row < rows; ++row) {
    RowEvidence evidence;
    for (std::uint64_t d = 0; d < 64; ++d) {
      const std::uint64_t n = (seed * rows + row) * 64 + d;
      const double golden = step * (CounterRng(3, 0).uniform(n) - 0.5);  // relative to the nearest stored number
      const double before = golden + size * normal(common ? n - d : n);
      const double stored = step == 0 ? before : std::round(before / step) * step;
      const double excess = std::max(0.0, std::fabs(stored - golden) - step / 2);
      evidence.add(excess, step / 2 - std::fabs(golden), 7);
    }
    c.rows.push_back(evidence);
    c.labels.push_back({0, static_cast<std::int64_t>(row), static_cast<double>(row)});
  }
  return c;
}

TEST(GroupTests, NoCorrectGroupFailsWhateverTheStepAndTheCorrelation) {
  for (const double step : {0.0, 0.5, 5.0, 500.0}) {
    for (const bool common : {false, true}) {
      double largest = 0;
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const Case c = errors(16, 1, step, common, seed);
        largest = std::max(largest, test_groups(c.rows, c.labels).ratio);
      }
      EXPECT_LT(largest, 0.8) << step << ' ' << common;
    }
  }
}

// Three to five deviations are below the seven that one element is allowed.
TEST(GroupTests, ErrorsOfAFewDeviationsInEveryElementFail) {
  for (const auto& [step, size] : {std::pair<double, double>{0, 3}, {5, 5}}) {
    const Case c = errors(32, size, step, false, 1);
    const GroupResult result = test_groups(c.rows, c.labels);
    EXPECT_GT(result.ratio, 1) << step;
    EXPECT_EQ(result.worst, "sequence 0, all heads");
    EXPECT_EQ(result.rows, 32u);
  }
}

// Rows with one golden value have one error, not 32 independent ones.
TEST(GroupTests, RowsWithTheSameGoldenCountOnce) {
  Case c = errors(32, 3, 0, false, 1);
  for (RowLabel& label : c.labels) label.identity = 7;
  const GroupResult result = test_groups(c.rows, c.labels);
  EXPECT_LT(result.ratio, 1);
  EXPECT_EQ(result.rows, 1u);
}

TEST(GroupTests, CountsHeadsSequencesAndHeadsOverSequences) {
  Case c = errors(4, 0, 0, false, 1);
  c.labels = {{0, 0, 0}, {0, 1, 1}, {1, 0, 2}, {1, 1, 3}};
  EXPECT_EQ(test_groups(c.rows, c.labels).groups, 4 + 2 + 2);
}

// Head 1 of sequence 0 and head 0 of sequence 1 have no row, and so no group.
TEST(GroupTests, HeadsThatASequenceLacksAreNoGroups) {
  Case c = errors(2, 0, 0, false, 1);
  c.labels = {{0, 0, 0}, {1, 1, 1}};
  EXPECT_EQ(test_groups(c.rows, c.labels).groups, 2 + 2 + 2);
}

// An index that assumes the order of sequences, then heads, gives a row to another group.
TEST(GroupTests, TheOrderOfTheRowsDoesNotCount) {
  Case c = errors(12, 3, 0, false, 1), moved;
  for (std::size_t i = 0; i < 12; ++i) {
    c.labels[i] = {static_cast<std::int64_t>(i / 3) * 5, static_cast<std::int64_t>(i % 3) * 2, static_cast<double>(i)};
  }
  for (std::size_t i = 0; i < 12; ++i) {
    moved.rows.push_back(c.rows[i * 7 % 12]);
    moved.labels.push_back(c.labels[i * 7 % 12]);
  }
  const GroupResult in_order = test_groups(c.rows, c.labels), result = test_groups(moved.rows, moved.labels);
  EXPECT_GT(in_order.ratio, 0);
  EXPECT_EQ(result.groups, in_order.groups);
  EXPECT_EQ(result.worst, in_order.worst);
  EXPECT_NEAR(result.ratio, in_order.ratio, 1e-12);
  EXPECT_EQ(result.failing, in_order.failing);
}

// A bound of NaN fails on its own; its element has no place in a sum.
TEST(GroupTests, AnElementWithoutABoundIsNotCounted) {
  RowEvidence evidence;
  evidence.add(std::nan(""), 1, 7);
  evidence.add(1, std::nan(""), 7);
  EXPECT_EQ(evidence.sum, 0);
  EXPECT_EQ(evidence.expected, 0);
  EXPECT_EQ(evidence.visible, 0);
  evidence.add(2, 0, 7);
  EXPECT_EQ(evidence.sum, 4);
  EXPECT_DOUBLE_EQ(evidence.expected, 1);  // E[z^2]
  EXPECT_EQ(evidence.visible, 1);
}

}  // namespace
}  // namespace kvscope::golden::group_tests_test
