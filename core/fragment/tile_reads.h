// Every read that an instruction makes of a tile of K or V in shared memory, as input for the swizzle solver
// (core/smem/swizzle_solver.h): which lanes read which row and byte, before any swizzle.
//
//   const TileRows tile{64, 64};                                                          bf16 K, 32 columns a row
//   solve_layout(tile, std::vector{ldmatrix_reads(LdmatrixUse::k_as_b, 2, tile)})         first swizzle: (2,4,3)
//
// Example: that tile has 4 pieces of 16 keys by 2 of 32 bytes: 8 accesses of 32 lanes.
#pragma once

#include "core/fragment/ldmatrix.h"
#include "core/fragment/mfma.h"
#include "core/smem/swizzle_solver.h"

namespace kvscope {

// GeometryError: rows or pitch that are not whole pieces, and an element size that the use does not have.
[[nodiscard]] AccessPattern ldmatrix_reads(LdmatrixUse use, int element_bytes, const TileRows& tile);

// K (or Q) by AMD's 128-bit reads, one for each pack of a fragment. GeometryError: rows or pitch that are not whole
// fragments. UnsupportedError: a target that is not AMD's.
[[nodiscard]] AccessPattern mfma_k_reads(Mfma mfma, SharedTarget target, const TileRows& tile);

}  // namespace kvscope
