#include "core/tma/tile_sizes.h"

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope {

std::int64_t padded_depth(DType dtype, SwizzleMode mode, std::int64_t depth) {
  if (depth < 0) throw GeometryError(fmt::format("depth {} is negative: give the elements of a head", depth));
  return round_up(depth, swizzle_granularity(dtype, mode));
}

std::int64_t kv_sub_tile_rows(std::int64_t tile, std::int64_t page) {
  if (tile <= 0) throw GeometryError(fmt::format("a tile of {} rows is empty: give 1 or more", tile));
  return page <= 0 || page >= tile ? tile : page;
}

std::int64_t kv_num_sub_tiles(std::int64_t tile, std::int64_t page) {
  const std::int64_t rows = kv_sub_tile_rows(tile, page);
  if (tile % rows != 0) {
    throw GeometryError(fmt::format("a tile of {} rows is not a whole number of pages of {} rows: use {} or {} rows",
                                    tile, page, tile / rows * rows, round_up(tile, rows)));
  }
  return tile / rows;
}

std::int64_t gather4_box_width(DType dtype, std::int64_t tile_width, SwizzleMode mode) {
  if (tile_width <= 0) throw GeometryError(fmt::format("gather4 tile width {} is not positive", tile_width));
  return mode == SwizzleMode::none ? tile_width : swizzle_granularity(dtype, mode);
}

std::int64_t kv_tma_fold_chunks(const FoldQuestion& q) {
  const std::int64_t granularity = swizzle_granularity(q.dtype, q.mode);
  const std::int64_t chunks = q.BK / granularity;
  const bool base_ok = q.BK > 0 && q.BK % granularity == 0 && chunks >= 2 && q.head_size % q.BK == 0;
  const bool geometry_ok =
      q.row_major ? q.box_rows % 8 == 0 : q.box_rows == q.smem_BN && (q.page_size == 0 || q.page_size >= q.box_rows);
  return base_ok && geometry_ok ? chunks : 1;
}

}  // namespace kvscope
