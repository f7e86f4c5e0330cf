#include "core/tma/tma_tile.h"

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/tma/detail/tma_tile_rules.h"
#include "core/tma/tile_map.h"
#include "core/tma/tile_sizes.h"

namespace kvscope {

// --- makers ----------------------------------------------------------------------------------------------------------

TmaTile make_tma_tile(const TmaRows& rows, const TileOptions& options) {
  (void)tma_data_type(rows.dtype, rows.object);  // throws for a type no map can carry
  const std::int64_t granularity = swizzle_granularity(rows.dtype, options.mode);
  const std::int64_t BN = options.BN;
  const std::int64_t BK = options.BK.value_or(padded_depth(rows.dtype, options.mode, rows.depth));
  const std::int64_t n = options.fold_chunks;
  require_sizes(rows.object,
                {{"BN", BN}, {"BK", BK}, {"fold_chunks", n}, {"heads", rows.heads}, {"depth", rows.depth}});
  require_32_bits(rows.object, "rows", rows.rows);
  const std::int64_t row = rows.heads * rows.depth;

  TmaTile tile;
  tile.base = rows.base;
  tile.dtype = rows.dtype;
  tile.swizzle = options.mode;
  tile.heads = rows.heads;
  tile.columns = BK;
  tile.tile_shape = {BN, 1, round_up(BK, granularity)};
  if (n == 1) {
    tile.kind = TmaKind::plain;
    tile.dims = {rows.rows, rows.heads, rows.depth};
    tile.strides = {row, rows.depth, 1};
    tile.box = {BN, 1, granularity};
    tile.desc_shape = {BN, 1, granularity};
  } else if (!options.row_major) {
    tile.kind = TmaKind::fold_outer;
    tile.dims = {rows.heads, rows.depth / granularity, rows.rows, granularity};
    tile.strides = {rows.depth, granularity, row, 1};
    tile.box = {1, n, BN, granularity};
    tile.desc_shape = {BN, 1, n * granularity};
  } else {
    tile.kind = TmaKind::fold_inner;
    tile.dims = {rows.heads, rows.rows / 8, rows.depth / granularity, 8, granularity};
    tile.strides = {rows.depth, 8 * row, granularity, row, 1};
    tile.box = {1, BN / 8, n, 8, granularity};
    tile.desc_shape = {BN, 1, n * granularity};
  }

  TmaTileRules rules(rows.object);
  rules.require_whole_granules(BK, granularity);
  if (n > 1) {
    rules.require(n * granularity == BK, "fold_chunks",
                  fmt::format("{} chunks of {} columns are {}, not the tile's {}: fold all of them or none", n,
                              granularity, n * granularity, BK));
    rules.require(rows.depth % granularity == 0, "depth",
                  fmt::format("{} columns of a head are not whole chunks of {}: do not fold", rows.depth, granularity));
    rules.require(!options.row_major || BN % 8 == 0, "BN",
                  fmt::format("{} rows are not whole groups of 8: use {}", BN, round_up(BN, 8)));
  }
  rules.require(BK <= granularity || tile.box_bytes() % 128 == 0, "box",
                fmt::format("{} B are not a multiple of 128 B, so the next box would begin unaligned: use more rows",
                            tile.box_bytes()));
  rules.throw_if_broken(tile);
  return tile;
}

TmaTile make_matrix_tma_tile(const TmaRows& rows, std::int64_t tile_m, std::int64_t tile_n, SwizzleMode mode,
                             bool is_k_major) {
  (void)tma_data_type(rows.dtype, rows.object);  // throws for a type no map can carry
  require_sizes(rows.object, {{"tile_m", tile_m}, {"tile_n", tile_n}, {"heads", rows.heads}, {"depth", rows.depth}});
  require_32_bits(rows.object, "rows", rows.rows);
  const std::int64_t granularity = swizzle_granularity(rows.dtype, mode);
  const std::int64_t row = rows.heads * rows.depth;
  const std::int64_t box_rows = is_k_major || tile_n == granularity ? tile_m : 8;

  TmaTile tile;
  tile.kind = TmaKind::matrix;
  tile.base = rows.base;
  tile.dtype = rows.dtype;
  tile.swizzle = mode;
  tile.heads = rows.heads;
  tile.columns = tile_n;
  tile.dims = {rows.rows, row};
  tile.strides = {row, 1};
  tile.box = {box_rows, granularity};
  tile.tile_shape = {tile_m, tile_n};
  tile.desc_shape = tile.box;

  TmaTileRules rules(rows.object);
  rules.require(is_k_major || mode == SwizzleMode::b128, "swizzle",
                fmt::format("{} with an MN-major tile: only the 128B swizzle is defined there", name(mode)));
  rules.require(
      tile_n % granularity == 0, "tile_n",
      fmt::format("{} columns are not whole boxes of {}: use {}", tile_n, granularity, round_up(tile_n, granularity)));
  rules.require(tile_m % box_rows == 0, "tile_m",
                fmt::format("{} rows are not whole boxes of {}: use {}", tile_m, box_rows, round_up(tile_m, box_rows)));
  rules.require(box_rows * granularity >= tile_m * tile_n || tile.box_bytes() % 128 == 0, "box",
                fmt::format("{} B are not a multiple of 128 B, so the next box would begin unaligned: use more rows",
                            tile.box_bytes()));
  rules.throw_if_broken(tile);
  return tile;
}

TmaTile make_paged_tma_tile(std::string_view object, const AnyView<4>& blocks, const TileOptions& options) {
  (void)tma_data_type(blocks.dtype, object);  // throws for a type no map can carry
  const std::int64_t page = blocks.dim(1);
  const std::int64_t BN = options.BN;
  const std::int64_t BK = options.BK.value_or(padded_depth(blocks.dtype, options.mode, blocks.dim(3)));
  require_sizes(object,
                {{"page_size", page}, {"BN", BN}, {"BK", BK}, {"heads", blocks.dim(2)}, {"depth", blocks.dim(3)}});
  require_32_bits(object, "blocks", blocks.dim(0));

  TmaTile tile;
  tile.kind = TmaKind::page;
  tile.base = blocks.data;
  tile.dtype = blocks.dtype;
  tile.swizzle = options.mode;
  tile.heads = blocks.dim(2);
  tile.columns = BK;
  tile.dims = {blocks.dim(0), page, blocks.dim(2), blocks.dim(3)};
  tile.strides = {blocks.stride(0), blocks.stride(1), blocks.stride(2), 1};
  tile.box = {1, BN, 1, BK};
  tile.tile_shape = {1, BN, 1, BK};
  tile.desc_shape = {1, BN, 1, BK};

  TmaTileRules rules(object);
  rules.require(page % BN == 0, "BN",
                fmt::format("{} rows do not divide a page of {}: use a divisor of {}", BN, page, page));
  rules.require(options.fold_chunks == 1, "fold_chunks", "a tile with its own block coordinate is not folded: use 1");
  rules.throw_if_broken(tile);
  return tile;
}

TmaTile make_ragged_tma_tile(const TmaRows& rows, const TileOptions& options) {
  (void)tma_data_type(rows.dtype, rows.object);  // throws for a type no map can carry
  const std::int64_t granularity = swizzle_granularity(rows.dtype, options.mode);
  const std::int64_t BM = options.BN;
  const std::int64_t BK = options.BK.value_or(padded_depth(rows.dtype, options.mode, rows.depth));
  require_sizes(rows.object, {{"BN", BM}, {"BK", BK}, {"heads", rows.heads}, {"depth", rows.depth}});
  require_32_bits(rows.object, "rows", rows.rows);
  const std::int64_t lines = checked_mul(rows.heads, rows.rows + 1, "ragged rows");
  require_32_bits(rows.object, "rows of single heads", lines);
  const std::int64_t row = rows.heads * rows.depth;

  TmaTile tile;
  tile.kind = TmaKind::ragged;
  tile.base = rows.base;
  tile.base_offset = -BM * row;  // so that the box's first BM - n rows fall below coordinate BM of the second axis
  tile.dtype = rows.dtype;
  tile.swizzle = options.mode;
  tile.heads = rows.heads;
  tile.columns = BK;
  tile.dims = {lines, BM, rows.depth};
  tile.strides = {rows.depth, row, 1};
  tile.box = {1, BM, granularity};
  tile.tile_shape = {1, BM, round_up(BK, granularity)};
  tile.desc_shape = {1, BM, granularity};

  TmaTileRules rules(rows.object);
  rules.require_whole_granules(BK, granularity);
  rules.require(options.fold_chunks == 1, "fold_chunks", "a ragged tile is not folded: use 1");
  rules.throw_if_broken(tile);
  return tile;
}

namespace {

// The map of both kinds of gather: whole rows of tile_stride columns; one copy brings `box` columns of four rows.
TmaTile gather4_map(const TmaRows& rows, const Gather4Options& options) {
  const DType dtype = options.tma_dtype.value_or(rows.dtype);
  (void)tma_data_type(dtype, rows.object);  // throws for a type no map can carry
  require_sizes(rows.object, {{"tile_width", options.tile_width},
                              {"tile_height", options.tile_height},
                              {"heads", rows.heads},
                              {"depth", rows.depth}});
  require_32_bits(rows.object, "rows", rows.rows);
  const std::int64_t stride = options.tile_stride.value_or(options.tile_width);
  const std::int64_t box = gather4_box_width(dtype, options.tile_width, options.mode);

  TmaTile tile;
  tile.kind = TmaKind::gather4;
  tile.base = rows.base;
  tile.dtype = dtype;
  tile.swizzle = options.mode;
  tile.l2 = options.l2;
  tile.columns = options.tile_width;
  tile.dims = {rows.rows, stride};
  tile.strides = {stride, 1};
  tile.box = {1, box};
  tile.tile_shape = {options.tile_height, box};
  tile.desc_shape = {1, box};
  return tile;
}

void require_whole_gathers(TmaTileRules& rules, std::int64_t tile_height) {
  rules.require(tile_height % 4 == 0, "tile_height",
                fmt::format("{} rows are not whole gathers of 4: use {}", tile_height, round_up(tile_height, 4)));
}

}  // namespace

TmaTile make_gather4_tma_tile(const TmaRows& rows, const Gather4Options& options) {
  const TmaTile tile = gather4_map(rows, options);
  const std::int64_t width = tile.columns, stride = tile.strides[0], box = tile.box[1];
  const std::int64_t row_bytes = rows.heads * rows.depth * size_of(rows.dtype);

  TmaTileRules rules(rows.object);
  require_whole_gathers(rules, options.tile_height);
  rules.require(stride >= width, "tile_stride",
                fmt::format("{} is less than the tile's {} columns: give the elements of a whole row", stride, width));
  rules.require(
      stride * size_of(tile.dtype) == row_bytes, "tile_stride",
      fmt::format("{} x {} = {} B, but a row of the cache is {} B: with another stride, row numbers would not "
                  "name cache rows",
                  stride, name(tile.dtype), stride * size_of(tile.dtype), row_bytes));
  rules.require(
      width % box == 0, "tile_width",
      fmt::format("{} columns are not whole boxes of {}, so more bytes would arrive than the barrier expects: "
                  "use {}",
                  width, box, round_up(width, box)));
  rules.throw_if_broken(tile);
  return tile;
}

namespace {

// Rope rows are bytes: `padded_depth` fp8 of content, then bf16 values; offsets are applied as elements
// of the cache type.
void require_rope_rows(TmaTileRules& rules, const TmaRows& rows, std::int64_t content) {
  rules.require(size_of(rows.dtype) == 1, "dtype",
                fmt::format("{} elements are {} B: rope-aware rows need a cache of 1-byte elements", name(rows.dtype),
                            size_of(rows.dtype)));
  rules.require(
      content >= 0 && content < rows.depth && (rows.depth - content) % 2 == 0, "padded_depth",
      fmt::format("{} B of content in a row of {} B leave no whole bf16 values: give [0, {}) with an even rest",
                  content, rows.depth, rows.depth));
}

}  // namespace

TmaTile make_rope_tma_tile(const TmaRows& rows, const RopeOptions& options) {
  require_sizes(rows.object, {{"BN", options.BN}, {"heads", rows.heads}, {"depth", rows.depth}});
  require_32_bits(rows.object, "rows", rows.rows);
  const std::int64_t granularity = swizzle_granularity(DType::bf16, options.mode);
  const std::int64_t content = options.padded_depth;
  const std::int64_t rope = (rows.depth - content) / 2;
  const std::int64_t BK = options.BK.value_or(rope);
  const std::int64_t width = (content + 2 * BK) / 2;  // W: bf16 units of a row of one head

  TmaTile tile;
  tile.kind = TmaKind::rope;
  tile.base = rows.base;
  tile.base_offset = content / 2;
  tile.dtype = DType::bf16;
  tile.swizzle = options.mode;
  tile.heads = rows.heads;
  tile.columns = BK;
  tile.depth_end = BK;
  tile.dims = {rows.rows, rows.heads, width};
  tile.strides = {rows.heads * width, width, 1};
  tile.box = {options.BN, 1, granularity};
  tile.tile_shape = {options.BN, 1, BK};
  tile.desc_shape = {options.BN, 1, granularity};

  TmaTileRules rules(rows.object);
  require_rope_rows(rules, rows, content);
  rules.require(content % 16 == 0, "padded_depth",
                fmt::format("{} B of content are not whole chunks of 16 B: use {}", content, round_up(content, 16)));
  rules.require_whole_granules(BK, granularity);
  rules.require(content + 2 * BK == rows.depth, "BK",
                fmt::format("{} B of content and {} rope values of 2 B are {} B, but a row of a head is {} B: use {}",
                            content, BK, content + 2 * BK, rows.depth, rope));
  rules.require(BK <= granularity || tile.box_bytes() % 128 == 0, "box",
                fmt::format("{} B are not a multiple of 128 B, so the next box would begin unaligned: use more rows",
                            tile.box_bytes()));
  rules.throw_if_broken(tile);
  return tile;
}

TmaTile make_rope_gather4_tma_tile(const TmaRows& rows, const RopeGather4Options& options) {
  TmaTile tile = gather4_map(rows, {.tile_height = options.tile_height,
                                    .tile_width = options.tile_width,
                                    .mode = options.mode,
                                    .tma_dtype = DType::bf16,
                                    .l2 = options.l2});
  const std::int64_t content = options.padded_depth;
  const std::int64_t width = options.tile_width, rope = (rows.depth - content) / 2, box = tile.box[1];
  tile.base_offset = content / 2;
  tile.columns = rope;  // the columns that loads may use; the map's width is the whole row
  tile.depth_end = rope;

  TmaTileRules rules(rows.object);
  require_rope_rows(rules, rows, content);
  rules.require(content % 16 == 0, "padded_depth",
                fmt::format("{} B of content are not whole chunks of 16 B: use {}", content, round_up(content, 16)));
  rules.require(
      rows.heads == 1, "heads",
      fmt::format("{} heads: a gathered rope row is the row of one head, so the cache must have 1", rows.heads));
  rules.require(
      2 * width == rows.depth, "tile_width",
      fmt::format("{} bf16 are {} B, but the whole row is {} B: use {}", width, 2 * width, rows.depth, rows.depth / 2));
  rules.require(options.mode != SwizzleMode::none, "swizzle",
                "without a swizzle the box is the whole row and runs into the next row's content: use 128B swizzle");
  rules.require(
      options.mode == SwizzleMode::none || rope % box == 0, "padded_depth",
      fmt::format("{} rope values are not whole boxes of {}, so the last box would run into the next row", rope, box));
  require_whole_gathers(rules, options.tile_height);
  rules.throw_if_broken(tile);
  return tile;
}

TmaTile make_scale_lines_tma_tile(std::string_view object, std::byte* base, DType dtype, std::int64_t lines,
                                  std::int64_t length, std::int64_t line_stride, std::int64_t BMN) {
  (void)tma_data_type(dtype, object);  // throws for a type no map can carry
  require_sizes(object, {{"lines", lines}, {"line length", length}, {"BMN", BMN}});
  require_32_bits(object, "scales in a line", length);
  require_32_bits(object, "lines", lines);
  TmaTile tile;
  tile.kind = TmaKind::scales;
  tile.base = base;
  tile.dtype = dtype;
  tile.columns = BMN;
  tile.dims = {lines, length};
  tile.strides = {line_stride, 1};
  tile.box = {1, BMN};
  tile.tile_shape = {1, BMN};
  tile.desc_shape = {1, BMN};

  TmaTileRules rules(object);
  rules.throw_if_broken(tile);
  return tile;
}

TmaTile make_scale_tma_tile(std::string_view object, std::byte* base, DType dtype, std::int64_t total,
                            std::int64_t BMN) {
  TmaTileRules rules(object);
  rules.require(total % 4 == 0, "scales",
                fmt::format("{} scales are not a multiple of 4: pad them to {}", total, round_up(total, 4)));
  rules.throw_if_broken();
  return make_scale_lines_tma_tile(object, base, dtype, 1, total, total, BMN);
}

std::int64_t index_scale_align(DType dtype) {
  return 16 / size_of(dtype);
}

TmaTile make_index_scale_tma_tile(std::string_view object, std::byte* base, DType dtype, std::int64_t rows,
                                  std::int64_t tile) {
  require_sizes(object, {{"TILE", tile}});
  const std::int64_t align = index_scale_align(dtype);
  return make_scale_lines_tma_tile(object, base, dtype, 1, rows, round_up(rows, align), tile + align);
}

TmaTile make_paged_index_scale_tma_tile(std::string_view object, const AnyView<4>& scales, std::int64_t tile) {
  require_sizes(object, {{"TILE", tile}});
  const std::int64_t align = index_scale_align(scales.dtype);
  const std::int64_t page = scales.dim(1);
  const std::int64_t per_row = scales.dim(2) * scales.dim(3);
  TmaTileRules rules(object);
  rules.require(per_row == 1, "scales", fmt::format("{} scales a row: an index-scale window needs exactly 1", per_row));
  rules.require(page % tile == 0, "TILE", fmt::format("{} rows do not divide a page of {}: use a divisor", tile, page));
  rules.require(scales.stride(0) / per_row % align == 0, "page stride",
                fmt::format("{} scales from block to block are not whole chunks of {}: use {}",
                            scales.stride(0) / per_row, align, round_up(scales.stride(0) / per_row, align)));
  rules.throw_if_broken();
  return make_scale_lines_tma_tile(object, scales.data, scales.dtype, scales.dim(0), page, scales.stride(0) / per_row,
                                   tile + align);
}

}  // namespace kvscope
