// The layout of the blocks of the pool: N + 1 square cells in a grid, row by row. The last cell is block N, the null
// page. The grid has the same number of columns at every zoom, so zooming magnifies without moving cells to other rows.
//
//   64 blocks in a body of 740 x 370   16 columns, 5 rows, 46 px; block 18 at column 2 of row 1
//   a million in 950 x 880             1040 columns, 962 rows, 0.91 px: blocks share pixels
#pragma once

#include <cstdint>
#include <optional>

#include "viz/geometry/cell_grid.h"
#include "viz/geometry/viewport.h"

namespace kvscope::viz {

inline constexpr double kLargestFitCell = 120;   // [px] at font scale 1: maximum at the fitting zoom
inline constexpr double kLargestPoolCell = 160;  // [px] at font scale 1: maximum at any zoom

// What a cell has room for.
enum class PoolDetail : std::uint8_t {
  pixels,   // one color
  cells,    // a rectangle; from kSmallestOutline with pattern, fill level and outline
  numbers,  // also its number, and the reference count of a shared block
  words,    // also the sequence and page that it holds
};

// Positions of the texts in a cell.
struct PoolCellText {
  QPointF number;                // start of its baseline
  QPointF words;                 // start of its baseline, in the last line
  QPointF badge;                 // its bottom right corner
  double room = 0;               // [px] for words
  double room_beside_badge = 0;  // [px]
};

struct PoolLayout {
  std::int64_t blocks = 0;  // N; the grid has N + 1 cells, and may have empty places after them
  CellGrid grid;
  double fit_pitch = 1;  // [px] the smallest pitch: all blocks are visible, or larger text has room (pool_layout())
  PoolDetail detail = PoolDetail::pixels;
  double number_px = 9;  // [px] font of the numbers
  double words_px = 9;   // [px] font of the words
  double badge_px = 8;   // [px] font of the badges

  [[nodiscard]] CellPlace place(std::int64_t block) const { return {block % grid.columns, block / grid.columns}; }
  [[nodiscard]] QRectF rect(std::int64_t block) const { return grid.rect(place(block)); }
  [[nodiscard]] std::optional<std::int64_t> block_at(QPointF point) const;  // 0..N
  [[nodiscard]] PoolCellText text_places(const QRectF& cell) const;
  // The rectangle of one slot of a block with `slots` slots: a strip of the cell, between the lines of text.
  [[nodiscard]] QRectF slot_rect(const QRectF& cell, std::int64_t slot, std::int64_t slots) const;
  // The block `columns` to the right and `rows` down; `block` itself if there is none.
  [[nodiscard]] std::int64_t neighbor(std::int64_t block, std::int64_t columns, std::int64_t rows) const;
};

// viewport.zoom is the pitch in px. With 0, or less than the fitting pitch, all blocks are visible. With a font scale
// above 1, cells have at least the detail that they have in the same body at font scale 1: there are then fewer
// columns, and the rows scroll.
[[nodiscard]] PoolLayout pool_layout(std::int64_t blocks, const QRectF& body, const Viewport& viewport,
                                     double font_scale);

// `factor` > 1 zooms in. The content under the board's point `at` stays there, within a pixel. Zooming out ends at the
// fitting pitch.
[[nodiscard]] Viewport pool_zoomed(const PoolLayout& layout, const QRectF& body, const Viewport& viewport,
                                   double font_scale, double factor, QPointF at);
[[nodiscard]] Viewport pool_scrolled(const PoolLayout& layout, const Viewport& viewport, QPointF by);
[[nodiscard]] Viewport pool_revealing(const PoolLayout& layout, const Viewport& viewport, std::int64_t block);

}  // namespace kvscope::viz
