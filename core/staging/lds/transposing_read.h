// LDS reads that transpose: every lane addresses 8 bytes, and groups of 16 consecutive lanes exchange them.
//
//   tr16: 4 rows x 16 halfwords, row n from lanes 4n..4n+3      tr8: 8 rows x 16 bytes, row n from lanes 2n, 2n+1
//
//     lane 0   1   2   3            lane j then holds             lane 0          1
//     |0123|4567|89ab|cdef| row 0   column j: 4 halfwords         |01234567|89abcdef| row 0
//     lane 4 ...            row 1   or 8 bytes, row 0 first       lane 2 ...          row 1
//
//   tr16: element n of lane j = halfword j % 4 of lane 4n + j / 4
//   tr8:  element n of lane j = byte c % 8 of lane 2n + c / 8; column c is j (natural) or j / 2 + 8 (j % 2)
//
// All 64 lanes must be active. Example: tr16: element 2 of lane 5 is halfword 1 of lane 9: row 2, column 5.
#pragma once

#include <array>
#include <cstddef>

#include "core/staging/lds/kv_buffer_config.h"

namespace kvscope {

using LanePieces = std::array<std::array<std::byte, 8>, 64>;  // [lane, byte]

// `supplied[lane]` are the 8 bytes at the lane's address.
[[nodiscard]] LanePieces tr16_read(const LanePieces& supplied);
[[nodiscard]] LanePieces tr8_read(const LanePieces& supplied, Tr8Order order = Tr8Order::natural);

// The column of a group's tile that lane j of 16 holds after a tr8 read. Example: interleaved: 3 -> 9.
[[nodiscard]] constexpr int tr8_column(int j, Tr8Order order) {
  return order == Tr8Order::natural ? j : j / 2 + 8 * (j % 2);
}

}  // namespace kvscope
