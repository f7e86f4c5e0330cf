// ldmatrix: loads 8x8 matrices of 16-bit values from shared memory into registers, a row of 16 bytes per address.
//
//   lane 8m + r gives the address of row r of matrix m; register m of lane (g, t) = (lane / 4, lane % 4) receives
//
//     plain    word t of row g:                bytes 4t .. 4t + 3
//     .trans   halfword g of rows 2t, 2t + 1:  bytes 2g, 2g + 1 of each, row 2t in the low half
//
// .x1, .x2 and .x4 take 1, 2 and 4 matrices; the addresses of lanes past them are ignored. Example: rows 16 bytes
// apart, byte i = i % 251: lane 5, register 1 is 0x97969594, with .trans 0xb3b2a3a2. Source: PTX ISA, ldmatrix.
//
// Uses: the row of the tile that each lane points at, and what the lane's four registers then hold. l = lane, SW = 16
// bytes of elements; offsets from (key, depth) of the piece that is read.
//
//   use                            key                    depth               registers
//   K as B         16 keys, 32 B   l % 8 + 8 (l / 16)     SW (l / 8 % 2)      r0 r1: B of keys 0..7; r2 r3: of 8..15
//   K as A         16 keys, 32 B   l % 16                 SW (l / 16)         r0..r3: A (the mirrored orientation)
//   V as B, .trans 16 keys, 32 B   l % 16                 SW (l / 16)         r0 r1: B of depths 0..7; r2 r3: of 8..15
//   V as A, .trans 16 keys, 32 B   l % 8 + 8 (l / 16)     SW (l / 8 % 2)      r0..r3: A with depth as the row
//   V fp8, .trans  32 keys, 16 B   l                      0                   see fp8_v.h
//
// depth is a multiple of 32 bytes (V fp8: 16), so that a row is always inside one 16-byte vector.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/fragment/fragment_map.h"
#include "core/smem/shared_image.h"

namespace kvscope {

struct LdmatrixShape {
  int matrices = 4;  // 1, 2 or 4
  bool trans = false;
};

// The source of one byte of a register.
struct LdmatrixSource {
  int matrix = 0;
  int row = 0;   // the address of lane 8 * matrix + row
  int byte = 0;  // of that row
  friend bool operator==(const LdmatrixSource&, const LdmatrixSource&) = default;
};

// IndexError: a lane, register or byte out of range.
[[nodiscard]] LdmatrixSource ldmatrix_source(const LdmatrixShape& shape, int lane, int reg, int byte);

using LdmatrixRegisters = std::vector<std::array<std::uint32_t, 4>>;  // [lane]; registers past `matrices` are 0

// GeometryError, all faults at once: not 32 addresses, an address that is not a multiple of 16 or outside the image.
[[nodiscard]] LdmatrixRegisters ldmatrix(const SharedImage& image, std::span<const std::int64_t> row_addresses,
                                         const LdmatrixShape& shape);

enum class LdmatrixUse : std::uint8_t { k_as_b, k_as_a, v_as_b, v_as_a, v_fp8 };

// .x4 in every use; .trans for V.
[[nodiscard]] LdmatrixShape ldmatrix_shape(LdmatrixUse use);

// The row that `lane` points at, from the first of the piece: row is a key, column a depth [elements].
// GeometryError: an element size the use does not have (K: 1 or 2 bytes; V: 2; V fp8: 1).
[[nodiscard]] TilePlace ldmatrix_row(LdmatrixUse use, int element_bytes, int lane);

// The contents of the registers after the load: rows are keys, columns depths of the piece.
[[nodiscard]] FragmentMap ldmatrix_map(LdmatrixUse use, int element_bytes);

}  // namespace kvscope
