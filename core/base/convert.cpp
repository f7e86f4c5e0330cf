#include "core/base/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/base/errors.h"

namespace kvscope {
namespace {

// A narrow float's layout: sign | exponent | mantissa, its largest finite pattern and the pattern above it,
// sign bit cleared.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  std::uint32_t largest;   // largest finite
  std::uint32_t overflow;  // past the largest, when not saturating
  std::uint32_t nan;
};

constexpr Format kF32 = {8, 23, 127, 0x7f7fffff, 0x7f800000, 0x7fc00000};
constexpr Format kF16 = {5, 10, 15, 0x7bff, 0x7c00, 0x7e00};
constexpr Format kBf16 = {8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0};
constexpr Format kE4m3 = {4, 3, 7, 0x7e, 0x7f, 0x7f};
constexpr Format kE5m2 = {5, 2, 15, 0x7b, 0x7c, 0x7f};
constexpr Format kE2m1 = {2, 1, 1, 0x7, 0x7, 0x7};

constexpr int kDoubleMantissa = 52;
constexpr int kDoubleBias = 1023;

// One rounding of a double into `F`. The significand is cut at the target's last bit, rounded to even, and added to the
// exponent field, so that a carry out of the mantissa increments the exponent.
template <Format F>
std::uint32_t encode(double x, Overflow overflow, NanSign nan_sign) {
  const auto raw = std::bit_cast<std::uint64_t>(x);
  const auto sign = static_cast<std::uint32_t>(raw >> 63) << (F.exponent_bits + F.mantissa_bits);
  const int field = static_cast<int>((raw >> kDoubleMantissa) & 0x7ff);
  const std::uint64_t fraction = raw & ((std::uint64_t{1} << kDoubleMantissa) - 1);
  const std::uint32_t too_large = sign | (overflow == Overflow::saturate ? F.largest : F.overflow);
  if (field == 0x7ff) return fraction == 0 ? too_large : F.nan | (nan_sign == NanSign::kept ? sign : 0);
  if (field == 0) return sign;  // below 2^-1022: far under half of any smallest subnormal

  const int exponent = field - kDoubleBias;
  const int lowest = 1 - F.bias;
  const int cut = kDoubleMantissa - F.mantissa_bits + std::max(0, lowest - exponent);
  if (cut > kDoubleMantissa + 1) return sign;  // under half of the smallest subnormal
  const std::uint64_t significand = fraction | (std::uint64_t{1} << kDoubleMantissa);
  const std::uint64_t kept = significand >> cut;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << cut) - 1);
  const std::uint64_t half = std::uint64_t{1} << (cut - 1);
  std::uint64_t code = kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
  if (exponent > lowest) code += static_cast<std::uint64_t>(exponent - lowest) << F.mantissa_bits;
  return code > F.largest ? too_large : sign | static_cast<std::uint32_t>(code);
}

std::uint8_t encode_e8m0(double x, bool saturate) {
  constexpr std::uint8_t kNan = 0xff;
  constexpr std::uint8_t kLargest = 0xfe;
  if (std::isnan(x)) return kNan;
  if (x <= 0) return saturate ? 0x00 : kNan;
  const auto raw = std::bit_cast<std::uint64_t>(x);
  const int field = static_cast<int>(raw >> kDoubleMantissa);
  const std::uint64_t fraction = raw & ((std::uint64_t{1} << kDoubleMantissa) - 1);
  const std::uint64_t half = std::uint64_t{1} << (kDoubleMantissa - 1);
  int code = field - kDoubleBias + 127;
  if (field == 0x7ff) return saturate ? kLargest : kNan;
  if (code < 0) return 0;
  if (fraction > half || (fraction == half && code % 2 != 0)) ++code;
  return code > kLargest ? (saturate ? kLargest : kNan) : static_cast<std::uint8_t>(code);
}

// Value of a pattern of an 8- or 4-bit float, at compile time. Powers of two by repeated doubling:
// std::ldexp is not constexpr.
constexpr double pow2(int n) {
  double x = 1;
  for (; n > 0; --n) x *= 2;
  for (; n < 0; ++n) x /= 2;
  return x;
}

template <Format F>
constexpr double decode_small(std::uint32_t pattern) {
  const std::uint32_t magnitude = pattern & ((1u << (F.exponent_bits + F.mantissa_bits)) - 1);
  const double sign = pattern != magnitude ? -1 : 1;
  if (magnitude > F.largest) {
    const bool infinite = magnitude == F.overflow && F.overflow != F.nan;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    return infinite ? sign * std::numeric_limits<double>::infinity() : sign < 0 ? -nan : nan;
  }
  const int exponent = static_cast<int>(magnitude >> F.mantissa_bits);
  const std::uint32_t mantissa = magnitude & ((1u << F.mantissa_bits) - 1);
  const std::uint32_t hidden = exponent > 0 ? 1u << F.mantissa_bits : 0;
  return sign * static_cast<double>(hidden + mantissa) * pow2(std::max(exponent, 1) - F.bias - F.mantissa_bits);
}

