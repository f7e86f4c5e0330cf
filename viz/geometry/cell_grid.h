// Equal cells in rows, seen through a window: what the block pool and the lookup table have in common.
//
//   pitch 24 x 24, gap 3, area at (36, 100), offset (0, 0):
//   cell (column 2, row 1) is painted in (84, 124) 21 x 21; the gap to its right and below still belongs to it
//
// From 4 px on a pitch is a whole number of pixels, so that cells and gaps are all of one width; below, cells are the
// pixels of a picture that is stretched.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QSizeF>

namespace kvscope::viz {

// Below this a cell is a pixel of a picture; from here on it is a rectangle with a gap. [px]
inline constexpr double kSmallestCell = 4;
// A cell is far enough from its neighbours to have a pattern, a fill level and an outline of its own. [px]
inline constexpr double kSmallestOutline = 8;

struct CellPlace {
  std::int64_t column = 0;
  std::int64_t row = 0;
  friend bool operator==(const CellPlace&, const CellPlace&) = default;
};

// Columns [first_column, end_column) of rows [first_row, end_row).
struct CellRange {
  std::int64_t first_column = 0, end_column = 0;
  std::int64_t first_row = 0, end_row = 0;
  [[nodiscard]] std::int64_t columns() const { return end_column - first_column; }
  [[nodiscard]] std::int64_t rows() const { return end_row - first_row; }
  [[nodiscard]] std::int64_t cells() const { return columns() * rows(); }
  friend bool operator==(const CellRange&, const CellRange&) = default;
};

struct CellGrid {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  QSizeF pitch{1, 1};    // [px] from one cell to the next
  QPointF offset{0, 0};  // [px] of the area's corner in the whole grid; whole pixels
  QRectF area;           // [px] of the board, whole pixels; no cell is seen outside it

  [[nodiscard]] QSizeF content() const;                    // [px] the whole grid
  [[nodiscard]] double shorter_pitch() const;              // [px] what decides how much is drawn
  [[nodiscard]] QSizeF gap() const;                        // [px] to the next cell, the same for all cells of a size
  [[nodiscard]] QRectF rect(CellPlace place) const;        // of the board, without the gap; may lie outside the area
  [[nodiscard]] QRectF whole_rect(CellPlace place) const;  // with the gap
  // The cell whose whole_rect holds the point; nothing outside area and grid.
  [[nodiscard]] std::optional<CellPlace> at(QPointF point) const;
  // Every cell that area cuts, and no other.
  [[nodiscard]] CellRange visible() const;
};

// A pitch as it is painted: whole pixels from kSmallestCell on.
[[nodiscard]] double snapped_pitch(double pitch);

// The largest rectangle of whole pixels inside `rect`, at least 1 x 1.
[[nodiscard]] QRectF whole_pixels(const QRectF& rect);

// The grid's offset for `offset`: clamped to its content and in whole pixels.
[[nodiscard]] QPointF grid_offset(QPointF offset, const CellGrid& grid);

// The offset at which `after` shows at the board's point `at` the very content that `before` shows there. Both stand in
// the same area; their pitches may have changed by different factors.
[[nodiscard]] QPointF offset_after_zoom(const CellGrid& before, const CellGrid& after, QPointF at);

// The offset that shows `place`, moved no more than needed: the grid's own when it is in view.
[[nodiscard]] QPointF offset_to_reveal(const CellGrid& grid, CellPlace place);

// For cells smaller than a pixel of the surface: which pixel of the area each of `count` cells from `first` falls into,
// never decreasing, -1 before the area. `scale`: pixels of the surface in one [px].
[[nodiscard]] std::vector<std::int32_t> pixels_of_cells(double pitch, double offset, double scale, std::int64_t first,
                                                        std::int64_t count);

// 1, 2, 5, 10, 20, 50, ...: the first that keeps labels `needed` px apart when cells are `pitch` px apart.
[[nodiscard]] std::int64_t label_step(double pitch, double needed);

// Decimal digits of a number >= 0: 1 for 0..9, 2 for 10..99.
[[nodiscard]] int digits(std::int64_t number);

}  // namespace kvscope::viz
