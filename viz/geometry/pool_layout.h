// Where the blocks of the pool stand: N + 1 cells of a square grid, read row by row. The last one is block N, the null
// page. The grid has the same columns at every zoom, so zooming is a magnifying glass over one picture.
//
//   64 blocks in a body of 740 x 370   16 columns, 5 rows, 46 px; block 18 at column 2 of row 1
//   a million in 950 x 880             1040 columns, 962 rows, 0.91 px: blocks share pixels
#pragma once

#include <cstdint>
#include <optional>

#include "viz/geometry/cell_grid.h"
#include "viz/geometry/viewport.h"

namespace kvscope::viz {

inline constexpr double kLargestFitCell = 88;    // [px] of few blocks in a large body
inline constexpr double kLargestPoolCell = 128;  // [px] as far as it can be zoomed

// What there is room for in a cell.
enum class PoolDetail : std::uint8_t {
  pixels,   // one colour
  cells,    // a rectangle; from kSmallestOutline with pattern, fill level and outline
  numbers,  // and its number, and the reference count of a shared block
  words,    // and whose page it holds
};

// Where in a cell the things written on it stand.
struct PoolCellText {
  QPointF number;                // where its baseline begins
  QPointF words;                 // likewise, in the last line
  QPointF badge;                 // its bottom right corner
  double room = 0;               // [px] for words
  double room_beside_badge = 0;  // [px]
};

struct PoolLayout {
  std::int64_t blocks = 0;  // N; the grid has N + 1 cells and perhaps empty places after them
  CellGrid grid;
  double fit_pitch = 1;  // [px] at which all of them are seen
  PoolDetail detail = PoolDetail::pixels;
  double number_px = 9;  // [px] font of the numbers
  double words_px = 9;   // [px] font of the words
  double badge_px = 8;   // [px] font of the badges

  [[nodiscard]] CellPlace place(std::int64_t block) const { return {block % grid.columns, block / grid.columns}; }
  [[nodiscard]] QRectF rect(std::int64_t block) const { return grid.rect(place(block)); }
  [[nodiscard]] std::optional<std::int64_t> block_at(QPointF point) const;  // 0..N
  [[nodiscard]] PoolCellText text_places(const QRectF& cell) const;
  // A slot of a block with `slots` of them: a strip of the cell, between the lines of text.
  [[nodiscard]] QRectF slot_rect(const QRectF& cell, std::int64_t slot, std::int64_t slots) const;
  // The block `columns` to the right and `rows` down; `block` itself when there is none.
  [[nodiscard]] std::int64_t neighbour(std::int64_t block, std::int64_t columns, std::int64_t rows) const;
};

// viewport.zoom is the pitch in px; 0, or less than what fits: all blocks are seen.
[[nodiscard]] PoolLayout pool_layout(std::int64_t blocks, const QRectF& body, const Viewport& viewport,
                                     double font_scale);

// `factor` > 1: closer. What is under the board's point `at` stays there, to a pixel; out to the fit, no further.
[[nodiscard]] Viewport pool_zoomed(const PoolLayout& layout, const QRectF& body, const Viewport& viewport,
                                   double font_scale, double factor, QPointF at);
[[nodiscard]] Viewport pool_scrolled(const PoolLayout& layout, const Viewport& viewport, QPointF by);
[[nodiscard]] Viewport pool_revealing(const PoolLayout& layout, const Viewport& viewport, std::int64_t block);

}  // namespace kvscope::viz
