#include "apps/labs/pool_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/base/report.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kPoolRowsShown = 12;

struct RowPlace {
  std::int64_t block = 0, page = 0, slot = 0;  // page: of the block, 0 .. k_or_v * layers - 1
  bool inside = false;
};

RowPlace place_of(const PoolShape& shape, std::int64_t row) {
  const std::int64_t pages = shape.k_or_v * shape.layers, from_start = row + shape.layer.value_or(0) * shape.page_size;
  if (from_start < 0 || from_start >= shape.blocks * pages * shape.page_size) return {};
  return {from_start / (pages * shape.page_size), from_start / shape.page_size % pages, from_start % shape.page_size,
          true};
}

std::string page_text(const PoolShape& shape, const RowPlace& place) {
  if (!shape.layer) {
    return place.page == 0
               ? fmt::format("block {}, K of this layer", place.block)
               : fmt::format("block {}, {} after K of this layer", place.block, counted(place.page, "page"));
  }
  return fmt::format("block {}, {} of layer {}", place.block, place.page < shape.layers ? "K" : "V",
                     place.page % shape.layers);
}

// The page of `row`; a second row of the same page is marked too.
PictureRow page_line(const PoolShape& shape, std::int64_t row, CellMark mark, std::optional<std::int64_t> second,
                     CellMark second_mark) {
  const RowPlace place = place_of(shape, row);
  if (!place.inside) return {"outside the pool", {{fmt::format("{}", row), mark}}};
  PictureRow line{page_text(shape, place), {}};
  const CellWindow window = window_around(place.slot, shape.page_size, kPoolRowsShown);
  for (std::int64_t slot = window.first; slot < window.last; ++slot) {
    const std::int64_t number = row - place.slot + slot;
    const CellMark here = number == row ? mark : second == number ? second_mark : CellMark::plain;
    line.cells.push_back({fmt::format("{}", number), here, fmt::format("slot {}", slot)});
  }
  return line;
}

}  // namespace

PictureGrid pool_grid(const PoolShape& shape, std::int64_t expected, std::optional<std::int64_t> wrong) {
  PictureGrid grid{"rows of the pool, counted from the first row of this layer's K", {}, {}};
  const RowPlace right = place_of(shape, expected);
  const RowPlace given = wrong ? place_of(shape, *wrong) : RowPlace{};
  const CellWindow shown = window_around(right.slot, shape.page_size, kPoolRowsShown);
  const bool one_line = wrong && given.inside && given.block == right.block && given.page == right.page &&
                        given.slot >= shown.first && given.slot < shown.last;
  grid.rows.push_back(page_line(shape, expected, CellMark::expected, one_line ? wrong : std::nullopt, CellMark::wrong));
  if (wrong && !one_line) grid.rows.push_back(page_line(shape, *wrong, CellMark::wrong, std::nullopt, CellMark::plain));
  return grid;
}

}  // namespace kvscope::labs
