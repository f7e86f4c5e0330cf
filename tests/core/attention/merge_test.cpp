#include "core/attention/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/attention/reference.h"
#include "core/base/errors.h"
#include "tests/core/attention/paged_case.h"
#include "tests/property.h"

namespace kvscope::attention::merge_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

PartialState state(double o, double lse) {
  PartialState s;
  s.o = xt::xtensor<double, 3>({{{o}}});
  s.lse = xt::xtensor<double, 2>({{lse}});
  return s;
}

TEST(Merge, Base2ExampleOfOneAndThree) {
  const PartialState m = merge(state(1, 0), state(3, 1), LseBase::two);
  EXPECT_NEAR(m.o(0, 0, 0), 7.0 / 3, 1e-15);
  EXPECT_NEAR(m.lse(0, 0), 1.584962500721156, 1e-15);
}

// Read in the wrong base the same numbers give 2.46212 and 1.31326: plausible, and wrong.
TEST(Merge, NaturalBaseWeighsTheSameNumbersDifferently) {
  const PartialState m = merge(state(1, 0), state(3, 1), LseBase::natural);
  EXPECT_NEAR(m.o(0, 0, 0), (1 + 3 * std::exp(1.0)) / (1 + std::exp(1.0)), 1e-15);
  EXPECT_NEAR(m.lse(0, 0), std::log(1 + std::exp(1.0)), 1e-15);
}

TEST(Merge, EmptyPartIsNotReadAndTheOtherComesBackToTheBit) {
  const double odd = 0.1 + 0.2;
  for (const double empty : {-kInf, kInf}) {
    for (const bool first : {true, false}) {
      const PartialState none = state(kNan, empty), some = state(odd, -3.7);
      const PartialState m = first ? merge(none, some, LseBase::two) : merge(some, none, LseBase::two);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(m.o(0, 0, 0)), std::bit_cast<std::uint64_t>(odd));
      EXPECT_EQ(m.lse(0, 0), -3.7);
    }
  }
}

TEST(Merge, TwoEmptyPartsGiveTheConventionNamed) {
  const PartialState minus = merge(state(kNan, kInf), state(5, -kInf), LseBase::natural);
  EXPECT_EQ(minus.o(0, 0, 0), 0.0);
  EXPECT_EQ(minus.lse(0, 0), -kInf);
  const PartialState plus = merge(state(1, -kInf), state(5, -kInf), LseBase::natural, EmptyRow::plus_infinity);
  EXPECT_EQ(plus.o(0, 0, 0), 0.0);
  EXPECT_EQ(plus.lse(0, 0), kInf);
}

TEST(Merge, NanInOneLseSpoilsItsWholeRowAndNoOther) {
  PartialState a, b;
  a.o = xt::xtensor<double, 3>({{{1, 2}}, {{3, 4}}});
  a.lse = xt::xtensor<double, 2>({{0}, {0}});
  b = a;
  b.lse(1, 0) = kNan;
  const PartialState m = merge(a, b, LseBase::natural);
  EXPECT_EQ(m.o(0, 0, 1), 2.0);
  EXPECT_TRUE(std::isnan(m.o(1, 0, 0)) && std::isnan(m.o(1, 0, 1)) && std::isnan(m.lse(1, 0)));
  const PartialState with_empty = merge(state(1, kNan), state(2, -kInf), LseBase::natural);
  EXPECT_TRUE(std::isnan(with_empty.o(0, 0, 0)));
}

TEST(Merge, NanInAnOutputStaysInItsElement) {
  PartialState a;
  a.o = xt::xtensor<double, 3>({{{kNan, 2}}});
  a.lse = xt::xtensor<double, 2>({{0}});
  PartialState b = a;
  b.o(0, 0, 0) = 1;
  const PartialState m = merge(a, b, LseBase::natural);
  EXPECT_TRUE(std::isnan(m.o(0, 0, 0)));
  EXPECT_EQ(m.o(0, 0, 1), 2.0);
}

