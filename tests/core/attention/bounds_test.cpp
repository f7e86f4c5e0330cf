// The error budget against numbers computed by hand from the formulas of docs/04, and its behavior at the ends.
#include "core/attention/bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/attention/weight_terms.h"
#include "core/base/errors.h"

namespace kvscope::attention::bounds_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

RowTerms example_row() {
  RowTerms row;
  row.keys = 64;
  row.head_size = 64;
  row.smax = 3;
  row.lse = 4;
  row.p2 = 0.125;
  row.repeats = 0;
  for (double& clump : row.clump) clump = 0;
  for (double& faint : row.faint) faint = 0;
  return row;
}
constexpr ElementTerms kElement{1, 2, 0.25, 0.5};

double total(DType type, const ElementTerms& element = kElement, const RowTerms& row = example_row()) {
  return output_budget(rounding_of(type), row, element).total();
}

// What matrix instructions cut from the f32 sums of 64 keys and of 64 products of a score of at most 4, for kElement.
constexpr double kCutProduct = 1.625 * 0x1p-26;
constexpr double kCut = kCutProduct * (64 * 1.25 + 64 * 4 * 3);

TEST(OutputBound, WorkedNumbersOfEachType) {
  EXPECT_NEAR(total(DType::bf16), 0.007859742247631437 + kCut, 1e-15);
  EXPECT_NEAR(total(DType::f16), 0.000988384436316538 + kCut, 1e-15);
  EXPECT_NEAR(total(DType::f32), 6.881718813741671e-06 + 0x1p-24, 1e-18);  // the clump of f32 is not measured
  EXPECT_LT(total(DType::f64), 8.3e-6 * 0x1p-26);
}

TEST(OutputBound, BudgetNamesEachSource) {
  const Budget b = output_budget(rounding_of(DType::bf16), example_row(), kElement);
  EXPECT_EQ(b.inputs, 0);
  EXPECT_NEAR(b.scores, 3.7389649359479244e-06, 1e-18);
  EXPECT_NEAR(b.ex2, 4.79307883043729e-07, 1e-18);
  EXPECT_NEAR(b.p, 0.003946730355788457, 1e-15);
  EXPECT_NEAR(b.sum, 1.589944707582834e-06, 1e-18);
  EXPECT_NEAR(b.cut, kCut, 1e-18);
  EXPECT_NEAR(b.merge, 9.5367431640625e-07, 1e-18);
  EXPECT_EQ(b.output, 0x1p-8);
}

// min(a1, 4 a2): one key makes them equal, and 4 * a2 alone would then allow four times too much.
TEST(OutputBound, TakesA1WhereOneKeyHoldsAllTheWeight) {
  const Budget b = output_budget(rounding_of(DType::bf16), example_row(), {2, 2, 2, 2});
  EXPECT_NEAR(b.p, 2 * 0x1p-8, 1e-12);
}

TEST(OutputBound, GrowsWithTheSignlessValueAndNeverFallsBelowHalfAStep) {
  EXPECT_EQ(total(DType::bf16, {-2, 2, 1, 1}), total(DType::bf16, {2, 2, 1, 1}));
  EXPECT_EQ(total(DType::f16, {}), 0x1p-25);
  EXPECT_GT(total(DType::f32, {}), 0);
  EXPECT_LT(total(DType::f32, {}), 0x1p-149);
  EXPECT_GT(total(DType::f64, {}), 0);
}

// Rounding errors of equal probabilities do not cancel: they scale o as a whole.
TEST(OutputBound, EqualProbabilitiesRoundTogether) {
  RowTerms row = example_row();
  const double apart = output_budget(rounding_of(DType::bf16), row, {1, 1, 0.01, 1}).p;
  row.clump[0] = 0.5;
  const double together = output_budget(rounding_of(DType::bf16), row, {1, 1, 0.01, 1}).p;
  EXPECT_NEAR(together - apart, 0x1p-8, 1e-12);
  row.clump[0] = 0;
  row.clump[1] = row.clump[2] = 1;  // of other types
  EXPECT_EQ(output_budget(rounding_of(DType::bf16), row, {1, 1, 0.01, 1}).p, apart);
}

