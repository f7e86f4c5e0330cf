// The XOR of LDS vectors: which vectors it exchanges, and which kernels use which.
//
//   vector index x of 16 bytes:   ... r2 r1 r0 | c1 c0        64-byte rows: 4 vectors a row
//                                 ... r1 r0 | c2 c1 c0        128-byte rows: 8
//   (bits, base, shift): bit base + n is XORed with bit base + n + shift, for n < bits; period 2^(bits + base + shift)
//
// The unit is the 16-byte vector everywhere, for the writer and the reader; on byte addresses the swizzle is
// (bits, base + 4, shift). With 64-byte rows the three-bit swizzles also exchange adjacent rows: an element may change
// its row, not only its column. Example: (3,0,4): 16 -> 17, 64 -> 68, 127 -> 120; 64-byte rows: c0^=r2, c1^=r3, r0^=r4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/layout/swizzle.h"

namespace kvscope {

// Vector v of a region whose first vector is a multiple of the swizzle's period; v itself without a swizzle.
[[nodiscard]] std::int64_t swizzled_vector(const std::optional<Swizzle>& swizzle, std::int64_t vector);
// The same on bytes: the offset inside a vector is unchanged.
[[nodiscard]] std::int64_t swizzled_byte(const std::optional<Swizzle>& swizzle, std::int64_t byte);

// What it does to a row and a column of vectors, lowest bit first; `row_bytes` 64 or 128, shift > 0.
// Example: (3,0,3), 64 -> "c0^=r1, c1^=r2, r0^=r3".
[[nodiscard]] std::string swizzle_effect(const Swizzle& swizzle, std::int64_t row_bytes);

enum class LdsKernel : std::uint8_t {
  prefill,
  latent_prefill_fp8,
  decode,
  latent_decode,     // V reads K's image, so it has K's swizzle
  streaming_decode,  // another struct of the same source; its swizzle is listed, its copies are not modeled
};

// The swizzle the kernels give K (transpose) or V of MMAs with M rows. None: no swizzle.
[[nodiscard]] std::optional<Swizzle> usual_swizzle(LdsKernel kernel, bool transpose, std::int64_t M);

}  // namespace kvscope
