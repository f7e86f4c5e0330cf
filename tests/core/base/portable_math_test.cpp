// The oracle is the C library's long double: 64 bits of significand, with an error under 1/1000 of a double's ulp.
#include "core/base/portable_math.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/random.h"

namespace kvscope::portable_math_test {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64, "the oracle needs more bits than what it judges");

constexpr double kInf = std::numeric_limits<double>::infinity();

// Distance from the true value in units of the last place of a double of its size.
double ulps(double got, long double want) {
  if (std::isinf(static_cast<double>(want)) || want == 0) return got == static_cast<double>(want) ? 0 : kInf;
  int exponent = 0;
  (void)std::frexp(want, &exponent);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) /
                             std::ldexp(1.0L, std::max(exponent, -1021) - 53));
}

std::uint64_t fnv1a(std::uint64_t hash, double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ (bits >> shift & 0xff)) * 0x100000001b3;
  return hash;
}
constexpr std::uint64_t kFnvStart = 0xcbf29ce484222325;

// Critical arguments: at n ln 2 +- ln 2 / 2 the integer of the reduction changes and the remainder is largest; where
// the result becomes subnormal the scaling needs two steps.
std::vector<double> exp_arguments() {
  std::vector<double> xs = {0, -0.0, 1, -1, 0x1p-1074, -0x1p-1074, 0x1p-54, -0x1p-54, 0x1p-53, 1e-300};
  for (int half = -2200; half <= 2048; ++half) {
    const double x = half * 0.34657359027997264;
    xs.insert(xs.end(), {x, std::nextafter(x, -kInf), std::nextafter(x, kInf)});
  }
  for (const double edge : {709.782712893384, -708.3964185322641, -744.4400719213812, -745.1332191019411}) {
    double x = edge - 20 * 0x1p-43;
    for (int i = 0; i < 40; ++i) xs.push_back(x = std::nextafter(x, kInf));
  }
  const CounterRng rng(40, 0);
  for (std::uint64_t i = 0; i < 400000; ++i) {
    const double width = i % 4 == 0 ? 1500 : i % 4 == 1 ? 100 : i % 4 == 2 ? 2 : 1e-3;
    xs.push_back((rng.uniform(i) - 0.5) * width);
  }
  return xs;
}

TEST(PortableMathTest, ExpIsWithinOneUlpOfTheTrueValue) {
  double worst = 0;
  for (const double x : exp_arguments()) {
    const double error = ulps(portable_exp(x), std::exp(static_cast<long double>(x)));
    ASSERT_LT(error, 1.0) << std::hexfloat << x;
    worst = std::max(worst, error);
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LT(worst, 0.8) << "the documented algorithm stays here; more means a term was lost";
}

TEST(PortableMathTest, ExpOfTheEdgesIsExact) {
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_exp(-0.0), 1);
  EXPECT_EQ(portable_exp(kInf), kInf);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(portable_exp(-kInf)), 0u) << "plus zero";
  EXPECT_TRUE(std::isnan(portable_exp(std::nan(""))));
  EXPECT_TRUE(std::isnan(portable_exp(-std::nan(""))));
  EXPECT_EQ(portable_exp(709.782712893384), 0x1.fffffffffff2ap+1023) << "the last finite one";
  EXPECT_EQ(portable_exp(std::nextafter(709.782712893384, kInf)), kInf);
  EXPECT_EQ(portable_exp(1e308), kInf);
  EXPECT_EQ(portable_exp(-745.1332191019411), 0x1p-1074) << "the last that is not zero";
  EXPECT_EQ(portable_exp(-745.1332191019412), 0x0p0);
  EXPECT_EQ(portable_exp(-1e308), 0x0p0);
}

TEST(PortableMathTest, ExpInPlaceGivesTheSameBitsAtEveryLengthAndPosition) {
  std::vector<double> xs = exp_arguments();
  xs.insert(xs.end(), {kInf, -kInf, 1e308, -1e308, 750, -750, -751, 710, 711});
  std::vector<double> ys = xs;
  portable_exp_in_place(ys);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint64_t>(ys[i]), std::bit_cast<std::uint64_t>(portable_exp(xs[i])))
        << std::hexfloat << xs[i];
  }
  for (std::size_t n = 0; n < 20; ++n) {  // a vector's remainder, from every alignment
    std::vector<double> part(xs.begin() + 100, xs.begin() + 121);
    portable_exp_in_place(std::span(part).subspan(1, n));
    for (std::size_t i = 0; i < part.size(); ++i) {
      const bool touched = i >= 1 && i < 1 + n;
      ASSERT_EQ(part[i], touched ? portable_exp(xs[100 + i]) : xs[100 + i]) << n << " " << i;
    }
  }
  std::vector<double> special = {std::nan(""), 1, std::nan(""), -1, 2, std::nan(""), 3, 4, std::nan("")};
  portable_exp_in_place(special);
  EXPECT_TRUE(std::isnan(special[0]) && std::isnan(special[2]) && std::isnan(special[5]) && std::isnan(special[8]));
  EXPECT_EQ(special[6], portable_exp(3));
}

