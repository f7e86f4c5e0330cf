#include "core/attention/bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/errors.h"

namespace kvscope::attention::bounds_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(OutputBound, WorkedNumbersOfEachType) {
  EXPECT_NEAR(output_bound(DType::bf16, 1, 2, 0.25, 3), 0.00781440735, 1e-11);
  EXPECT_NEAR(output_bound(DType::f16, 1, 2, 0.25, 3), 2 * 0x1p-11 + 32 * 0x1p-24 + 0x1p-25, 1e-18);
  EXPECT_NEAR(output_bound(DType::f32, 1, 2, 0.25, 3), 32 * 0x1p-24, 1e-18);
  EXPECT_NEAR(output_bound(DType::f64, 1, 2, 0.25, 3), 512 * 0x1p-53, 1e-27);
}

// min(a1, 4 a2): one key makes them equal, and 4 * a2 alone would then allow four times too much.
TEST(OutputBound, TakesA1WhereOneKeyHoldsAllTheWeight) {
  EXPECT_NEAR(output_bound(DType::bf16, 2, 2, 2, 0), 2 * 0x1p-8 + 2 * 0x1p-8 + 8 * 0x1p-24, 1e-15);
}

TEST(OutputBound, GrowsWithTheSignlessValueAndNeverFallsBelowHalfAStep) {
  EXPECT_EQ(output_bound(DType::bf16, -2, 2, 1, 0), output_bound(DType::bf16, 2, 2, 1, 0));
  EXPECT_EQ(output_bound(DType::f16, 0, 0, 0, 0), 0x1p-25);
  EXPECT_LT(output_bound(DType::f32, 0, 0, 0, 5), 0x1p-149);
  EXPECT_GT(output_bound(DType::f64, 0, 0, 0, 5), 0);
}

TEST(OutputBound, RejectsTypesNoKernelWrites) {
  EXPECT_THROW(static_cast<void>(output_bound(DType::e4m3, 0, 0, 0, 0)), UnsupportedError);
  EXPECT_THROW(static_cast<void>(lse_bound(DType::i32, 0, 0)), UnsupportedError);
}

TEST(OutputWithin, StopsJustPastTheBound) {
  const double bound = output_bound(DType::bf16, 1, 2, 0.25, 3);
  EXPECT_TRUE(output_within(DType::bf16, 1 + bound * 0.999, 1, 2, 0.25, 3));
  EXPECT_FALSE(output_within(DType::bf16, 1 + bound * 1.001, 1, 2, 0.25, 3));
  EXPECT_FALSE(output_within(DType::bf16, 1 - bound * 1.001, 1, 2, 0.25, 3));
}

TEST(OutputWithin, NanAndInfinitiesMustStandInTheSamePlaces) {
  EXPECT_TRUE(output_within(DType::f32, kNan, kNan, kNan, kNan, 1));
  EXPECT_FALSE(output_within(DType::f32, 0, kNan, 1, 1, 1));
  EXPECT_FALSE(output_within(DType::f32, kNan, 0, 1, 1, 1));
  EXPECT_TRUE(output_within(DType::f32, kInf, kInf, kInf, kInf, 1));
  EXPECT_FALSE(output_within(DType::f32, -kInf, kInf, kInf, kInf, 1));
  EXPECT_FALSE(output_within(DType::f32, 1e30, kInf, kInf, kInf, 1));
  EXPECT_FALSE(output_within(DType::f32, kInf, 1, kInf, 1, 1));
}

TEST(LseWithin, SixteenBitKernelsGetARelativeBoundAndAFloor) {
  EXPECT_TRUE(lse_within(DType::bf16, 10.0011, 10, 5));
  EXPECT_FALSE(lse_within(DType::bf16, 10.0013, 10, 5));
  EXPECT_TRUE(lse_within(DType::f16, 9e-7, 0, 5));
  EXPECT_FALSE(lse_within(DType::f16, 1.1e-6, 0, 5));
}

TEST(LseWithin, SinglePrecisionKernelsGetTheirOwn) {
  EXPECT_NEAR(lse_bound(DType::f32, 10, 3), 56 * 0x1p-24, 1e-12);
  EXPECT_FALSE(lse_within(DType::f32, 10.00001, 10, 3));
  EXPECT_TRUE(lse_within(DType::f32, 10.000003, 10, 3));
}

// FlashMLA writes +inf for an empty row, which is equal only if the problem selects that convention.
TEST(LseWithin, EmptyRowsOfTwoConventionsDiffer) {
  EXPECT_TRUE(lse_within(DType::bf16, -kInf, -kInf, 0));
  EXPECT_FALSE(lse_within(DType::bf16, kInf, -kInf, 0));
  EXPECT_FALSE(lse_within(DType::bf16, 0, -kInf, 0));
  EXPECT_TRUE(lse_within(DType::bf16, kNan, kNan, 0));
  EXPECT_FALSE(lse_within(DType::bf16, kNan, 1, 0));
}

}  // namespace
}  // namespace kvscope::attention::bounds_test
