// A scrollable grid of equal cells, used by the block pool and the lookup table.
//
//   pitch 24 x 24, gap 3, area at (36, 100), offset (0, 0):
//   cell (column 2, row 1) is painted in (84, 124) 21 x 21; the gap to its right and below still belongs to it
//
// A pitch of 4 px or more is a whole number of pixels, so that all cells and all gaps have equal widths. Below 4 px the
// cells are the pixels of an image that is scaled to the area.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QSizeF>

#include "viz/geometry/link_route.h"

namespace kvscope::viz {

// The minimum pitch for cells drawn as rectangles with a gap; below it a cell is a pixel of an image. [px]
inline constexpr double kSmallestCell = 4;
// The minimum pitch for cells drawn with a pattern, a fill level and an outline. [px]
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
  QPointF offset{0, 0};  // [px] of the area's top left corner within the whole grid; whole pixels
  QRectF area;           // [px] board coordinates, whole pixels; cells are visible only inside it

  [[nodiscard]] QSizeF content() const;                    // [px] of the whole grid
  [[nodiscard]] double shorter_pitch() const;              // [px] selects the level of detail
  [[nodiscard]] QSizeF gap() const;                        // [px] to the next cell; depends on the pitch only
  [[nodiscard]] QRectF rect(CellPlace place) const;        // board coordinates, without the gap; may be outside `area`
  [[nodiscard]] QRectF whole_rect(CellPlace place) const;  // with the gap
  // The cell whose whole_rect contains the point; nullopt outside the area or the grid.
  [[nodiscard]] std::optional<CellPlace> at(QPointF point) const;
  // Exactly the cells that are at least partly inside the area.
  [[nodiscard]] CellRange visible() const;
};

// The lane between the columns right of a cell, or right of the nearest cell at that x; left of the last column's
// cells. `top`: where it begins. Between the rows below a cell, or above it: from `left`.
[[nodiscard]] Lane column_lane(const CellGrid& grid, double x, double top);
[[nodiscard]] Lane row_lane_below(const CellGrid& grid, const QRectF& cell, double left);
[[nodiscard]] Lane row_lane_above(const CellGrid& grid, const QRectF& cell, double left);

// A pitch as it is painted: rounded to whole pixels if it is at least kSmallestCell.
[[nodiscard]] double snapped_pitch(double pitch);

// The largest rectangle of whole pixels inside `rect`, at least 1 x 1.
[[nodiscard]] QRectF whole_pixels(const QRectF& rect);

// `offset` clamped to the grid's content and rounded to whole pixels.
[[nodiscard]] QPointF grid_offset(QPointF offset, const CellGrid& grid);

// The offset with which `after` shows the same content at the board's point `at` as `before`. Both grids have the same
// area; the horizontal and the vertical pitch may have changed by different factors.
[[nodiscard]] QPointF offset_after_zoom(const CellGrid& before, const CellGrid& after, QPointF at);

// The offset closest to the current one that makes `place` visible: the current one if it already is.
[[nodiscard]] QPointF offset_to_reveal(const CellGrid& grid, CellPlace place);

// For cells smaller than a device pixel: the pixel of the area that each of `count` cells from `first` falls into;
// never decreasing, -1 before the area. `scale`: device pixels per [px].
[[nodiscard]] std::vector<std::int32_t> pixels_of_cells(double pitch, double offset, double scale, std::int64_t first,
                                                        std::int64_t count);

// The first number of 1, 2, 5, 10, 20, 50, ... that keeps labels at least `needed` px apart if every so many cells have
// a label and cells are `pitch` px apart.
[[nodiscard]] std::int64_t label_step(double pitch, double needed);

// Decimal digits of a number >= 0: 1 for 0..9, 2 for 10..99.
[[nodiscard]] int digits(std::int64_t number);

}  // namespace kvscope::viz