constexpr double decode_e8m0(std::uint32_t pattern) {
  return pattern == 0xff ? std::numeric_limits<double>::quiet_NaN() : pow2(static_cast<int>(pattern) - 127);
}

// All values of an 8-bit float, stored as float, which represents each exactly (2^-127 is a subnormal float).
template <class Decode>
constexpr std::array<float, 256> make_table(Decode decode) {
  std::array<float, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(decode(i));
  return table;
}

constexpr std::array<float, 256> kE4m3Table = make_table(decode_small<kE4m3>);
constexpr std::array<float, 256> kE5m2Table = make_table(decode_small<kE5m2>);
constexpr std::array<float, 256> kE8m0Table = make_table(decode_e8m0);

float to_float(bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

// Branch-free, so that loops over it are vectorized: the fields are moved to their places in a float, and an addition
// corrects the exponent's bias. A subnormal gets a hidden bit, which a float subtraction removes exactly.
float to_float(f16 x) {
  constexpr std::uint32_t kRebias = (127u - 15u) << 23;
  constexpr std::uint32_t kExponent = 0x1fu << 23;
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t moved = static_cast<std::uint32_t>(x.bits & 0x7fffu) << 13;
  const std::uint32_t exponent = moved & kExponent;
  const std::uint32_t normal = moved + kRebias + (exponent == kExponent ? kRebias : 0u);
  const float with_hidden = std::bit_cast<float>(moved + kRebias + (1u << 23));
  const auto subnormal = std::bit_cast<std::uint32_t>(with_hidden - 0x1p-14f);
  return std::bit_cast<float>(sign | (exponent == 0 ? subnormal : normal));
}

float to_float(e4m3 x) {
  return kE4m3Table[x.bits];
}
float to_float(e5m2 x) {
  return kE5m2Table[x.bits];
}
float to_float(e8m0 x) {
  return kE8m0Table[x.bits];
}
float to_float(double x) {
  return static_cast<float>(x);
}
float to_float(float x) {
  return x;
}
template <class T>
requires std::is_integral_v<T>
float to_float(T x) {
  return static_cast<float>(x);
}

template <class T>
double widen(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(x);
  } else {
    return static_cast<double>(to_float(x));
  }
}

// Truncated towards zero, saturated, NaN -> 0. 2^63 and 2^64 are doubles, their predecessors are not: hence >=.
template <class T>
T to_integer(double x) {
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double past = 2 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
  if (std::isnan(x)) return 0;
  if (x >= past) return std::numeric_limits<T>::max();
  if (x <= low) return std::numeric_limits<T>::min();
  return static_cast<T>(x);
}

template <class T>
T narrow_to(double x, Overflow overflow, NanSign nan_sign) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else if constexpr (std::is_integral_v<T>) {
    return to_integer<T>(x);
  } else {
    return from_double<T>(x, overflow, nan_sign);
  }
}

template <class T>
T load(const std::byte* src) {
  T x;
  std::memcpy(&x, src, sizeof(T));
  return x;
}

template <class T>
void store(std::byte* dst, T x) {
  std::memcpy(dst, &x, sizeof(T));
}

// A type as a value, so that one switch serves every loop.
template <class T>
struct TypeOf {
  using type = T;
};

template <class F>
auto visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f(TypeOf<double>{});
    case DType::f32:
      return f(TypeOf<float>{});
    case DType::f16:
      return f(TypeOf<f16>{});
    case DType::bf16:
      return f(TypeOf<bf16>{});
    case DType::e4m3:
      return f(TypeOf<e4m3>{});
    case DType::e5m2:
      return f(TypeOf<e5m2>{});
    case DType::e8m0:
      return f(TypeOf<e8m0>{});
    case DType::i8:
      return f(TypeOf<std::int8_t>{});
    case DType::u8:
      return f(TypeOf<std::uint8_t>{});
    case DType::i16:
      return f(TypeOf<std::int16_t>{});
    case DType::u16:
      return f(TypeOf<std::uint16_t>{});
    case DType::i32:
      return f(TypeOf<std::int32_t>{});
    case DType::u32:
      return f(TypeOf<std::uint32_t>{});
    case DType::i64:
      return f(TypeOf<std::int64_t>{});
    case DType::u64:
      return f(TypeOf<std::uint64_t>{});
    case DType::e2m1:
      break;
  }
  throw UnsupportedError(
      fmt::format("{} has no loads and stores of single elements: two of them share a byte", name(dtype)));
}

// An integer as a double from which rounding to any narrower float gives the same result as rounding the integer: bits
// past 53 are cut off and leave a 1 in the last place ("round to odd"), so that no false tie appears.
template <class T>
double round_to_odd(T value) {
  const bool negative = value < 0;
  const std::uint64_t magnitude =
      negative ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  const int excess = std::max(0, 11 - std::countl_zero(magnitude));
  std::uint64_t kept = magnitude >> excess << excess;
  if (kept != magnitude) kept |= std::uint64_t{1} << excess;
  const auto x = static_cast<double>(kept);
  return negative ? -x : x;
}

