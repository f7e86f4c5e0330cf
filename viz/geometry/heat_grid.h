// A grid of values that always fits its rectangle: cells become smaller, and where they would be smaller than a limit
// several values share one cell. Used for errors over sequences, heads, queries and dims.
//
//   6 values in room for 3 cells: bin 2      | 0,1 | 2,3 | 4,5 |
#pragma once

#include <cstdint>
#include <optional>

#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QSizeF>

namespace kvscope::viz {

struct HeatCell {
  std::int64_t row = 0, column = 0;  // of the drawn cells
  friend bool operator==(const HeatCell&, const HeatCell&) = default;
};

struct HeatGrid {
  QRectF area;                               // [px] of all drawn cells; empty: nothing to draw
  QSizeF cell;                               // [px] from cell to cell
  std::int64_t rows = 0, columns = 0;        // values
  std::int64_t row_bin = 1, column_bin = 1;  // values that share a cell
  [[nodiscard]] std::int64_t drawn_rows() const { return (rows + row_bin - 1) / row_bin; }
  [[nodiscard]] std::int64_t drawn_columns() const { return (columns + column_bin - 1) / column_bin; }
  [[nodiscard]] bool binned() const { return row_bin > 1 || column_bin > 1; }

  [[nodiscard]] QRectF rect(HeatCell cell) const;
  [[nodiscard]] std::optional<HeatCell> at(QPointF point) const;
  // The drawn cell of a value.
  [[nodiscard]] HeatCell of(std::int64_t row, std::int64_t column) const {
    return {row / row_bin, column / column_bin};
  }
};

inline constexpr double kLargestHeatCell = 44, kSmallestHeatCell = 4;  // [px]; the largest one at font scale 1

// Cells of at most kLargestHeatCell * font_scale on a side and at least kSmallestHeatCell, from the top left of `room`.
// Example: 3 x 8 values in 352 x 200 px: cells of 44 x 44 px. 100 columns in 200 px: 50 cells of 4 px, 2 values each.
[[nodiscard]] HeatGrid heat_grid(std::int64_t rows, std::int64_t columns, const QRectF& room, double font_scale);

}  // namespace kvscope::viz
