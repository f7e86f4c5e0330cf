#include "core/base/portable_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// One copy of the loop per vector width, chosen when the program starts. AVX2 without FMA: a fused multiply-add would
// round differently from the scalar form. Not with sanitizers, which start before the choice can be made.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define KVSCOPE_VECTOR_CLONES __attribute__((target_clones("default", "avx2")))
#else
#define KVSCOPE_VECTOR_CLONES
#endif

namespace kvscope {
namespace {

// ln 2 in two parts. The first has 32 significant bits, so that n * kLn2High is exact for |n| < 2^21.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kLog2E = 0x1.71547652b82fep+0;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// condition ? a : b as bit operations: the compiler turns the conditional expression into
// branches and then does not vectorize.
inline double select(bool condition, double a, double b) {
  const std::uint64_t mask = std::uint64_t{0} - static_cast<std::uint64_t>(condition);
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(a) & mask) | (std::bit_cast<std::uint64_t>(b) & ~mask));
}

// exp(x) = 2^n * exp(r), n = nearest integer to x / ln 2, |r| <= ln 2 / 2 = 0.347.
//   r      in two parts, r + tail: the reduction's own rounding would cost a quarter of an ulp.
//   exp(r) = (1 + r) + (lost + tail + r^2 * q(r)), q the Taylor series to r^14 / 14!; the omitted rest is under 1e-19,
//          and `lost` is the rounding error of 1 + r. The second bracket is below 0.07, so its rounding errors are
//          small.
//   2^n    as 2^a * 2^b with a = floor(n / 2): n reaches 1024 and -1082, past what one factor holds, and only the
//          second product rounds, so that a subnormal result is rounded once.
// No branch and no table: clamping replaces the special cases, and NaN fails every comparison and stays NaN.
inline double exp_core(double x) {
  constexpr double kMagic = 0x1.8p52;  // added and subtracted, it rounds to an integer and leaves it in the low bits
  x = select(x < -750.0, -750.0, x);   // exp(-746) is already 0
  x = select(x > 710.0, 710.0, x);     // exp(709.79) is already infinite
  const double shifted = x * kLog2E + kMagic;
  const double n = shifted - kMagic;
  const double high = x - n * kLn2High;
  const double low = n * kLn2Low;
  const double r = high - low;
  const double tail = (high - r) - low;

  const double r2 = r * r;
  const double r4 = r2 * r2;
  const double r8 = r4 * r4;
  const double q01 = 1.0 / 2 + r * (1.0 / 6);
  const double q23 = 1.0 / 24 + r * (1.0 / 120);
  const double q45 = 1.0 / 720 + r * (1.0 / 5040);
  const double q67 = 1.0 / 40320 + r * (1.0 / 362880);
  const double q89 = 1.0 / 3628800 + r * (1.0 / 39916800);
  const double qab = 1.0 / 479001600 + r * (1.0 / 6227020800);
  const double qc = 1.0 / 87178291200;
  const double q = (q01 + r2 * q23) + r4 * (q45 + r2 * q67) + r8 * ((q89 + r2 * qab) + r4 * qc);
  const double sum = 1.0 + r;
  const double lost = (1.0 - sum) + r;  // exactly the rounding error of the line above
  const double y = sum + (lost + (tail + r2 * q));

  // With m = n + 2048 > 0 the halving is a shift of an unsigned number, which SSE2 has for 64 bits.
  const std::uint64_t m = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kMagic) + 2048;
  const std::uint64_t half = m >> 1;  // floor(n / 2) + 1024
  const double first = std::bit_cast<double>((half - 1) << 52);
  const double second = std::bit_cast<double>((m - half - 1) << 52);
  return y * first * second;
}

// tanh(x) for |x| < 0.55 by its continued fraction x / (1 + z / (3 + z / (5 + ...))), z = x^2, as x - x * t with
// t small, so that the rounding errors of t are small.
inline double tanh_small(double x) {
  const double z = x * x;
  double p = 17;  // p / q = 15 + z / (17 + ...), built from the inside out without a division
  double q = 1;
  for (int k = 15; k >= 3; k -= 2) {
    const double next = k * p + z * q;
    q = p;
    p = next;
  }
  // tanh x = x / (1 + z q / p) = x - x * (z q / (p + z q))
  return x - x * (z * q / (p + z * q));
}

}  // namespace

double portable_exp(double x) {
  return exp_core(x);
}

// log(x) = k ln 2 + log(1 + f), 1 + f in [sqrt(1/2), sqrt 2). With s = f / (2 + f), log(1 + f) = 2 atanh(s)
// = f - f^2/2 + s * (f^2/2 + 2 s^2 / 3 + 2 s^4 / 5 + ...): the leading terms are exact or small.
double portable_log(double x) {
  if (x != x || x < 0) return kNan;
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  int k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t shifted = bits - kSqrtHalf;
  k += static_cast<int>(static_cast<std::int64_t>(shifted) >> 52);
  const double m = std::bit_cast<double>((shifted & 0x000fffffffffffff) + kSqrtHalf);

  const double f = m - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  const double z2 = z * z;
  const double z4 = z2 * z2;
  const double tail = ((2.0 / 3 + z * (2.0 / 5)) + z2 * (2.0 / 7 + z * (2.0 / 9))) +
                      z4 * (((2.0 / 11 + z * (2.0 / 13)) + z2 * (2.0 / 15 + z * (2.0 / 17))) +
                            z4 * ((2.0 / 19 + z * (2.0 / 21)) + z2 * (2.0 / 23 + z * (2.0 / 25))));
  const double half_square = 0.5 * f * f;
  const double n = k;
  return n * kLn2High + (f - (half_square - (s * (half_square + z * tail) + n * kLn2Low)));
}

double portable_tanh(double x) {
  if (x != x) return kNan;
  const double magnitude = std::fabs(x);
  const double y = magnitude < 0.55 ? tanh_small(magnitude) : 1 - 2 / (exp_core(2 * magnitude) + 1);
  return std::copysign(y, x);
}

KVSCOPE_VECTOR_CLONES void portable_exp_in_place(std::span<double> x) {
  double* const data = x.data();
  const std::size_t n = x.size();
  for (std::size_t i = 0; i < n; ++i) data[i] = exp_core(data[i]);
}

}  // namespace kvscope
