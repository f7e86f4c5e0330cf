// neg, abs, min and max of floating-point numbers: bit operations and comparisons, no arithmetic.
// Included by the files of one instruction set (lanes.h).
#pragma once

#include "gpu/virtual/semantics/detail/float_bits.h"

namespace kvscope::ptx::semantics {
namespace {

// Changes only the sign bit, also for NaN.
template <class T>
inline T negate_float(T x) {
  constexpr Unsigned<T> kSign = Unsigned<T>{1} << (8 * sizeof(T) - 1);
  return bits_as<T>(static_cast<Unsigned<T>>(bits_as<Unsigned<T>>(x) ^ kSign));
}
template <class T>
inline T absolute_float(T x) {
  constexpr Unsigned<T> kSign = Unsigned<T>{1} << (8 * sizeof(T) - 1);
  return bits_as<T>(static_cast<Unsigned<T>>(bits_as<Unsigned<T>>(x) & ~kSign));
}
// The instructions: a NaN becomes the canonical one, in f64 the same one, quieted. Its sign never changes.
inline float nan_of(float x) {
  return canonical(x);
}
inline double nan_of(double x) {
  return quiet(x);
}
template <class T>
inline T negate_number(T x) {
  return x == x ? negate_float(x) : nan_of(x);
}
template <class T>
inline T absolute_number(T x) {
  return x == x ? absolute_float(x) : nan_of(x);
}
inline float negate_flushed(float x) {
  return flush(negate_number(x));
}
inline float absolute_flushed(float x) {
  return flush(absolute_number(x));
}

// -0 is less than +0 in either operand order. With one NaN: the other operand; with two NaNs, or with kNan and any NaN:
// the canonical NaN. kXorSign compares magnitudes and gives the result the sign of the product.
template <class T, bool kMax, bool kNan, bool kXorSign>
inline T extreme(T a, T b) {
  using U = Unsigned<T>;
  const T first = a, second = b;
  constexpr U kSign = U{1} << (8 * sizeof(T) - 1);
  const U sign = static_cast<U>((bits_as<U>(a) ^ bits_as<U>(b)) & kSign);
  if constexpr (kXorSign) {
    a = absolute_float(a);
    b = absolute_float(b);
  }
  // Equal numbers differ at most in the sign of zero: OR keeps -0, AND keeps +0.
  const U same = kMax ? static_cast<U>(bits_as<U>(a) & bits_as<U>(b)) : static_cast<U>(bits_as<U>(a) | bits_as<U>(b));
  const T ordered = kMax ? (a > b ? a : b) : (a < b ? a : b);
  T result = a == b ? bits_as<T>(same) : ordered;
  if constexpr (kNan) {
    const bool numbers = (a == a) & (b == b);
    result = numbers ? result : canonical(a + b);
  } else {
    result = a != a ? b : b != b ? a : result;
    if constexpr (sizeof(T) == 8) {
      result = with_nan_of(result, first, second);
    } else {
      result = canonical(result);
    }
  }
  if constexpr (kXorSign) result = result == result ? bits_as<T>(static_cast<U>(bits_as<U>(result) | sign)) : result;
  return result;
}
template <bool kMax, bool kNan, bool kXorSign>
inline float extreme_flushed(float a, float b) {
  return flush(extreme<float, kMax, kNan, kXorSign>(flush(a), flush(b)));
}

}  // namespace
}  // namespace kvscope::ptx::semantics
