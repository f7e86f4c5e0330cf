// Floating-point numbers as bits, and the rounding functions that all other operations use.
//
//   to odd     a sum of two doubles, truncated so that its last bit records whether anything was lost. A second rounding
//              to any narrower type, in any direction, gives the correctly rounded sum (53 bits >= 24 + 2)
//   round_to   a double -> the bits of a narrower format, to nearest even, to zero, down, up, or away from zero at ties
//
//   1 + 2^-24 + 2^-60 in f32, to nearest: to odd 1.000000059604644775390625 + an ulp of double, then 3f800001
//
// Branch-free where it may be vectorized. Included by the files of one instruction set (lanes.h).
// Everything is branch-free where it may run in vectors. Included by the files of one instruction set (lanes.h).
#pragma once

#include "gpu/virtual/semantics/detail/lanes.h"

namespace kvscope::ptx::semantics {
namespace {

inline constexpr u32 kNanF32 = 0x7fffffffu;
inline constexpr u16 kNan16 = 0x7fff;  // of f16 and of bf16
inline constexpr u64 kNanF64 = 0xfff8000000000000u;

inline float canonical(float x) {
  return x == x ? x : bits_as<float>(kNanF32);
}
// f64 arithmetic returns a NaN operand, quieted; with several, the second, then the third, then the first. Without a NaN
// operand, the result of inf - inf and the like is kNanF64. Measured on an H100 (docs/hardware).
inline double quiet(double x) {
  return bits_as<double>(bits_as<u64>(x) | 0x0008000000000000u);
}
inline double with_nan_of(double x, double a) {
  return x == x ? x : a != a ? quiet(a) : bits_as<double>(kNanF64);
}
inline double with_nan_of(double x, double a, double b) {
  return x == x ? x : b != b ? quiet(b) : with_nan_of(x, a);
}
inline double with_nan_of(double x, double a, double b, double c) {
  return x == x ? x : b != b ? quiet(b) : c != c ? quiet(c) : with_nan_of(x, a);
}
inline double canonical(double x) {
  return x == x ? x : bits_as<double>(kNanF64);
}
inline double absolute_of(double x) {
  return bits_as<double>(bits_as<u64>(x) & 0x7fffffffffffffffu);
}
// Replaces subnormals by zero of the same sign.
inline float flush(float x) {
  const u32 bits = bits_as<u32>(x);
  return bits_as<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
inline u16 flush_f16(u16 x) {
  return static_cast<u16>((x & 0x7c00) == 0 ? x & 0x8000 : x);
}
// Clamps to [+0, 1]; NaN and -0 become +0.
inline float saturate(float x) {
  return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

// Exact. The fields are moved to those of a float, which leaves the exponent 112 too small; multiplication by 2^112
// corrects it, for subnormals too.
inline float f16_to_f32(u16 x) {
  const u32 sign = static_cast<u32>(x & 0x8000) << 16;
  const u32 fields = static_cast<u32>(x & 0x7fff) << 13;
  const u32 scaled = bits_as<u32>(bits_as<float>(fields) * 0x1p112f);
  const u32 special = fields > 0x0f800000u ? kNanF32 : 0x7f800000u | sign;
  return bits_as<float>(fields >= 0x0f800000u ? special : scaled | sign);
}
inline float bf16_to_f32(u16 x) {
  return bits_as<float>(u32{x} << 16);
}

// The sum, rounded to odd: of the two doubles around an inexact sum, the one with an odd last bit.
inline double add_to_odd(double a, double b) {
  const double sum = a + b;
  const double b_seen = sum - a;
  const double lost = (a - (sum - b_seen)) + (b - b_seen);  // exactly (Knuth); NaN where the sum is not finite
  const u64 bits = bits_as<u64>(sum);
  const bool outwards = (lost > 0) == (sum > 0);
  const u64 odd = (bits & 1) != 0 ? bits : outwards ? bits + 1 : bits - 1;
  const bool inexact = (lost < 0) | (lost > 0);
  return bits_as<double>(inexact ? odd : bits);
}

// A format with a sign, kExponentBits and kFractionBits. With kInfinity its highest exponent is infinity and NaN.
template <int kExponentBits, int kFractionBits>
struct Format {
  static constexpr int kFraction = kFractionBits;
  static constexpr int kLeastExponent = 2 - (1 << (kExponentBits - 1));  // of a normal number: -126 of f32
  static constexpr u64 kInfinity = ((u64{1} << kExponentBits) - 1) << kFractionBits;
  static constexpr u64 kSign = u64{1} << (kExponentBits + kFractionBits);
};
using FormatF32 = Format<8, 23>;
using FormatF16 = Format<5, 10>;
using FormatBf16 = Format<8, 7>;

// The bits of the magnitude, without a limit: above the format's infinity on overflow. Precondition: x is not NaN.
//   significand  1.fff * 2^52, cut by `drop` bits: the difference of the precisions, more below the least exponent
template <class F, Rounding kRounding>
inline u64 round_magnitude(double x) {
  const u64 bits = bits_as<u64>(x);
  const u64 magnitude = bits & 0x7fffffffffffffffu;
  const bool negative = magnitude != bits;
  const i64 exponent = static_cast<i64>(magnitude >> 52) - 1023;
  const u64 significand = (magnitude & 0xfffffffffffffu) | (exponent == -1023 ? u64{0} : u64{1} << 52);
  const i64 below = F::kLeastExponent - exponent;
  const i64 wanted = 52 - F::kFraction + (below > 0 ? below : 0);
  const u64 drop = static_cast<u64>(wanted < 55 ? wanted : 55);
  const u64 kept = significand >> drop;
  const u64 rest = significand & ((u64{1} << drop) - 1);
  const u64 half = u64{1} << (drop - 1);
  bool up = false;
  switch (kRounding) {
    case Rounding::nearest:
      up = (rest > half) | ((rest == half) & ((kept & 1) != 0));
      break;
    case Rounding::away:
      up = rest >= half;
      break;
    case Rounding::down:
      up = (rest != 0) & negative;
      break;
    case Rounding::up:
      up = (rest != 0) & !negative;
      break;
    default:
      break;
  }
  const u64 steps = below > 0 ? u64{0} : static_cast<u64>(-below) << F::kFraction;
  return steps + kept + (up ? u64{1} : u64{0});
}

// The bits of x in the format; `nan` for a NaN.
template <class F, Rounding kRounding>
inline u32 round_to(double x, u32 nan) {
  const u64 bits = bits_as<u64>(x);
  const bool negative = (bits >> 63) != 0;
  const bool infinite = (bits & 0x7fffffffffffffffu) == 0x7ff0000000000000u;
  const u64 magnitude = round_magnitude<F, kRounding>(x);
  // With rounding toward zero, no finite number becomes infinite.
  const bool stops = kRounding == Rounding::zero || (kRounding == Rounding::down && !negative) ||
                     (kRounding == Rounding::up && negative);
  const u64 most = stops && !infinite ? F::kInfinity - 1 : F::kInfinity;
  const u64 limited = magnitude < most ? magnitude : most;
  return x == x ? static_cast<u32>(limited | (negative ? F::kSign : u64{0})) : nan;
}

template <Rounding kRounding>
inline float round_to_f32(double x) {
  if constexpr (kRounding == Rounding::nearest) return canonical(static_cast<float>(x));
  return bits_as<float>(round_to<FormatF32, kRounding>(x, kNanF32));
}
inline u16 f64_to_f16(double x) {
  return static_cast<u16>(round_to<FormatF16, Rounding::nearest>(x, kNan16));
}
inline u16 f64_to_bf16(double x) {
  return static_cast<u16>(round_to<FormatBf16, Rounding::nearest>(x, kNan16));
}

// An exact zero sum is -0 when rounded down unless both summands are +0; otherwise it is +0, as computed by the host.
template <Rounding kRounding>
inline double add_for(double a, double b) {
  const double sum = add_to_odd(a, b);
  if constexpr (kRounding == Rounding::down) {
    const u64 signs = (bits_as<u64>(a) | bits_as<u64>(b)) & 0x8000000000000000u;
    return sum == 0 ? bits_as<double>(signs) : sum;
  }
  return sum;
}

}  // namespace
}  // namespace kvscope::ptx::semantics
