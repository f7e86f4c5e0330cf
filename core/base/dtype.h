// Element types: the value of each stored bit pattern. Conversions between them are in core/base/convert.h.
//
//   name   bits  sign exponent mantissa  bias  largest finite   infinities  NaN patterns
//   f32     32     1      8       23      127   3.4e38           yes         IEEE 754
//   f16     16     1      5       10       15   65504            yes         IEEE 754
//   bf16    16     1      8        7      127   3.39e38          yes         IEEE 754
//   e4m3     8     1      4        3        7   448              no          7f, ff
//   e5m2     8     1      5        2       15   57344            yes         7d..7f, fd..ff
//   e8m0     8     0      8        0      127   2^127            no          ff      (no zero, no sign: powers of two)
//   e2m1     4     1      2        1        1   6                no          none    (two elements in a byte)
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvscope {

enum class DType : std::uint8_t { f64, f32, f16, bf16, e4m3, e5m2, e8m0, e2m1, i8, u8, i16, u16, i32, u32, i64, u64 };
inline constexpr int kDTypeCount = 16;

// The narrow floats as C++ types for storage only: arithmetic on them must convert, and so name its precision.
struct f16 {
  std::uint16_t bits;
};
struct bf16 {
  std::uint16_t bits;
};
struct e4m3 {
  std::uint8_t bits;
};
struct e5m2 {
  std::uint8_t bits;
};
struct e8m0 {
  std::uint8_t bits;
};
struct e2m1 {
  std::uint8_t bits;
};  // low 4 bits; the high 4 are zero

[[nodiscard]] std::string_view name(DType dtype);                           // "bf16"
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name);  // also "float32", "half", "fp8_e4m3", ...
[[nodiscard]] int bits(DType dtype);                                        // 4, 8, 16, 32 or 64

// Bytes of one element. Throws UnsupportedError for e2m1, because half a byte has no address.
[[nodiscard]] std::int64_t size_of(DType dtype);

[[nodiscard]] constexpr bool is_integer(DType dtype) {
  return dtype >= DType::i8;
}
[[nodiscard]] constexpr bool is_float(DType dtype) {
  return !is_integer(dtype);
}

// The DType of a C++ element type: dtype_of<bf16> == DType::bf16.
template <class T>
inline constexpr DType dtype_of = [] { static_assert(sizeof(T) == 0, "not an element type"); }();
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<f16> = DType::f16;
template <>
inline constexpr DType dtype_of<bf16> = DType::bf16;
template <>
inline constexpr DType dtype_of<e4m3> = DType::e4m3;
template <>
inline constexpr DType dtype_of<e5m2> = DType::e5m2;
template <>
inline constexpr DType dtype_of<e8m0> = DType::e8m0;
template <>
inline constexpr DType dtype_of<e2m1> = DType::e2m1;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<std::int16_t> = DType::i16;
template <>
inline constexpr DType dtype_of<std::uint16_t> = DType::u16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::uint32_t> = DType::u32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::uint64_t> = DType::u64;

}  // namespace kvscope
