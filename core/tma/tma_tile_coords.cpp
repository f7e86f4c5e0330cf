// Names, sizes and coordinates of tensor maps (tma_tile.h); the makers are in tma_tile.cpp.
#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

namespace {

std::int64_t depth_in_granules(const TmaTile& tile, DimIdx depth) {
  const std::int64_t granularity = tile.box.fastest();
  if (depth.value % granularity != 0) {
    throw GeometryError(
        fmt::format("coordinates of a {} tile: depth {} is not a multiple of {}, the columns of one "
                    "chunk: use {}",
                    name(tile.kind), depth.value, granularity, floor_div(depth.value, granularity) * granularity));
  }
  return depth.value / granularity;
}

std::int32_t coordinate(std::int64_t value) {
  return narrow<std::int32_t>(value, "TMA coordinate");
}

[[noreturn]] void throw_wrong_kind(const TmaTile& tile, const char* asked) {
  throw GeometryError(fmt::format("{} was asked of a {} tile: use the function for that kind", asked, name(tile.kind)));
}

}  // namespace

std::string_view name(TmaKind kind) {
  static constexpr std::array<std::string_view, 9> kNames = {"plain",   "fold-outer", "fold-inner", "page",  "ragged",
                                                             "gather4", "rope",       "matrix",     "scales"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::int64_t TmaShape::count() const {
  std::int64_t product = 1;
  for (int axis = 0; axis < rank; ++axis) product = checked_mul(product, (*this)[axis], "box size");
  return product;
}

std::int64_t TmaTile::box_bytes() const {
  return box.count() * size_of(dtype);
}

std::int64_t TmaTile::column_chunks() const {
  const bool folded = kind == TmaKind::fold_outer || kind == TmaKind::fold_inner;
  return folded ? 1 : ceil_div(columns, box.fastest());
}

// --- coordinates -----------------------------------------------------------------------------------------------------

TmaCoord tile_coords(const TmaTile& tile, std::int64_t row, HeadIdx head, DimIdx depth) {
  switch (tile.kind) {
    case TmaKind::rope:
      if (depth.value >= tile.depth_end) {
        throw GeometryError(
            fmt::format("coordinates of a rope tile: depth {} is outside [0, {}): the columns after the rope values "
                        "are the next row's content",
                        depth.value, tile.depth_end));
      }
      [[fallthrough]];
    case TmaKind::plain:
      return {coordinate(depth.value), coordinate(head.value), coordinate(row)};
    case TmaKind::fold_outer:
      return {0, coordinate(row), coordinate(depth_in_granules(tile, depth)), coordinate(head.value)};
    case TmaKind::fold_inner:
      if (row % 8 != 0) {
        throw GeometryError(
            fmt::format("coordinates of a fold-inner tile: row {} is not a multiple of 8, the rows of "
                        "one group: use {}",
                        row, floor_div(row, 8) * 8));
      }
      return {0, 0, coordinate(depth_in_granules(tile, depth)), coordinate(row / 8), coordinate(head.value)};
    case TmaKind::matrix: {
      const std::int64_t head_size = tile.dims[1] / tile.heads;
      return {coordinate(head.value * head_size + depth.value), coordinate(row)};
    }
    default:
      throw_wrong_kind(tile, "tile_coords");
  }
}

TmaCoord page_coords(const TmaTile& tile, PageCoords token, HeadIdx head, DimIdx depth) {
  if (tile.kind != TmaKind::page) throw_wrong_kind(tile, "page_coords");
  return {coordinate(depth.value), coordinate(head.value), token.row, token.block};
}

TmaCoord ragged_coords(const TmaTile& tile, std::int64_t row, std::int64_t n, HeadIdx head, DimIdx depth) {
  if (tile.kind != TmaKind::ragged) throw_wrong_kind(tile, "ragged_coords");
  const std::int64_t BM = tile.box[1];
  if (n < 0 || n > BM) {
    throw GeometryError(
        fmt::format("coordinates of a ragged tile: {} rows are outside [0, {}], the rows of the box", n, BM));
  }
  return {coordinate(depth.value), coordinate(BM - n), coordinate((row + n) * tile.heads + head.value)};
}

TmaCoord gather4_coords(const TmaTile& tile, const std::array<std::int32_t, 4>& rows, std::int64_t group) {
  if (tile.kind != TmaKind::gather4) throw_wrong_kind(tile, "gather4_coords");
  check_index("gather4 column group", group, tile.column_chunks(), "a tile has tile_width / box width groups");
  return {coordinate(group * tile.box.fastest()), rows[0], rows[1], rows[2], rows[3]};
}

std::int64_t gather4_smem_offset(const TmaTile& tile, std::int64_t group, std::int64_t four_rows) {
  if (tile.kind != TmaKind::gather4) throw_wrong_kind(tile, "gather4_smem_offset");
  const std::int64_t height = tile.tile_shape[0];
  check_index("gather4 column group", group, tile.column_chunks(), "a tile has tile_width / box width groups");
  check_index("gather4 row quad", four_rows, height / 4, "a tile has tile_height / 4 of them");
  return (group * height + four_rows * 4) * tile.box.fastest();
}

std::vector<MatrixBox> matrix_boxes(const TmaTile& tile) {
  if (tile.kind != TmaKind::matrix) throw_wrong_kind(tile, "matrix_boxes");
  const std::int64_t box_rows = tile.box[0];
  const std::int64_t granularity = tile.box[1];
  std::vector<MatrixBox> boxes;
  for (std::int64_t i = 0; i < tile.tile_shape[0] / box_rows; ++i) {
    for (std::int64_t j = 0; j < tile.columns / granularity; ++j) {
      boxes.push_back(
          {static_cast<std::int64_t>(boxes.size()) * box_rows * granularity, j * granularity, i * box_rows});
    }
  }
  return boxes;
}

}  // namespace kvscope
