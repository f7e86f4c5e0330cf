// The small integer formulas that tiles, boxes and pages share. Sizes in elements or rows, never bytes,
// unless a line says so.
// Formulas of the swizzle alone are in core/layout/swizzle.h; the lookup table's width is in lookup_table.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/layout/swizzle.h"

namespace kvscope {

// `depth` rounded up to whole swizzle rows. Example: bf16, b128: 80 -> 128, 576 -> 576; fp8, b128: 576 -> 640.
[[nodiscard]] std::int64_t padded_depth(DType dtype, SwizzleMode mode, std::int64_t depth);

// A tile of `tile` rows over pages of `page` rows is copied in sub-tiles that stay inside one page.
//
//   page                rows      count
//   <= 0 (no pages)     tile      1
//   >= tile             tile      1
//   < tile              page      tile / page
//
// GeometryError: both for a tile of no rows; kv_num_sub_tiles alone when page < tile and page does not divide tile
// (a kernel would skip the remaining rows). Example: (192, 16) -> 16 rows, 12 sub-tiles; (128, 256) -> 128 rows, 1.
[[nodiscard]] std::int64_t kv_sub_tile_rows(std::int64_t tile, std::int64_t page);
[[nodiscard]] std::int64_t kv_num_sub_tiles(std::int64_t tile, std::int64_t page);

// Columns that one gather4 instruction fetches: the whole width without a swizzle, else one swizzle row.
// Example: bf16, 576 wide, b128 -> 64.
[[nodiscard]] std::int64_t gather4_box_width(DType dtype, std::int64_t tile_width, SwizzleMode mode);

// A shared-memory tile with its last extent rounded up to whole swizzle rows, and the box that fills it piece by piece:
// the box's last extent is one swizzle row, the others are those of the tile. Example: bf16, b128, {64,1,80} ->
// {64,1,128} and {64,1,64}: 2 boxes.
template <std::size_t Rank>
[[nodiscard]] std::array<std::int64_t, Rank> padded_shape(DType dtype, SwizzleMode mode,
                                                          std::array<std::int64_t, Rank> tile) {
  static_assert(Rank > 0);
  tile.back() = padded_depth(dtype, mode, tile.back());
  return tile;
}
template <std::size_t Rank>
[[nodiscard]] std::array<std::int64_t, Rank> ragged_shape(DType dtype, SwizzleMode mode,
                                                          std::array<std::int64_t, Rank> tile) {
  static_assert(Rank > 0);
  tile.back() = swizzle_granularity(dtype, mode);
  return tile;
}

// How many column chunks one copy can fold: BK / granularity when one copy can bring all chunks of a tile, else 1.
struct FoldQuestion {
  DType dtype = DType::bf16;
  SwizzleMode mode = SwizzleMode::b128;
  std::int64_t BK = 0;         // tile depth
  std::int64_t head_size = 0;  // must be whole tiles deep
  std::int64_t box_rows = 0;   // rows of one copy
  std::int64_t smem_BN = 0;    // rows between two chunks in shared memory
  std::int64_t page_size = 0;  // 0: no pages
  bool row_major = false;      // chunks inside 8-row groups instead of outside the rows
};
// Example: bf16, b128, BK 128, head_size 128, 64 rows of 64 -> 2; with 32 of 64 rows -> 1, but row_major -> 2.
[[nodiscard]] std::int64_t kv_tma_fold_chunks(const FoldQuestion& q);

}  // namespace kvscope