template <class To, class From>
To saturate_integer(From value) {
  if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (std::cmp_greater(value, std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

void store_all(DType dtype, std::span<const double> src, std::byte* dst, Overflow overflow, NanSign nan_sign) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t i = 0; i < src.size(); ++i) store(dst + i * sizeof(T), narrow_to<T>(src[i], overflow, nan_sign));
  });
}

// From i64 or u64, whose values may not fit a double exactly.
template <class From>
void convert_wide_integers(const std::byte* src, DType to, std::byte* dst, std::size_t count, Overflow overflow) {
  visit_dtype(to, [&](auto tag) {
    using To = typename decltype(tag)::type;
    for (std::size_t i = 0; i < count; ++i) {
      const From value = load<From>(src + i * sizeof(From));
      if constexpr (std::is_integral_v<To>) {
        store(dst + i * sizeof(To), saturate_integer<To>(value));
      } else if constexpr (std::is_same_v<To, double>) {
        store(dst + i * sizeof(To), static_cast<double>(value));
      } else {
        store(dst + i * sizeof(To), from_double<To>(round_to_odd(value), overflow));
      }
    }
  });
}

}  // namespace

double to_double(f16 x) {
  return static_cast<double>(to_float(x));
}
double to_double(bf16 x) {
  return static_cast<double>(to_float(x));
}
double to_double(e4m3 x) {
  return static_cast<double>(to_float(x));
}
double to_double(e5m2 x) {
  return static_cast<double>(to_float(x));
}
double to_double(e8m0 x) {
  return static_cast<double>(to_float(x));
}
double to_double(e2m1 x) {
  return decode_small<kE2m1>(x.bits & 0xfu);
}

template <>
f16 from_double(double x, Overflow overflow, NanSign nan_sign) {
  return {static_cast<std::uint16_t>(encode<kF16>(x, overflow, nan_sign))};
}
template <>
bf16 from_double(double x, Overflow overflow, NanSign nan_sign) {
  return {static_cast<std::uint16_t>(encode<kBf16>(x, overflow, nan_sign))};
}
template <>
e4m3 from_double(double x, Overflow overflow, NanSign nan_sign) {
  return {static_cast<std::uint8_t>(encode<kE4m3>(x, overflow, nan_sign))};
}
template <>
e5m2 from_double(double x, Overflow overflow, NanSign nan_sign) {
  return {static_cast<std::uint8_t>(encode<kE5m2>(x, overflow, nan_sign))};
}
template <>
e8m0 from_double(double x, Overflow overflow, NanSign) {
  return {encode_e8m0(x, overflow == Overflow::saturate)};
}
template <>
e2m1 from_double(double x, Overflow overflow, NanSign nan_sign) {
  return {static_cast<std::uint8_t>(encode<kE2m1>(x, overflow, nan_sign))};
}
template <>
float from_double(double x, Overflow overflow, NanSign nan_sign) {
  return std::bit_cast<float>(encode<kF32>(x, overflow, nan_sign));
}

double load_as_double(DType dtype, const std::byte* src) {
  return visit_dtype(dtype, [&](auto tag) { return widen(load<typename decltype(tag)::type>(src)); });
}

void store_from_double(DType dtype, double x, std::byte* dst, Overflow overflow, NanSign nan_sign) {
  store_all(dtype, {&x, 1}, dst, overflow, nan_sign);
}

void to_doubles(DType dtype, const std::byte* src, std::span<double> dst) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t i = 0; i < dst.size(); ++i) dst[i] = widen(load<T>(src + i * sizeof(T)));
  });
}

void to_floats(DType dtype, const std::byte* src, std::span<float> dst) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t i = 0; i < dst.size(); ++i) dst[i] = to_float(load<T>(src + i * sizeof(T)));
  });
}

void convert(DType from, const std::byte* src, DType to, std::byte* dst, std::int64_t count, Overflow overflow,
             NanSign nan_sign) {
  const auto from_size = static_cast<std::size_t>(size_of(from));
  const auto to_size = static_cast<std::size_t>(size_of(to));
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  if (n == 0) return;
  if (from == to) {
    std::memmove(dst, src, n * from_size);
    return;
  }
  if (from == DType::i64) return convert_wide_integers<std::int64_t>(src, to, dst, n, overflow);
  if (from == DType::u64) return convert_wide_integers<std::uint64_t>(src, to, dst, n, overflow);

  std::array<double, 512> chunk;
  for (std::size_t done = 0; done < n; done += chunk.size()) {
    const std::span<double> part(chunk.data(), std::min(chunk.size(), n - done));
    to_doubles(from, src + done * from_size, part);
    store_all(to, part, dst + done * to_size, overflow, nan_sign);
  }
}

}  // namespace kvscope