// exp of either lse alone would overflow or underflow.
TEST(Merge, LogSumExpsFarFromZero) {
  EXPECT_NEAR(merge(state(1, 2000), state(3, 2000), LseBase::natural).o(0, 0, 0), 2.0, 1e-15);
  EXPECT_NEAR(merge(state(1, -2000), state(3, -2000), LseBase::natural).lse(0, 0), -2000 + std::log(2.0), 1e-12);
  EXPECT_EQ(merge(state(1, 0), state(3, -2000), LseBase::natural).o(0, 0, 0), 1.0);
}

TEST(Merge, ShapesThatDifferAreNamed) {
  PartialState wide = state(1, 0);
  wide.o.resize({1, 1, 2});
  try {
    static_cast<void>(merge(state(1, 0), wide, LseBase::natural));
    FAIL();
  } catch (const GeometryError& error) {
    EXPECT_STREQ(
        error.what(),
        "merge: the first state is o [1, 1, 1] with lse [1, 1], the second o [1, 1, 2] with lse [1, 1]: both must "
        "cover the same queries, heads and dims");
  }
  wide.lse.resize({1, 3});
  EXPECT_THROW(static_cast<void>(merge(state(1, 0), wide, LseBase::natural)), GeometryError);
  EXPECT_THROW(static_cast<void>(merge(std::span<const PartialState>{}, LseBase::natural)), GeometryError);
}

TEST(Merge, OrderAndGroupingOfThePartsDoNotMatter) {
  EXPECT_TRUE(prop::check("associative and commutative within rounding", [] {
    const LseBase base = prop::one_of(LseBase::natural, LseBase::two);
    std::vector<PartialState> s;
    for (int i = 0; i < 3; ++i) {
      const double o = prop::in_range(-1000, 1000) / 64.0;
      const double lse = prop::in_range(-2000, 2000) / 128.0;
      s.push_back(state(o, prop::in_range(0, 5) == 0 ? -kInf : lse));
    }
    const PartialState left = merge(merge(s[0], s[1], base), s[2], base);
    const PartialState right = merge(s[0], merge(s[1], s[2], base), base);
    const PartialState turned = merge(merge(s[2], s[0], base), s[1], base);
    const PartialState listed = merge(s, base);
    const auto near = [](double a, double b) { return a == b || std::fabs(a - b) <= 16 * (1 + 16) * 0x1p-52; };
    for (const PartialState* other : {&right, &turned, &listed}) {
      RC_ASSERT(near(left.o(0, 0, 0), other->o(0, 0, 0)));
      RC_ASSERT(near(left.lse(0, 0), other->lse(0, 0)));
    }
  }));
}

// The purpose: merging the results of two halves of the keys gives the attention over all keys.
TEST(Merge, TwoHalvesOfTheKeysGiveTheAttentionOverAll) {
  for (const LseBase base : {LseBase::natural, LseBase::two}) {
    testing::Spec spec;
    spec.lengths = {16, 8};
    spec.options.mask = MaskKind::none;
    spec.options.scale = 0.8;
    spec.options.lse_base = base;
    const testing::PagedCase c(spec);
    const Result whole = reference(c.problem);
    Problem head = c.problem, tail = c.problem;
    const std::int64_t half[] = {8, 4};
    head.key_lengths = half;
    std::vector<std::uint32_t> later(c.table);
    const auto columns = static_cast<std::size_t>(c.problem.k.table_stride);
    later[0] = c.table[2], later[1] = c.table[3], later[columns] = c.table[columns + 1];
    tail.key_lengths = half;
    tail.k.table = tail.v.table = later.data();
    const Result a = reference(head), b = reference(tail);
    const PartialState m = merge({a.o, a.lse}, {b.o, b.lse}, base);
    for (std::size_t i = 0; i < whole.o.size(); ++i) EXPECT_NEAR(m.o.data()[i], whole.o.data()[i], 1e-14);
    for (std::size_t i = 0; i < whole.lse.size(); ++i) EXPECT_NEAR(m.lse.data()[i], whole.lse.data()[i], 1e-14);
  }
}

