#include "core/golden/verdict/measures.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden::measures_test {
namespace {

TEST(Measures, WorkedExample) {
  const Tensor x = tensor_of<float>({2}, std::array{1.f, 2.f});
  const Measures m = measure(x, std::array{1.0, 2.0}, std::array{1.0, 1.0});
  EXPECT_EQ(m.elements, 2);
  EXPECT_EQ(m.finite, 2);
  EXPECT_EQ(m.max_abs, 1);
  EXPECT_EQ(m.max_ulp, 1u << 23);
  EXPECT_DOUBLE_EQ(m.rms_relative, std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(m.cosine_difference, 1.0 / 7);
}

// Comparing patterns as integers would give a huge distance between +0 and -0, or between -1 ulp and +1 ulp.
TEST(Measures, UlpsCountStepsInEveryTypeAndAcrossZero) {
  EXPECT_EQ(ulp_distance(DType::bf16, 0x3f80, 0x3f82), 2u);
  EXPECT_EQ(ulp_distance(DType::f32, 0x80000000, 0x00000001), 1u);
  EXPECT_EQ(ulp_distance(DType::f16, 0x8001, 0x0001), 2u);
  EXPECT_EQ(ulp_distance(DType::f64, 0xbff0000000000000, 0xbff0000000000001), 1u);
  EXPECT_EQ(ulp_distance(DType::e4m3, 0xfe, 0x7e), 252u);
  EXPECT_EQ(ulp_distance(DType::e5m2, 0x80, 0x00), 0u);
  EXPECT_EQ(ulp_distance(DType::e8m0, 0x80, 0x7f), 1u);
  EXPECT_EQ(ulp_distance(DType::e8m0, 0x7f, 0x82), 3u);
  EXPECT_EQ(ulp_distance(DType::i8, 0xff, 0x01), 2u);
  EXPECT_EQ(ulp_distance(DType::i16, 0x8000, 0x7fff), 65535u);
  EXPECT_EQ(ulp_distance(DType::u16, 0x8000, 0x7fff), 1u);
  EXPECT_EQ(ulp_distance(DType::i32, 0xffffffff, 0x00000000), 1u);
  EXPECT_EQ(ulp_distance(DType::u32, 0xffffffff, 0x00000000), 0xffffffffu);
  EXPECT_EQ(ulp_distance(DType::u8, 0xff, 0x01), 254u);
  EXPECT_EQ(ulp_distance(DType::i64, 0x8000000000000000, 0x7fffffffffffffff), 0xffffffffffffffffu);
}

TEST(Measures, NaNsAndInfinitiesStayOutOfTheNumbers) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Tensor x = tensor_of<double>({3}, std::array{std::nan(""), inf, 1.0});
  const Measures m = measure(x, values<double>(x), std::array{1.0, 1.0, 1.0});
  EXPECT_EQ(m.finite, 1);
  EXPECT_EQ(m.max_abs, 0);
  EXPECT_EQ(m.rms_relative, 0);
}

// 1e5 has no f16 number: it is finite as a number, but a distance in steps to it is none.
TEST(Measures, AGoldenPastTheTypeHasNoDistanceInSteps) {
  const Tensor x = tensor_of<std::uint16_t>({2}, std::array<std::uint16_t, 2>{0x7bff, 0x3c01});
  const Tensor f16 = reinterpret_as(x, DType::f16);
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Measures past = measure(f16, as_doubles(f16), std::array{1e5, 1.0});
  EXPECT_EQ(past.finite, 2);
  EXPECT_EQ(past.max_abs, 1e5 - 65504);
  EXPECT_EQ(past.max_ulp, 1u);
  const Measures infinite = measure(f16, as_doubles(f16), std::array{inf, 1.0});
  EXPECT_EQ(infinite.finite, 1);
  EXPECT_EQ(infinite.max_abs, 0x1p-10);
}

TEST(Measures, AllZeroIsNoDivisionByZero) {
  const Tensor zero = make_tensor(DType::f32, {2});
  EXPECT_EQ(measure(zero, std::array{0.0, 0.0}, std::array{0.0, -0.0}).cosine_difference, 0);
  const Tensor one = tensor_of<float>({1}, std::array{1.f});
  EXPECT_EQ(measure(one, std::array{1.0}, std::array{0.0}).rms_relative, std::numeric_limits<double>::infinity());
}

TEST(Measures, RoundingToATypeMayGiveInfinity) {
  EXPECT_EQ(rounded_to(DType::f16, 65504), 65504);
  EXPECT_EQ(rounded_to(DType::f16, 65520), std::numeric_limits<double>::infinity());
  EXPECT_EQ(rounded_to(DType::bf16, 1.001), 1);
}

}  // namespace
}  // namespace kvscope::golden::measures_test