TEST(OutputBound, GrowsWithKeysAddedOneByOneAndLessInTiles) {
  RowTerms row = example_row();
  row.score_sum = 0;  // the errors of scores would take a part of the deviations
  Rounding rounding = rounding_of(DType::f32);
  const double short_row = output_budget(rounding, row, kElement).sum;
  row.keys = 65536;
  const double long_row = output_budget(rounding, row, kElement).sum;
  EXPECT_NEAR(long_row / short_row, std::sqrt((16 + 65536.0) / (16 + 64)), 1e-9);
  rounding.tile_keys = 64;
  EXPECT_NEAR(output_budget(rounding, row, kElement).sum / short_row, std::sqrt((16 + 64 + 1024.0) / (16 + 64)), 1e-9);
}

TEST(OutputBound, StatedTypesOfPPartialsAndOperandsCount) {
  Rounding rounding = rounding_of(DType::f32);
  rounding.probabilities = DType::bf16;
  EXPECT_NEAR(output_budget(rounding, example_row(), kElement).p, 0.003946730355788457, 1e-12);
  rounding.partials = DType::f16;
  EXPECT_NEAR(output_budget(rounding, example_row(), kElement).merge, 2 * 0x1p-11 + 9.5367431640625e-07 + 0x1p-25,
              1e-15);
  rounding.inputs = DType::f16;
  EXPECT_NEAR(output_budget(rounding, example_row(), kElement).inputs, 0x1p-11 * 7 / std::sqrt(3.0) * 9 * 2, 1e-12);
}

// Equal weights that are no exact sums, such as those of a padding token: all additions round in the same direction.
TEST(OutputBound, EqualWeightsRoundInTheSameDirection) {
  WeightTerms weights;
  for (int t = 0; t < 100; ++t) weights.add(0.3);
  for (int t = 0; t < 50; ++t) weights.add(1);
  EXPECT_EQ(weights.repeats(), 99 + 49);
  RowTerms row = example_row();
  const double without = output_budget(rounding_of(DType::f32), row, kElement).sum;
  const double lse = lse_budget(rounding_of(DType::f32), row).sum;
  row.repeats = 99;
  EXPECT_NEAR(output_budget(rounding_of(DType::f32), row, kElement).sum - without, 99 * 0x1p-24, 1e-15);
  EXPECT_NEAR(lse_budget(rounding_of(DType::f32), row).sum - lse, 99 * 0x1p-24, 1e-15);
}

// Values that are positive in the first half of the keys and negative in the second: the parts of a split are larger than o.
TEST(OutputBound, PartialOutputsMayBeLargerThanTheOutput) {
  Rounding rounding = rounding_of(DType::bf16);
  rounding.partials = DType::bf16;
  EXPECT_GT(output_budget(rounding, example_row(), {0, 1, 0.01, 0.36}).merge, 0x1p-8);
  EXPECT_LT(output_budget(rounding, example_row(), {0, 1, 0.01, 0.01}).merge, 0.13 * 0x1p-8);
}

// P in 16 bits: products of matrix instructions with an f32 sum, in proportion to the sum so far and to the keys; twice
// as much for equal products.
TEST(OutputBound, MatrixInstructionsTruncateTheirF32Sums) {
  const Rounding rounding = rounding_of(DType::f16);
  RowTerms row = example_row();
  EXPECT_NEAR(output_budget(rounding, row, kElement).cut, kCut, 1e-18);
  EXPECT_NEAR(lse_budget(rounding, row).cut, kCutProduct * (64 + 64 * 4), 1e-18);
  row.keys = 65536;
  row.head_size = 0;
  row.row_sum_so_far = 0.58;
  EXPECT_NEAR(output_budget(rounding, row, kElement).cut, kCutProduct * 65536 * 0.83, 1e-15);
  EXPECT_NEAR(lse_budget(rounding, row).cut, kCutProduct * 65536 * 0.58, 1e-15);
  row.row_sum_so_far = 0.4;  // less than the sum from the first key on
  EXPECT_NEAR(output_budget(rounding, row, kElement).cut, kCutProduct * 65536 * 0.75, 1e-15);
  row.row_sum_so_far = 0.58;
  row.repeats = 32768;
  EXPECT_NEAR(output_budget(rounding, row, kElement).cut, kCutProduct * 98304 * 0.83, 1e-15);
  row.repeats = -1;  // not known
  EXPECT_NEAR(output_budget(rounding, row, kElement).cut, kCutProduct * 131072 * 0.83, 1e-15);
  // The sums of an f32 P are not those of matrix instructions, and sums in double are not truncated.
  EXPECT_EQ(output_budget(rounding_of(DType::f32), row, kElement).cut, 0);
  EXPECT_EQ(output_budget(rounding_of(DType::f64), row, kElement).cut, 0);
  Rounding split = rounding_of(DType::f32);
  split.probabilities = DType::bf16;
  EXPECT_GT(output_budget(split, row, kElement).cut, 0);
}