// --- errors of the states ----------------------------------------------------------------------------------------------

PartialErrors errors(double o, double lse) {
  return {xt::xtensor<double, 2>({{o}}), xt::xtensor<double, 2>({{lse}})};
}

TEST(MergeErrors, ExampleOfTwoEqualStates) {
  const std::vector<PartialState> states{state(1, 5), state(3, 5)};
  const PartialErrors own[] = {errors(0.01, 0.001), errors(0.01, 0.001)};
  const PartialErrors e = merge_errors(states, own, merge(states, LseBase::natural), LseBase::natural);
  EXPECT_NEAR(e.o(0, 0), std::exp(0.002) * 0.01 + std::expm1(0.002) * 1, 1e-15);
  EXPECT_NEAR(e.o(0, 0), 0.01202, 5e-6);
  EXPECT_EQ(e.lse(0, 0), 0.001);
}

// States whose numbers are off by their errors, in all directions, merge into one that is off by at most the result. The
// largest is not far below it: an error that is many times too large would show nothing.
TEST(MergeErrors, HoldForStatesThatAreOffByTheirErrors) {
  for (const LseBase base : {LseBase::natural, LseBase::two}) {
    const std::vector<PartialState> states{state(1, 2), state(-3, 4), state(2, 3.5)};
    const PartialErrors own[] = {errors(0.02, 0.03), errors(0.01, 0.03), errors(0.005, 0.03)};
    const PartialState right = merge(states, base);
    const PartialErrors e = merge_errors(states, own, right, base);
    double o = 0, lse = 0;
    for (unsigned signs = 0; signs < 64; ++signs) {
      const auto sign = [&](std::size_t bit) { return (signs >> bit & 1U) != 0 ? 1.0 : -1.0; };
      std::vector<PartialState> off = states;
      for (std::size_t i = 0; i < off.size(); ++i) {
        off[i].o(0, 0, 0) += sign(i) * own[i].o(0, 0);
        off[i].lse(0, 0) += sign(3 + i) * own[i].lse(0, 0);
      }
      const PartialState m = merge(off, base);
      o = std::max(o, std::abs(m.o(0, 0, 0) - right.o(0, 0, 0)));
      lse = std::max(lse, std::abs(m.lse(0, 0) - right.lse(0, 0)));
    }
    EXPECT_LE(o, e.o(0, 0));
    EXPECT_GT(o, 0.4 * e.o(0, 0));
    EXPECT_NEAR(lse, e.lse(0, 0), 1e-12);
  }
}

// A state without keys has no weight, whatever its errors are; a row without keys has no error.
TEST(MergeErrors, OfStatesWithoutKeysDoNotCount) {
  const PartialErrors own[] = {errors(0.01, 0.001), errors(9, 9)};
  const std::vector<PartialState> one{state(1, 5), state(7, -kInf)}, none{state(0, -kInf), state(0, -kInf)};
  const PartialErrors e = merge_errors(one, own, merge(one, LseBase::natural), LseBase::natural);
  EXPECT_NEAR(e.o(0, 0), std::exp(0.002) * 0.01, 1e-15);
  EXPECT_EQ(e.lse(0, 0), 0.001);
  const PartialErrors of_none = merge_errors(none, own, merge(none, LseBase::natural), LseBase::natural);
  EXPECT_EQ(of_none.o(0, 0), 0);
  EXPECT_EQ(of_none.lse(0, 0), 0);
  EXPECT_THROW(static_cast<void>(merge_errors(one, {own, 1}, one[0], LseBase::natural)), GeometryError);
  const PartialErrors wide[] = {errors(1, 1), {xt::zeros<double>({1, 2}), xt::zeros<double>({1, 2})}};
  EXPECT_THROW(static_cast<void>(merge_errors(one, wide, one[0], LseBase::natural)), GeometryError);
}

}  // namespace
}  // namespace kvscope::attention::merge_test
