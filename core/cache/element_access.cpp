#include "core/cache/element_access.h"

#include <array>
#include <cstring>

namespace kvscope {

void cast_elements(DType from, const std::byte* src, DType to, std::byte* dst, std::int64_t count) {
  if (from == to) {
    std::memcpy(dst, src, static_cast<std::size_t>(count * size_of(from)));
    return;
  }
  convert(from, src, to, dst, count, cast_overflow(to));
}

void dequantize_elements(DType from, const std::byte* src, DType scale_dtype, const std::byte* scale, DType to,
                         std::byte* dst, std::int64_t count) {
  const double factor = load_as_double(scale_dtype, scale);
  std::array<std::byte, 8> element{};
  for (std::int64_t i = 0; i < count; ++i) {
    cast_elements(from, src + i * size_of(from), scale_dtype, element.data(), 1);
    // Two values of at most 24 significant bits multiply exactly in a double, so this rounds once, to the scale's type.
    const double product = load_as_double(scale_dtype, element.data()) * factor;
    store_from_double(scale_dtype, product, element.data(), cast_overflow(scale_dtype));
    cast_elements(scale_dtype, element.data(), to, dst + i * size_of(to), 1);
  }
}

}  // namespace kvscope
