// A number as an integer times a power of two, and its one rounding to a floating-point number: for f64 in all
// directions, for 64-bit integers, for quotients and roots.
//
//   1/3 = significand 0x5555..., exponent -126, rest true: a nonzero remainder is below the lowest bit
//
// Included by sources of this folder only (lanes.h).
#pragma once

#include "gpu/virtual/semantics/detail/float_bits.h"

namespace kvscope::ptx::semantics {
namespace {

struct Exact {
  u128 significand = 0;
  int exponent = 0;   // of the lowest bit
  bool rest = false;  // a nonzero remainder below the lowest bit; the significand then has two bits more than the
                      // result needs
  bool negative = false;
};

inline int top_bit(u128 x) {
  const u64 high = static_cast<u64>(x >> 64);
  return high != 0 ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(static_cast<u64>(x));
}

// The bits of x in format F. F::kInfinity and above is an overflow, resolved by the rounding direction. Zero keeps its
// sign.
template <class F>
inline u64 round_exact(const Exact& x, Rounding rounding) {
  const u64 sign = x.negative ? F::kSign : 0;
  if (x.significand == 0) return sign;
  const int top = top_bit(x.significand) + x.exponent;
  const int binade = top > F::kLeastExponent ? top : F::kLeastExponent;
  const int drop = binade - F::kFraction - x.exponent;
  u128 kept = 0;
  bool at_least_half = false;
  bool above_half = false;
  bool inexact = x.rest;
  if (drop <= 0) {
    kept = x.significand << -drop;
  } else if (drop > 127) {
    inexact = true;
  } else {
    kept = x.significand >> drop;
    const u128 lost = x.significand & ((u128{1} << drop) - 1);
    const u128 half = u128{1} << (drop - 1);
    at_least_half = lost >= half;
    above_half = lost > half || (lost == half && x.rest);
    inexact = inexact || lost != 0;
  }
  bool up = false;
  switch (rounding) {
    case Rounding::nearest:
      up = above_half || (at_least_half && (kept & 1) != 0);
      break;
    case Rounding::away:
      up = at_least_half;
      break;
    case Rounding::down:
      up = inexact && x.negative;
      break;
    case Rounding::up:
      up = inexact && !x.negative;
      break;
    default:
      break;
  }
  const u64 steps = static_cast<u64>(binade - F::kLeastExponent);
  // Far above the format's range, the shift would overflow the word.
  const u64 magnitude = steps > 4096 ? F::kInfinity : (steps << F::kFraction) + static_cast<u64>(kept) + (up ? 1u : 0u);
  if (magnitude < F::kInfinity) return sign | magnitude;
  const bool stops = rounding == Rounding::zero || (rounding == Rounding::down && !x.negative) ||
                     (rounding == Rounding::up && x.negative);
  return sign | (stops ? F::kInfinity - 1 : F::kInfinity);
}

using FormatF64 = Format<11, 52>;

// A finite double.
inline Exact exact_of(double x) {
  const u64 bits = bits_as<u64>(x);
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  Exact e;
  e.significand = (bits & 0xfffffffffffffu) | (biased != 0 ? u64{1} << 52 : 0);
  e.exponent = (biased != 0 ? biased : 1) - 1075;
  e.negative = (bits >> 63) != 0;
  return e;
}
inline bool is_finite(double x) {
  return (bits_as<u64>(x) & 0x7ff0000000000000u) != 0x7ff0000000000000u;
}

}  // namespace
}  // namespace kvscope::ptx::semantics
