// Formats of 8, 6 and 4 bits. e4m3 is s eeee mmm, bias 7, no infinity, NaN 7f; e5m2 is s eeeee mm, bias 15, infinity 7c,
// NaN 7d to 7f. Rounded once from a double, to nearest even; values above the largest number become the largest number
// (the instruction requires .satfinite); NaN becomes 7f.
//
//   e4m3   448 -> 7e   464 -> 7e   2^-10 -> 00 (a tie, to even)   1.5 * 2^-10 -> 01
#pragma once

#include "gpu/virtual/semantics/detail/float_bits.h"

namespace kvscope::ptx::semantics {
namespace {

using FormatE4m3 = Format<4, 3>;
using FormatE5m2 = Format<5, 2>;

// Both are converted to f16 bits, exactly.
inline u16 e4m3_to_f16(u8 x) {
  const u32 magnitude = x & 0x7f;
  const u32 sign = static_cast<u32>(x & 0x80) << 8;
  if (magnitude == 0x7f) return kNan16;
  // eeee mmm are moved to f16's fields, which leaves the exponent 8 too small; subnormals are normal in f16.
  const float value = bits_as<float>(magnitude << 20) * 0x1p120f;
  const u32 bits = bits_as<u32>(value);
  const u32 f16 = magnitude == 0 ? 0 : ((bits >> 23) - 112) << 10 | (bits >> 13 & 0x3ff);
  return static_cast<u16>(sign | f16);
}
inline u16 e5m2_to_f16(u8 x) {
  return (x & 0x7f) > 0x7c ? kNan16 : static_cast<u16>(u32{x} << 8);
}
inline float e4m3_to_f32(u8 x) {
  return f16_to_f32(e4m3_to_f16(x));
}
inline float e5m2_to_f32(u8 x) {
  return f16_to_f32(e5m2_to_f16(x));
}

// The formats e2m3 (s ee mmm, bias 1, largest 7.5), e3m2 (s eee mm, bias 3, 28) and e2m1 (s ee m, bias 1, 6): no
// infinities, no NaN. Bits above the sign are ignored.
template <int kExponentBits, int kFractionBits>
inline float small_to_f32(u32 code) {
  constexpr int kBits = kExponentBits + kFractionBits, kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr float kScale = kBias == 1 ? 0x1p126f : 0x1p124f;
  const float value = bits_as<float>((code & ((1u << kBits) - 1)) << (23 - kFractionBits)) * kScale;
  return (code >> kBits & 1) != 0 ? -value : value;
}
inline float e2m3_to_f32(u8 x) {
  return small_to_f32<2, 3>(x);
}
inline float e3m2_to_f32(u8 x) {
  return small_to_f32<3, 2>(x);
}
inline float e2m1_to_f32(u8 x) {
  return small_to_f32<2, 1>(x);
}

template <class F, u8 kLargest>
inline u8 to_fp8(double x) {
  if (x != x) return 0x7f;
  const u64 sign = bits_as<u64>(x) >> 63 << 7;
  const u64 magnitude = round_magnitude<F, Rounding::nearest>(x);
  return static_cast<u8>(sign | (magnitude < kLargest ? magnitude : kLargest));
}
inline u8 to_e4m3(double x) {
  return to_fp8<FormatE4m3, 0x7e>(x);
}
inline u8 to_e5m2(double x) {
  return to_fp8<FormatE5m2, 0x7b>(x);
}

// To nearest even; values above the largest number, and NaN, become the largest number, NaN the positive one.
template <int kExponentBits, int kFractionBits>
inline u8 to_small(double x) {
  constexpr u64 kLargest = (u64{1} << (kExponentBits + kFractionBits)) - 1;
  if (x != x) return static_cast<u8>(kLargest);
  const u64 sign = bits_as<u64>(x) >> 63 << (kExponentBits + kFractionBits);
  const u64 magnitude = round_magnitude<Format<kExponentBits, kFractionBits>, Rounding::nearest>(x);
  return static_cast<u8>(sign | (magnitude < kLargest ? magnitude : kLargest));
}

}  // namespace
}  // namespace kvscope::ptx::semantics
