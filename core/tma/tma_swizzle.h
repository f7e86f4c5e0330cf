// The swizzle of a tensor copy, on absolute shared addresses: the atom of its span that each byte moves to.
//
//   address  ... | line (128 B) | offset in the span            span  32, 64 or 128 B: the longest row of a box
//                |  l l l       | a a a  r r r r                atom  16, 32 or 64 B: moved as one piece
//                                 |^
//   line % n, n = span / atom ----XOR---> atom number
//
//   mode            span  atom  n   period   CuTe               chunk 0 of rows 0, 1, 2, 3 of a 128-byte pitch
//   32B               32    16  2    256 B   Swizzle<1,4,3>
//   64B               64    16  4    512 B   Swizzle<2,4,3>
//   128B             128    16  8   1024 B   Swizzle<3,4,3>     0 144 288 432
//   ATOM_32B         128    32  4    512 B   Swizzle<2,5,2>     0 160 320 480
//   ATOM_64B         128    64  2    256 B   Swizzle<1,6,1>     0 192 256 448
//   FLIP_8B        ATOM_32B, and in odd lines the 8-byte halves of every 16-byte chunk are exchanged
//
// The swizzle depends on the address, not on the place in the tile: a tile that begins p lines into the period has the
// pattern rotated by p lines. Every mode is its own inverse. Source: PTX ISA, "Swizzling modes"; the odd lines of
// FLIP_8B: published measurements.
#pragma once

#include <cstdint>

#include "core/tma/tensor_map.h"

namespace kvscope {

// [bytes] The pitch of rows of a swizzled box; 16 (a chunk) for no swizzle.
[[nodiscard]] constexpr std::int64_t swizzle_span(TmaSwizzle mode) {
  switch (mode) {
    case TmaSwizzle::none:
      return 16;
    case TmaSwizzle::b32:
      return 32;
    case TmaSwizzle::b64:
      return 64;
    default:
      return 128;
  }
}

// [bytes]
[[nodiscard]] constexpr std::int64_t swizzle_atom(TmaSwizzle mode) {
  switch (mode) {
    case TmaSwizzle::b128_atom32:
    case TmaSwizzle::b128_atom32_flip8:
      return 32;
    case TmaSwizzle::b128_atom64:
      return 64;
    default:
      return 16;
  }
}

// [bytes] after which the pattern repeats: 128 * n. A destination at a multiple of it has phase 0, as matrix
// descriptors with base offset 0 require. 128 for no swizzle: the minimum alignment of a destination.
[[nodiscard]] constexpr std::int64_t swizzle_period(TmaSwizzle mode) {
  return 128 * (swizzle_span(mode) / swizzle_atom(mode));
}

// The address after the swizzle of the byte at `address` before it, and vice versa. address >= 0.
// Example: 128B mode: 128 -> 144, 144 -> 128, 1016 -> 904.
[[nodiscard]] constexpr std::int64_t swizzle_address(TmaSwizzle mode, std::int64_t address) {
  if (mode == TmaSwizzle::none) return address;
  const std::int64_t line = address / 128;
  const std::int64_t span = swizzle_span(mode), atom = swizzle_atom(mode);
  const std::int64_t offset = address % span;
  const std::int64_t swizzled = address - offset + (offset / atom ^ line % (span / atom)) * atom + offset % atom;
  return mode == TmaSwizzle::b128_atom32_flip8 ? swizzled ^ (line % 2) * 8 : swizzled;
}

}  // namespace kvscope
