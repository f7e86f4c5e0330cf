// a b + c of doubles with one rounding, in any direction: for scalars and for matrices.
//
// Both terms are integers of 256 bits, with the top of the larger one at bit 190. Bits of the smaller one below bit 0
// are merged into bit 0, which is more than 64 bits below the last bit of the result.
//
// Included by sources of this folder only (lanes.h).
#pragma once

#include "gpu/virtual/semantics/detail/exact.h"

namespace kvscope::ptx::semantics {
namespace {

struct Wide {
  u64 word[4] = {0, 0, 0, 0};
};
inline Wide placed(u128 x, int at_bit) {  // x * 2^at_bit; bits below 0 are ORed into bit 0
  Wide w;
  if (at_bit < 0) {
    const int drop = -at_bit;
    const bool lost = drop > 127 ? x != 0 : (x & ((u128{1} << drop) - 1)) != 0;
    x = (drop > 127 ? u128{0} : x >> drop) | (lost ? 1u : 0u);
    at_bit = 0;
  }
  for (int bit = 0; bit < 128; bit += 64) {
    const u128 part = static_cast<u128>(static_cast<u64>(x >> bit)) << (at_bit % 64);
    const int first = (at_bit + bit) / 64;
    w.word[first] |= static_cast<u64>(part);
    if (first + 1 < 4) w.word[first + 1] |= static_cast<u64>(part >> 64);
  }
  return w;
}
inline int compare(const Wide& a, const Wide& b) {
  for (int i = 3; i >= 0; --i) {
    if (a.word[i] != b.word[i]) return a.word[i] < b.word[i] ? -1 : 1;
  }
  return 0;
}
inline Wide sum_of(const Wide& a, const Wide& b, bool subtract) {
  Wide w;
  u64 carry = subtract ? 1 : 0;
  for (int i = 0; i < 4; ++i) {
    const u128 s = static_cast<u128>(a.word[i]) + (subtract ? ~b.word[i] : b.word[i]) + carry;
    w.word[i] = static_cast<u64>(s);
    carry = static_cast<u64>(s >> 64);
  }
  return w;
}
inline Exact exact_of(const Wide& w, int exponent, bool negative) {
  int top = 3;
  while (top > 0 && w.word[top] == 0) --top;
  Exact e;
  e.negative = negative;
  e.significand = w.word[top];
  e.exponent = exponent + 64 * top;
  if (top == 0) return e;
  e.significand = e.significand << 64 | w.word[top - 1];
  e.exponent -= 64;
  for (int i = 0; i < top - 1; ++i) e.rest = e.rest || w.word[i] != 0;
  return e;
}

// Finite terms.
inline Exact added(const Exact& x, const Exact& y, Rounding rounding) {
  if (x.significand == 0 || y.significand == 0) {
    if (x.significand != 0) return x;
    if (y.significand != 0) return y;
    Exact zero = x;
    zero.negative = x.negative == y.negative ? x.negative : rounding == Rounding::down;
    return zero;
  }
  const int top_x = top_bit(x.significand) + x.exponent;
  const int top_y = top_bit(y.significand) + y.exponent;
  const int lowest = (top_x > top_y ? top_x : top_y) - 190;  // the exponent of bit 0
  const Wide a = placed(x.significand, x.exponent - lowest < -200 ? -200 : x.exponent - lowest);
  const Wide b = placed(y.significand, y.exponent - lowest < -200 ? -200 : y.exponent - lowest);
  if (x.negative == y.negative) return exact_of(sum_of(a, b, false), lowest, x.negative);
  const int order = compare(a, b);
  if (order == 0) return Exact{0, 0, false, rounding == Rounding::down};
  return order > 0 ? exact_of(sum_of(a, b, true), lowest, x.negative)
                   : exact_of(sum_of(b, a, true), lowest, y.negative);
}
inline Exact multiplied(double a, double b) {
  const Exact x = exact_of(a);
  const Exact y = exact_of(b);
  return {x.significand * y.significand, x.exponent + y.exponent, false, x.negative != y.negative};
}

inline double fma_rounded(double a, double b, double c, Rounding rounding) {
  if (!is_finite(a) || !is_finite(b) || !is_finite(c)) {
    // Infinities and NaN: no rounding. The product of finite factors must not overflow to infinity.
    const double product = is_finite(a) && is_finite(b) ? 0.0 : a * b;
    return with_nan_of(product + c, a, b, c);
  }
  return bits_as<double>(round_exact<FormatF64>(added(multiplied(a, b), exact_of(c), rounding), rounding));
}

}  // namespace
}  // namespace kvscope::ptx::semantics
