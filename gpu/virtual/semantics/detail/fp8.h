// The 8-bit formats e4m3 (s eeee mmm, bias 7, no infinity, NaN 7f) and e5m2 (s eeeee mm, bias 15, infinity 7c, NaN 7d
// to 7f). Rounded once from a double, to nearest even; values above the largest number become the largest number (the
// instruction requires .satfinite); NaN becomes 7f.
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

}  // namespace
}  // namespace kvscope::ptx::semantics
