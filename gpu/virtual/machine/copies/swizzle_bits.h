// A swizzle of shared memory as operations on address bits, for tensor copies and for the operands of wgmma.
//
//   address bit   10  9  8  7 | 6  5  4 | 3  2  1  0
//                 the 128-byte|  chunk  |  byte of
//                 line        |         |  the chunk
//
//   mode           bits read -> XORed into      mode             bits read -> XORed into
//   32B            7       -> 4                 128B_ATOM_32B    8, 7    -> 6, 5
//   64B            8, 7    -> 5, 4              128B_ATOM_64B    7       -> 6
//   128B           9, 8, 7 -> 6, 5, 4           FLIP_8B          as ATOM_32B, and 7 -> 3
//
// The bits that are read never change, so each mode is its own inverse. The swizzle applies to the absolute address,
// not to the offset in the tile. Example: 128B mode, address 1016 (line 7, chunk 7): 1016 ^ (7 << 4) = 904.
// Source: PTX ISA 8.7, "Swizzling Modes" under "Tensors". That FLIP_8B applies to odd lines is a published measurement.
#pragma once

#include <cstdint>

namespace kvscope::ptx {

struct SwizzleBits {
  std::uint64_t read = 0;    // mask of the line's bits that are used
  int down = 0;              // distance from them to the bits that change
  std::uint64_t halves = 0;  // mask of the bit that exchanges the 8-byte halves of a chunk
  std::int64_t span =
      16;  // [bytes] that stay together: the distance between rows of a box; one chunk without a swizzle

  [[nodiscard]] constexpr bool active() const { return read != 0; }
  // The value to XOR into every address of the 128-byte line that contains `address`.
  [[nodiscard]] constexpr std::uint64_t change(std::uint64_t address) const {
    return (address & read) >> down | (address & halves) >> 4;
  }
  [[nodiscard]] constexpr std::uint64_t apply(std::uint64_t address) const { return address ^ change(address); }
};

inline constexpr SwizzleBits kNoSwizzle{};
inline constexpr SwizzleBits kSwizzle32{0x080, 3, 0, 32};
inline constexpr SwizzleBits kSwizzle64{0x180, 3, 0, 64};
inline constexpr SwizzleBits kSwizzle128{0x380, 3, 0, 128};
inline constexpr SwizzleBits kSwizzle128Atom32{0x180, 2, 0, 128};
inline constexpr SwizzleBits kSwizzle128Atom32Flip8{0x180, 2, 0x080, 128};
inline constexpr SwizzleBits kSwizzle128Atom64{0x080, 1, 0, 128};

static_assert(kSwizzle128.apply(1016) == 904);

}  // namespace kvscope::ptx