// Every exponent, both sides of sqrt 2 where the exponent changes, and the numbers next to 1, where the logarithm
// is small and an error in the leading terms is not hidden.
TEST(PortableMathTest, LogIsWithinOneUlpOfTheTrueValue) {
  std::vector<double> xs = {0x1p-1074, 0x1.8p-1073, 0x1.fffffffffffffp-1023, 0x1p-1022,
                            std::numeric_limits<double>::max()};
  for (int e = -1074; e < 1024; ++e) {
    for (const double m : {1.0, 1.4142135623730949, 1.4142135623730951, 1.4142135623730954, 1.9999999999999998}) {
      xs.push_back(std::ldexp(m, e));
    }
  }
  for (int i = 0; i < 100; ++i) xs.insert(xs.end(), {1 + i * 0x1p-52, 1 - i * 0x1p-53});
  for (int e = 1; e < 53; ++e) xs.insert(xs.end(), {1 + std::ldexp(1.0, -e), 1 - std::ldexp(1.0, -e)});
  const CounterRng rng(41, 0);
  for (std::uint64_t i = 0; i < 400000; ++i) {
    const double u = rng.uniform(i) + 0x1p-54;
    xs.push_back(i % 2 == 0 ? 0.5 + u : std::ldexp(u, static_cast<int>(i % 2001) - 1000));
  }
  double worst = 0;
  for (const double x : xs) {
    const double error = ulps(portable_log(x), std::log(static_cast<long double>(x)));
    ASSERT_LT(error, 1.0) << std::hexfloat << x;
    worst = std::max(worst, error);
  }
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(PortableMathTest, LogOfTheEdgesIsWhatTheStandardSays) {
  EXPECT_EQ(portable_log(0), -kInf);
  EXPECT_EQ(portable_log(-0.0), -kInf);
  EXPECT_EQ(portable_log(kInf), kInf);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(portable_log(1)), 0u) << "plus zero";
  EXPECT_TRUE(std::isnan(portable_log(-1)));
  EXPECT_TRUE(std::isnan(portable_log(-kInf)));
  EXPECT_TRUE(std::isnan(portable_log(-0x1p-1074)));
  EXPECT_TRUE(std::isnan(portable_log(std::nan(""))));
}

TEST(PortableMathTest, TanhIsWithinTwoUlpAndOdd) {
  std::vector<double> xs = {0x1p-1074, 0x1p-1022, 0x1p-300, 0x1p-27, 0x1p-26, 0.55, std::nextafter(0.55, 0), 18.9, 19,
                            19.1,      22,        354,      355,     709,     1e308};
  const CounterRng rng(42, 0);
  for (std::uint64_t i = 0; i < 400000; ++i) {
    const double width = i % 4 == 0 ? 25 : i % 4 == 1 ? 2 : i % 4 == 2 ? 0.55 : 1e-3;
    xs.push_back(rng.uniform(i) * width);
  }
  double worst = 0;
  for (const double x : xs) {
    const double error = ulps(portable_tanh(x), std::tanh(static_cast<long double>(x)));
    ASSERT_LT(error, 2.0) << std::hexfloat << x;
    ASSERT_EQ(portable_tanh(-x), -portable_tanh(x)) << std::hexfloat << x;
    ASSERT_LE(portable_tanh(x), 1.0);
    worst = std::max(worst, error);
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_EQ(portable_tanh(kInf), 1);
  EXPECT_EQ(portable_tanh(-kInf), -1);
  EXPECT_TRUE(std::isnan(portable_tanh(std::nan(""))));
  EXPECT_TRUE(std::signbit(portable_tanh(-0.0)));
}

// The exact bits over a grid made without any library function. A compiler, flag or machine that fuses or reorders
// operations, or keeps wider intermediates, changes these numbers and would also change golden values.
TEST(PortableMathTest, TheBitsOverAFixedGridNeverChange) {
  std::uint64_t exp_hash = kFnvStart;
  std::uint64_t log_hash = kFnvStart;
  std::uint64_t tanh_hash = kFnvStart;
  std::vector<double> grid;
  for (int i = -48000; i <= 48000; ++i) grid.push_back(i * 0x1.f3p-7);  // -731 to 731 in steps of 0.0152
  for (const double x : grid) {
    exp_hash = fnv1a(exp_hash, portable_exp(x));
    tanh_hash = fnv1a(tanh_hash, portable_tanh(x * 0x1p-5));
    log_hash = fnv1a(log_hash, portable_log((x + 732) * (x + 732) * 0x1p-8));
  }
  EXPECT_EQ(exp_hash, 2006615456370299967u);
  EXPECT_EQ(log_hash, 1498316680698522386u);
  EXPECT_EQ(tanh_hash, 5618100217785800857u);
  portable_exp_in_place(grid);
  std::uint64_t vector_hash = kFnvStart;
  for (const double y : grid) vector_hash = fnv1a(vector_hash, y);
  EXPECT_EQ(vector_hash, exp_hash);
}

}  // namespace
}  // namespace kvscope::portable_math_test
