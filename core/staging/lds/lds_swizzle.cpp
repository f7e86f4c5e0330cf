#include "core/staging/lds/lds_swizzle.h"

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/staging/lds/lds_index.h"

namespace kvscope {

std::int64_t swizzled_vector(const std::optional<Swizzle>& swizzle, std::int64_t vector) {
  return swizzle ? (*swizzle)(vector) : vector;
}

std::int64_t swizzled_byte(const std::optional<Swizzle>& swizzle, std::int64_t byte) {
  return swizzled_vector(swizzle, byte / kLdsVectorBytes) * kLdsVectorBytes + byte % kLdsVectorBytes;
}

std::string swizzle_effect(const Swizzle& swizzle, std::int64_t row_bytes) {
  const int column_bits = log2_floor(row_bytes / kLdsVectorBytes);
  const auto bit_name = [&](int bit) {
    return bit < column_bits ? fmt::format("c{}", bit) : fmt::format("r{}", bit - column_bits);
  };
  std::string text;
  for (int n = 0; n < swizzle.bits(); ++n) {
    const int target = swizzle.base() + n;
    text += fmt::format("{}{}^={}", n == 0 ? "" : ", ", bit_name(target), bit_name(target + swizzle.shift()));
  }
  return text;
}

std::optional<Swizzle> usual_swizzle(LdsKernel kernel, bool transpose, std::int64_t M) {
  const Swizzle wide(3, 0, 4), narrow(3, 0, 3);
  switch (kernel) {
    case LdsKernel::prefill:
      if (transpose && M == 32) return wide;
      return std::nullopt;
    case LdsKernel::latent_prefill_fp8:
      if (M == 32) return wide;
      return std::nullopt;
    case LdsKernel::decode:
      if (!transpose) return std::nullopt;
      return M == 32 ? wide : narrow;
    case LdsKernel::latent_decode:
      return M == 32 ? wide : narrow;
    case LdsKernel::streaming_decode:
      if (transpose) return Swizzle(2, 0, 2);
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace kvscope
