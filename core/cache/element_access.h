// Reads and writes elements of a cache with one rounding: from source type to destination type directly, never through
// a third type. Used by all caches. Casts to 8-bit floats saturate, as the hardware's conversion instructions for them
// do; wider floats overflow to infinity.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/convert.h"
#include "core/base/dtype.h"

namespace kvscope {

[[nodiscard]] constexpr Overflow cast_overflow(DType to) {
  const bool eight_bit_float = to == DType::e4m3 || to == DType::e5m2 || to == DType::e8m0 || to == DType::e2m1;
  return eight_bit_float ? Overflow::saturate : Overflow::non_saturating;
}

// `count` elements; equal types are copied bit for bit.
void cast_elements(DType from, const std::byte* src, DType to, std::byte* dst, std::int64_t count);

// Quantized elements times one scale, in the scale's type: element -> scale dtype, product rounded to scale
// dtype, then -> `to`.
// A narrow scale type therefore rounds the product before the last conversion. Example: e4m3 3c (1.5) with f32 0.25 ->
// 0.375.
void dequantize_elements(DType from, const std::byte* src, DType scale_dtype, const std::byte* scale, DType to,
                         std::byte* dst, std::int64_t count);

}  // namespace kvscope
