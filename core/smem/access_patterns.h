// How threads read a tile of rows by hand, as patterns that a layout is solved for; reads of matrix instructions are
// core/fragment/tile_reads.h's.
//
//   row        every lane reads `width` bytes, one after the other, of one row: what a copy by hand does
//   column     every lane reads the same `width` bytes of its own row: a reduction over columns, a transposition
//
// Each pattern holds every place of the tile that the instruction would be issued at.
#pragma once

#include "core/smem/banks.h"
#include "core/smem/swizzle_solver.h"

namespace kvscope {

// GeometryError, all faults at once: rows or row bytes that are not whole accesses, a pitch below the row bytes, which
// alone are read. Example: 64 rows of 128 B, columns of 4 B: 2 * 32 accesses.
[[nodiscard]] AccessPattern row_pattern(SharedTarget target, int width, const TileRows& tile, std::int64_t row_bytes);
[[nodiscard]] AccessPattern column_pattern(SharedTarget target, int width, const TileRows& tile,
                                           std::int64_t row_bytes);

}  // namespace kvscope
