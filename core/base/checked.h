// Integer arithmetic of addresses: the divisions the cache uses, and products that throw instead of wrapping.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "core/base/errors.h"

namespace kvscope {

// Divisors are > 0 everywhere: sizes are checked where they enter.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b > 0 ? 1 : 0);
}

// Rounds towards minus infinity, as the encoded sparse index -1 needs: floor_div(-1, 4) == -1, floor_mod(-1, 4) == 3.
[[nodiscard]] constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
[[nodiscard]] constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  return a - floor_div(a, b) * b;
}

// round_up(80, 64) == 128.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t a, std::int64_t multiple) {
  return ceil_div(a, multiple) * multiple;
}

// Largest power of two that divides x; 0 for 0. Example: largest_pow2_divisor(12) == 4.
[[nodiscard]] constexpr std::int64_t largest_pow2_divisor(std::int64_t x) {
  return x & -x;
}

[[nodiscard]] constexpr bool is_pow2(std::int64_t x) {
  return x > 0 && (x & (x - 1)) == 0;
}

// Floor of the base-2 logarithm, x > 0. Example: log2_floor(10) == 3.
[[nodiscard]] constexpr int log2_floor(std::int64_t x) {
  int bits = -1;
  for (; x > 0; x >>= 1) ++bits;
  return bits;
}

[[noreturn]] void throw_overflow(std::string_view what, std::int64_t a, const char* op, std::int64_t b);
[[noreturn]] void throw_narrow(std::string_view what, std::int64_t value, std::int64_t low, std::int64_t high);

// Throws OverflowError naming `what` and both operands when the result does not fit in 64 bits.
[[nodiscard]] constexpr std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what = "product") {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw_overflow(what, a, "*", b);
  return result;
}
[[nodiscard]] constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what = "sum") {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw_overflow(what, a, "+", b);
  return result;
}

// The value as a narrower integer. Throws OverflowError naming `what`, the value and the range when it does not fit.
template <class To>
requires std::is_integral_v<To> &&(sizeof(To) < 8) [[nodiscard]] constexpr To
    narrow(std::int64_t value, std::string_view what) {
  constexpr std::int64_t low = std::numeric_limits<To>::min();
  constexpr std::int64_t high = std::numeric_limits<To>::max();
  if (value < low || value > high) throw_narrow(what, value, low, high);
  return static_cast<To>(value);
}

}  // namespace kvscope
