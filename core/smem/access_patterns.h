// How threads read a tile of rows with ordinary loads, as patterns for the swizzle solver; the reads of matrix
// instructions are in core/fragment/tile_reads.h.
//
//   row        every lane reads `width` consecutive bytes of one row: the copy loop of a kernel
//   column     every lane reads the same `width` bytes of a different row: a reduction over columns, a transposition
//
// Each pattern contains one access for each place of the tile at which the instruction would be issued.
#pragma once

#include "core/smem/banks.h"
#include "core/smem/swizzle_solver.h"

namespace kvscope {

// GeometryError, all faults at once: rows or row bytes that are not whole accesses, a pitch below the row bytes. Only
// the row bytes are read. Example: 64 rows of 128 B, columns of 4 B: 2 * 32 accesses.
[[nodiscard]] AccessPattern row_pattern(SharedTarget target, int width, const TileRows& tile, std::int64_t row_bytes);
[[nodiscard]] AccessPattern column_pattern(SharedTarget target, int width, const TileRows& tile,
                                           std::int64_t row_bytes);

}  // namespace kvscope
