// Quotients, reciprocals, roots, and functions that hardware approximates: computed in double and rounded once. The C
// library's functions are not used, because their bits differ between hosts. All operations are + - * / and square
// root, which IEEE 754 defines exactly.
//
//   ex2.approx 0.5 = 3fb504f3    lg2.approx 2^-127 = -127    rsqrt.approx -0 = -inf
//
// Compiled once per instruction set (CMakeLists.txt). Tested by tests/gpu/virtual/semantics.
#pragma once

#include "gpu/virtual/semantics/detail/float_bits.h"
#include "gpu/virtual/semantics/detail/lanes.h"

namespace kvscope::ptx::semantics {
namespace {

template <bool kFlush>
inline float entering(float x) {
  return kFlush ? flush(x) : x;
}
template <bool kFlush>
inline float leaving(double x) {
  const float rounded = canonical(static_cast<float>(x));
  return kFlush ? flush(rounded) : rounded;
}

// The quotient of two floats, computed in double and rounded to float, is the float quotient, because 53 >= 2 * 24 + 2.
template <bool kFlush>
inline float quotient(float a, float b) {
  const float q = canonical(entering<kFlush>(a) / entering<kFlush>(b));
  return kFlush ? flush(q) : q;
}
// Above 2^126 the divisor's reciprocal flushes to zero: the result is 0, or NaN for an infinite dividend.
template <bool kFlush>
inline float quotient_approx(float a, float b) {
  const float x = entering<kFlush>(a);
  const float y = entering<kFlush>(b);
  const u32 sign = bits_as<u32>(y) & 0x80000000u;
  const bool large = (bits_as<u32>(y) & 0x7fffffffu) > 0x7e800000u;
  const float q = canonical(large && y == y ? x * bits_as<float>(sign) : x / y);
  return kFlush ? flush(q) : q;
}
template <bool kFlush>
inline float reciprocal(float a) {
  return quotient<kFlush>(1.0f, a);
}
template <bool kFlush>
inline float root(float a) {
  return leaving<kFlush>(double{__builtin_sqrtf(entering<kFlush>(a))});
}
template <bool kFlush>
inline float reciprocal_root(float a) {
  return leaving<kFlush>(1.0 / __builtin_sqrt(double{entering<kFlush>(a)}));
}
inline double quotient_f64(double a, double b) {
  return with_nan_of(a / b, b, a);  // of two NaN, the dividend
}
inline double reciprocal_f64(double a) {
  return with_nan_of(1.0 / a, a);
}
inline double root_f64(double a) {
  return with_nan_of(__builtin_sqrt(a), a);
}

// 2^x = 2^n 2^f, n the nearest integer, 2^f = exp(f ln 2) by its Taylor series to the 13th power: |f ln 2| <= 0.3466,
// so the truncation error is below 1e-17.
inline double power_of_2(double x) {
  constexpr double kMagic = 0x1.8p52;  // leaves an integer in the low bits
  x = x < -200.0 ? -200.0 : x;
  x = x > 200.0 ? 200.0 : x;
  const double shifted = x + kMagic;
  const double r = (x - (shifted - kMagic)) * 0x1.62e42fefa39efp-1;
  const double r2 = r * r;
  const double r4 = r2 * r2;
  const double r8 = r4 * r4;
  const double p01 = 1.0 + r;
  const double p23 = 1.0 / 2 + r * (1.0 / 6);
  const double p45 = 1.0 / 24 + r * (1.0 / 120);
  const double p67 = 1.0 / 720 + r * (1.0 / 5040);
  const double p89 = 1.0 / 40320 + r * (1.0 / 362880);
  const double pab = 1.0 / 3628800 + r * (1.0 / 39916800);
  const double pcd = 1.0 / 479001600 + r * (1.0 / 6227020800.0);
  const double y = p01 + (r2 * p23 + (r4 * (p45 + r2 * p67) + r8 * (p89 + r2 * pab + r4 * pcd)));
  const u64 n = bits_as<u64>(shifted) - bits_as<u64>(kMagic);
  return y * bits_as<double>((n + 1023) << 52);
}
template <bool kFlush>
inline float exponential(float a) {
  const float x = entering<kFlush>(a);
  return leaving<kFlush>(x == x ? power_of_2(double{x}) : double{x});
}

// log2 of a positive number x = 2^e m, m in [sqrt(1/2), sqrt 2): with s = (m - 1) / (m + 1), log m = 2 atanh s =
// 2 s (1 + s^2 / 3 + s^4 / 5 + ...); |s| <= 0.172, so the truncation error after s^20 is below 1e-17.
inline double logarithm_of_positive(double x) {
  constexpr u64 kRootHalf = 0x3fe6a09e667f3bcdu;
  const u64 steps =
      bits_as<u64>(x) - kRootHalf + (u64{2048} << 52 >> 1);  // + 1024 binades: the shift is of a number > 0
  const u64 biased = steps >> 52;
  const double m = bits_as<double>(bits_as<u64>(x) - ((biased - 1024) << 52));
  const double e = bits_as<double>(0x4330000000000000u + biased) - (0x1p52 + 1024.0);
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  const double z2 = z * z;
  const double z4 = z2 * z2;
  const double q =
      ((1.0 + z * (1.0 / 3)) + z2 * (1.0 / 5 + z * (1.0 / 7))) +
      z4 * (((1.0 / 9 + z * (1.0 / 11)) + z2 * (1.0 / 13 + z * (1.0 / 15))) + z4 * (1.0 / 17 + z * (1.0 / 19)));
  return e + (2.0 * s) * (q * 0x1.71547652b82fep+0);
}
template <bool kFlush>
inline float logarithm(float a) {
  const float x = entering<kFlush>(a);
  const bool usual = (x > 0) & (bits_as<u32>(x) < 0x7f800000u);
  const double log2 = logarithm_of_positive(usual ? double{x} : 1.0);
  const u32 special = x == 0 ? 0xff800000u : x > 0 ? 0x7f800000u : kNanF32;
  return usual ? leaving<kFlush>(log2) : bits_as<float>(special);
}

template <bool kFlush>
OpHandler find_f32_function(const OpQuery& query) {
  const bool nearest = query.rounding == Rounding::nearest;
  switch (query.opcode) {
    case Opcode::div:
      if (!nearest || !has_widths(query, 4, 4, 4)) return nullptr;
      return query.approx ? lanewise<quotient_approx<kFlush>> : lanewise<quotient<kFlush>>;
    default:
      break;
  }
  if (!nearest || !has_widths(query, 4, 4)) return nullptr;
  switch (query.opcode) {
    case Opcode::rcp:
      return lanewise<reciprocal<kFlush>>;
    case Opcode::sqrt:
      return lanewise<root<kFlush>>;
    case Opcode::rsqrt:
      return lanewise<reciprocal_root<kFlush>>;
    case Opcode::ex2:
      return lanewise<exponential<kFlush>>;
    case Opcode::lg2:
      return lanewise<logarithm<kFlush>>;
    default:
      return nullptr;
  }
}

inline OpHandler find_function(const OpQuery& query) {
  if (query.type == Type::f32) return query.ftz ? find_f32_function<true>(query) : find_f32_function<false>(query);
  if (query.type != Type::f64 || query.rounding != Rounding::nearest || query.approx) return nullptr;
  switch (query.opcode) {
    case Opcode::div:
      return has_widths(query, 8, 8, 8) ? lanewise<quotient_f64> : nullptr;
    case Opcode::rcp:
      return has_widths(query, 8, 8) ? lanewise<reciprocal_f64> : nullptr;
    case Opcode::sqrt:
      return has_widths(query, 8, 8) ? lanewise<root_f64> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace kvscope::ptx::semantics