// fp8 on Hopper: 64 products and 2 sums so far in each tile, and the same for the scores of 64 dims.
TEST(OutputBound, TruncatingSumsLoseAUnitOfTheLargestAddendEachTime) {
  Rounding rounding = rounding_of(DType::bf16);
  rounding.accumulator_bits = 14;
  rounding.tile_keys = 64;
  const double score = 0.5 * 66 * 0x1p-13 * 4;
  EXPECT_NEAR(output_budget(rounding, example_row(), kElement).cut, 66 * 0x1p-13 * 2 + score * 3, 1e-15);
  EXPECT_NEAR(lse_budget(rounding, example_row()).cut, 66 * 0x1p-13 + score, 1e-15);
  rounding.row_sum = RowSum::exact;  // summed apart from the matrix instructions
  EXPECT_NEAR(lse_budget(rounding, example_row()).cut, score, 1e-15);
  RowTerms row = example_row();
  row.keys = 4096;
  EXPECT_NEAR(output_budget(rounding, row, kElement).cut, 66 * 0x1p-13 * 2 + score * 3, 1e-15);
  rounding.tile_keys = 1;  // one sum over all keys; no sum loses more than its terms
  EXPECT_NEAR(output_budget(rounding, row, kElement).cut, 0.515625 * 2 + score * 3, 1e-12);
}

// Errors of a row's probabilities as page tests use them.
TEST(ProbabilityErrors, AreThoseOfPsType) {
  RowTerms row = example_row();
  row.clump[0] = 0.1;
  const ProbabilityErrors bf16 = probability_errors(rounding_of(DType::bf16), row);
  EXPECT_NEAR(bf16.independent, 0x1p-8 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(bf16.common, 0.2 * 0x1p-8, 1e-15);
  EXPECT_EQ(bf16.smallest, 0);
  EXPECT_EQ(probability_errors(rounding_of(DType::f16), row).smallest, 0x1p-25);
}

// Adding tiles of 64 keys: 64 additions within a tile and 1024 of tiles may round in one direction, whatever repeats.
TEST(OutputBound, EqualWeightsInTilesAreAtMostTheAdditionsOfATileAndOfTheTiles) {
  RowTerms row = example_row();
  row.keys = 65536;
  Rounding rounding = rounding_of(DType::f32);
  rounding.tile_keys = 64;
  const double without = output_budget(rounding, row, kElement).sum;
  row.repeats = 32768;
  EXPECT_NEAR(output_budget(rounding, row, kElement).sum - without, (64 + 1024) * 0x1p-24, 1e-15);
  row.repeats = 100;
  EXPECT_NEAR(output_budget(rounding, row, kElement).sum - without, 100 * 0x1p-24, 1e-15);
}

// Below the normal range, errors of different keys have different signs. The smaller of the two sums is allowed.
TEST(OutputBound, SubnormalProbabilitiesRoundInBothDirections) {
  Rounding rounding = rounding_of(DType::f16);
  RowTerms row = example_row();
  const ElementTerms element{0, 0.01, 0.001, 0};
  const double normal = output_budget(rounding, row, element).p;
  row.faint[0] = 0.01;
  row.faint[1] = 0.001;  // a tenth of the faint weight: 4 tenths of a1
  const Budget together = output_budget(rounding, row, element);
  EXPECT_NEAR(together.p - normal, 0.4 * 0.01, 1e-12);
  row.lost[0] = 1e-5;
  row.lost[2] = 4e-5;
  row.lost[4] = 1e-3;
  const Budget apart = output_budget(rounding, row, element);
  const double deviation = 2 / std::sqrt(3.0) * 0.04 * 0.001;
  EXPECT_NEAR(apart.p - normal, 4 * 1e-3 * 0.01 + 7 * deviation, 1e-12);
  EXPECT_NEAR(apart.independent - together.independent, 7 * deviation, 1e-12);
  EXPECT_GT(apart.deviation, deviation);
  row.lost[2] = 1;
  EXPECT_EQ(output_budget(rounding, row, element).p, together.p);
}

// One key has nearly all the weight, and a1 is its own: the values of the faint keys are known from their largest one.
TEST(OutputBound, FaintKeysLoseAtMostTheirWeightTimesTheLargestValue) {
  const Rounding rounding = rounding_of(DType::f16);
  RowTerms row = example_row();
  const ElementTerms element{0.5, 0.5, 0.5, 0.5};
  const double normal = output_budget(rounding, row, element).p;
  row.faint[0] = row.faint[1] = 1e-9;  // all of them are below the range of f16
  EXPECT_NEAR(output_budget(rounding, row, element).p - normal, 0.5, 1e-12);
  row.largest_value = 4;
  EXPECT_NEAR(output_budget(rounding, row, element).p - normal, 4e-9, 1e-15);
  row.largest_value = kInf;
  EXPECT_NEAR(output_budget(rounding, row, element).p - normal, 0.5, 1e-12);
  row.largest_value = 0;
  EXPECT_EQ(output_budget(rounding, row, element).p, normal);
}

TEST(OutputBound, RejectsTypesNoKernelWrites) {
  EXPECT_THROW(static_cast<void>(rounding_of(DType::e4m3)), UnsupportedError);
  EXPECT_THROW(static_cast<void>(rounding_of(DType::i32)), UnsupportedError);
}

TEST(OutputBound, DeviationsFollowTheSizeOfTheReport) {
  EXPECT_NEAR(deviations_for(1000), 6.88752468024622, 1e-12);
  EXPECT_NEAR(deviations_for(1e7), 8.115335912021953, 1e-12);
}

TEST(HalfStep, IsExactAtPowersOfTwoAndNearZero) {
  EXPECT_EQ(half_step(DType::bf16, 1.5), 0x1p-8);
  EXPECT_EQ(half_step(DType::bf16, -3), 0x1p-7);
  EXPECT_EQ(half_step(DType::bf16, 0), 0x1p-134);
  EXPECT_EQ(half_step(DType::f16, 1e-7), 0x1p-25);
  EXPECT_EQ(half_step(DType::f32, 1), 0x1p-24);
  EXPECT_EQ(half_step(DType::f64, 1), 0x1p-53);
  EXPECT_EQ(half_step(DType::f64, 0), 0x1p-1074);
}

TEST(OutputWithin, StopsJustPastTheBound) {
  const Rounding rounding = rounding_of(DType::bf16);
  const RowTerms row = example_row();
  const double bound = output_budget(rounding, row, kElement).total();
  EXPECT_TRUE(output_within(rounding, row, kElement, 1 + bound * 0.999));
  EXPECT_FALSE(output_within(rounding, row, kElement, 1 + bound * 1.001));
  EXPECT_FALSE(output_within(rounding, row, kElement, 1 - bound * 1.001));
}

TEST(OutputWithin, NanAndInfinitiesMustStandInTheSamePlaces) {
  const Rounding f32 = rounding_of(DType::f32);
  const RowTerms row;
  EXPECT_TRUE(output_within(f32, row, {kNan, kNan, kNan, kNan}, kNan));
  EXPECT_FALSE(output_within(f32, row, {kNan, 1, 1, 1}, 0));
  EXPECT_FALSE(output_within(f32, row, {0, 1, 1, 1}, kNan));
  EXPECT_TRUE(output_within(f32, row, {kInf, kInf, kInf, kInf}, kInf));
  EXPECT_FALSE(output_within(f32, row, {kInf, kInf, kInf, kInf}, -kInf));
  EXPECT_FALSE(output_within(f32, row, {kInf, kInf, kInf, kInf}, 1e30));
  EXPECT_FALSE(output_within(f32, row, {1, kInf, 1, 1}, kInf));
}

// A row sum adds numbers that are not negative. What a matrix instruction cuts from it makes lse smaller, never larger.
TEST(LseBound, TruncatedRowSumsOnlyMakeItSmaller) {
  RowTerms row = example_row();
  row.keys = 65536;
  Rounding rounding = rounding_of(DType::f16);
  const double of_scores = kCutProduct * 64 * 4, of_keys = kCutProduct * 65536;
  const Budget b = lse_budget(rounding, row);
  EXPECT_NEAR(b.falling, of_keys, 1e-15);
  EXPECT_NEAR(b.toward(-1).cut, of_scores + of_keys, 1e-15);
  EXPECT_NEAR(b.toward(1).cut, of_scores, 1e-15);
  EXPECT_NEAR(b.toward(-1).total() - b.toward(1).total(), of_keys, 1e-15);
  const double above = b.toward(1).total(), below = b.toward(-1).total();
  EXPECT_TRUE(lse_within(rounding, row, row.lse + 0.999 * above));
  EXPECT_FALSE(lse_within(rounding, row, row.lse + 1.001 * above));
  EXPECT_TRUE(lse_within(rounding, row, row.lse - 0.999 * below));
  EXPECT_FALSE(lse_within(rounding, row, row.lse - 1.001 * below));
  row.base_two = true;
  EXPECT_NEAR(lse_budget(rounding, row).falling, of_keys / std::log(2.0), 1e-15);
  row.base_two = false;
  row.row_sum_cut[0] = 3e-5, row.row_sum_cut[1] = 2e-4, row.row_sum_cut[2] = 0;  // measured: bf16, f16, e4m3
  EXPECT_NEAR(lse_budget(rounding, row).falling, 2e-4, 1e-15);
  row.repeats = 16384;  // a quarter of the additions may lose a whole unit
  EXPECT_NEAR(lse_budget(rounding, row).falling, 2.5e-4, 1e-15);
  row.repeats = 0;
  rounding.probabilities = DType::bf16;
  EXPECT_NEAR(lse_budget(rounding, row).falling, 3e-5, 1e-15);
  rounding.probabilities = DType::e4m3;
  EXPECT_EQ(lse_budget(rounding, row).falling, 0);
  rounding.probabilities = DType::f32;
  EXPECT_EQ(lse_budget(rounding, row).falling, 0);
  rounding.row_sum = RowSum::exact;
  EXPECT_EQ(lse_budget(rounding, row).falling, 0);
  EXPECT_EQ(output_budget(rounding, row, kElement).falling, 0);
}

TEST(LseBound, FollowsItsOwnTypeAndTheRowSum) {
  Rounding rounding = rounding_of(DType::bf16);
  const double of_scores = kCutProduct * 64 * 4, of_keys = kCutProduct * 64;
  EXPECT_NEAR(lse_budget(rounding, example_row()).total(), 0.001977793377209238 + of_scores + of_keys, 1e-15);
  rounding.row_sum = RowSum::exact;
  EXPECT_NEAR(lse_budget(rounding, example_row()).total(), 0.001977793377209238 - 0.0019733651778942284 + of_scores,
              1e-15);
  rounding.lse = DType::bf16;
  EXPECT_NEAR(lse_budget(rounding, example_row()).output, 0x1p-6, 1e-15);
  EXPECT_NEAR(lse_budget(rounding_of(DType::f32), example_row()).total(), 4.487803959784776e-06, 1e-16);
}

// 1.2e-4 * |lse| allowed 0.0010 at 4096 keys, four times the effect of a missing key.
TEST(LseBound, OfExactRowSumsSeesAMissingKeyAt4096Keys) {
  RowTerms row = example_row();
  row.keys = 4096;
  row.lse = std::log(4096.0);
  row.p2 = 1.0 / 64;
  Rounding rounding = rounding_of(DType::bf16);
  rounding.row_sum = RowSum::exact;
  EXPECT_FALSE(lse_within(rounding, row, row.lse + std::log(4095.0 / 4096)));
  EXPECT_TRUE(lse_within(rounding, row, row.lse + 1e-5));
}

// A kernel that sums rounded probabilities is off by up to u * p2 deviations: at 17 keys more than 1.2e-4 * |lse|.
TEST(LseBound, AllowsSumsOfRoundedProbabilitiesAt17Keys) {
  RowTerms row = example_row();
  row.keys = 17;
  row.lse = std::log(17.0);
  row.p2 = 0.3;
  EXPECT_TRUE(lse_within(rounding_of(DType::bf16), row, row.lse + 0x1p-8 * 0.3));
}

// If all probabilities round alike, nothing of their error is independent: tests on rows may not expect it to cancel.
TEST(LseBound, EqualProbabilitiesLeaveNoIndependentError) {
  RowTerms row = example_row();
  row.clump[0] = 0.5;
  const Rounding rounding = rounding_of(DType::bf16);
  const Budget b = lse_budget(rounding, row);
  EXPECT_NEAR(b.p, 0x1p-8, 1e-15);
  EXPECT_LT(b.independent, 1e-5);
}

TEST(LseBound, InBaseTwoIsLargerByItsUnit) {
  RowTerms two = example_row();
  two.base_two = true;
  two.lse /= std::log(2.0);
  const Budget natural = lse_budget(rounding_of(DType::bf16), example_row());
  EXPECT_NEAR(lse_budget(rounding_of(DType::bf16), two).p, natural.p / std::log(2.0), 1e-15);
}

// FlashMLA writes +inf for an empty row, which is equal only if the problem selects that convention.
TEST(LseWithin, EmptyRowsOfTwoConventionsDiffer) {
  RowTerms row;
  row.lse = -kInf;
  const Rounding bf16 = rounding_of(DType::bf16);
  EXPECT_TRUE(lse_within(bf16, row, -kInf));
  EXPECT_FALSE(lse_within(bf16, row, kInf));
  EXPECT_FALSE(lse_within(bf16, row, 0));
  row.lse = kNan;
  EXPECT_TRUE(lse_within(bf16, row, kNan));
  row.lse = 1;
  EXPECT_FALSE(lse_within(bf16, row, kNan));
}

TEST(WeightTermsClump, SeparatesEqualFromSpreadProbabilities) {
  for (std::size_t type = 0; type < kClumpTypes; ++type) {
    for (const double p : {0.7, 0.3141, 0.50195, 0.93}) {  // wherever the common value is between two narrow numbers
      WeightTerms equal;
      for (int t = 0; t < 1000; ++t) equal.add(p);
      EXPECT_GE(equal.clump(type, 1000 * p), 0.5) << type << ", " << p;
      EXPECT_LE(equal.clump(type, 1000 * p), 1.0);
    }
    WeightTerms one;  // relative to the row's maximum; a kernel that subtracts another number does not have 1
    for (int t = 0; t < 1000; ++t) one.add(1);
    EXPECT_EQ(one.clump(type, 1000), 1);
    WeightTerms spread;
    double sum = 0;
    for (int t = 0; t < 1000; ++t) {
      const double p = std::exp(-std::fmod(t * 0.618033988749895, 1.0));
      spread.add(p);
      sum += p;
    }
    EXPECT_LT(spread.clump(type, sum), 0.08) << type;
  }
}

// Weights that f16 and e4m3 cannot hold: the whole of a1 may be lost when only they have large values.
TEST(WeightTermsFaint, CountsWhatNarrowTypesLose) {
  WeightTerms weights;
  weights.add(1);
  weights.add(0x1p-9);
  weights.add(0x1p-30);
  EXPECT_EQ(weights.faint(0, 1), 0x1p-9 + 0x1p-30);
  EXPECT_EQ(weights.faint(1, 1), 0x1p-25 + 0x1p-30);
  EXPECT_EQ(weights.faint(2, 1), 0x1p-10 + 0x1p-30);
  EXPECT_EQ(weights.p2(2), std::sqrt(1 + 0x1p-18 + 0x1p-60) / 2);
  RowTerms row = example_row();
  row.faint[0] = 1e-4;
  row.faint[2] = 1e-4;  // all faint keys are below e4m3's range
  Rounding rounding = rounding_of(DType::bf16);
  const double kept = output_budget(rounding, row, {0, 0.01, 0.01, 0}).p;
  rounding.probabilities = DType::e4m3;
  EXPECT_GT(output_budget(rounding, row, {0, 0.01, 0.01, 0}).p, kept + 0.01);
}

// Half a step is 2^-25 for f16. Weights below it are lost; equal ones round alike; different ones do not.
TEST(WeightTermsLost, SeparatesEqualFromSpreadSubnormalWeights) {
  WeightTerms lost;
  for (int t = 0; t < 1000; ++t) lost.add(0x1p-27);
  EXPECT_GE(lost.lost(0, 1), 1000 * 0x1p-27);
  EXPECT_EQ(lost.faint(1, 1), 1000 * 0x1p-27);
  EXPECT_NEAR(lost.lost(2, 1), std::sqrt(1000.0) * 0x1p-27, 1e-15);
  EXPECT_NEAR(lost.lost(4, 1), std::sqrt(1000.0) * 0x1p-27, 1e-15);
  WeightTerms equal, spread, normal;
  for (int t = 0; t < 1000; ++t) {
    equal.add(10.3 * 0x1p-24);
    spread.add((20 + 40 * std::fmod(t * 0.618033988749895, 1.0)) * 0x1p-24);
    normal.add(0x1p-10);
  }
  EXPECT_GE(equal.lost(0, 1), 0.25 * 1000 * 0x1p-24);
  EXPECT_LT(spread.lost(0, 1), 0.02 * 1000 * 0x1p-24);
  EXPECT_NEAR(spread.lost(2, 1), std::sqrt(1000.0) * 0x1p-25, 1e-12);
  EXPECT_EQ(normal.lost(0, 1), 0);  // in the normal range of f16, not of e4m3
  EXPECT_GT(normal.lost(1, 1), 0);
}

}  // namespace
}  // namespace kvscope::attention::bounds_test
