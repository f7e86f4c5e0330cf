// The rectangles of the three attention panels.
//
//   attention_flow                          attention_errors                 attention_output
//   | m      |   .--.---.---.           |   | sequences by heads  |          | o    |  bars by dim, a tick    |
//   | l      |  _ - = =                 |   |  [] [] [] []        |          |      |  for the golden         |
//   | share  |  = - = .                 |   | queries by dims     |          | err  |  error / bound by dim   |
//   | tile keys pages m c sum l share   |   |  [] [] [] [] [] []  |
//   | 0    ...                          |   | worst element,      |
//   | 1    ...                          |   | cause in words      |
//   | result in words                   |
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

#include "viz/geometry/heat_grid.h"

namespace kvscope::viz {

// --- the flow --------------------------------------------------------------------------------------------------------

enum class FlowColumn : std::uint8_t { tile, keys, pages, largest, rescale, tile_sum, sum, share };
inline constexpr std::size_t kFlowColumns = 8;
enum class FlowStrip : std::uint8_t { largest, sum, share };
inline constexpr std::size_t kFlowStrips = 3;

struct FlowColumnPlace {
  FlowColumn column = FlowColumn::tile;
  double left = 0, right = 0;  // [px]
};

struct FlowLayout {
  std::int64_t tiles = 0;
  std::array<QRectF, kFlowStrips> strips;  // [px] one below the other; empty: no room for the chart
  double label_right = 0;                  // [px] the strips' names end here
  QRectF head;                             // [px] names of the table's columns; empty: no room for the table
  std::vector<FlowColumnPlace> columns;    // those that fit, from left to right
  double row_height = 0;
  std::int64_t first_row = 0, end_row = 0;  // tiles that have a row in the table
  QRectF result;                            // [px] lines of words below the table

  // The tile's column in the chart: all strips and the spaces between them. Empty without a chart.
  [[nodiscard]] QRectF column_rect(std::int64_t tile) const;
  // Nothing: the tile has no row.
  [[nodiscard]] std::optional<QRectF> row_rect(std::int64_t tile) const;
  // The tile whose column or row is at the point.
  [[nodiscard]] std::optional<std::int64_t> tile_at(QPointF point) const;
};

// `now` tiles have been added: the table shows the rows around the last of them. `lines` of words below the table.
// Example: 600 x 400 px, 4 tiles: three strips of 36 px, 4 rows of 20 px with all 8 columns.
[[nodiscard]] FlowLayout flow_layout(std::int64_t tiles, std::int64_t now, int lines, const QRectF& body,
                                     double font_scale);

// --- the errors ------------------------------------------------------------------------------------------------------

struct ErrorsSize {
  std::int64_t sequences = 0, heads = 0;  // of the upper map
  std::int64_t queries = 0, dims = 0;     // of the lower map: one head of one sequence
};

struct ErrorsLayout {
  QRectF words;                          // [px] verdict, worst element and cause
  QRectF head_name, element_name;        // [px] a line above each map
  QRectF head_numbers, element_numbers;  // [px] between that line and the map: numbers of columns
  double label_width = 0;                // [px] names of rows, left of the maps
  HeatGrid head_map;                     // rows: sequences; columns: heads
  HeatGrid element_map;                  // rows: queries; columns: dims
};

[[nodiscard]] ErrorsLayout errors_layout(const ErrorsSize& size, int lines, const QRectF& body, double font_scale);

// --- the output ------------------------------------------------------------------------------------------------------

struct OutputLayout {
  std::int64_t dims = 0;
  double label_width = 0;
  QRectF values;         // [px] o and the golden
  QRectF errors;         // [px] error over bound; empty: no room
  double pitch = 0;      // [px] from bar to bar
  std::int64_t bin = 1;  // dims that share a bar
  [[nodiscard]] std::int64_t bars() const { return (dims + bin - 1) / bin; }
  [[nodiscard]] QRectF bar(const QRectF& strip, std::int64_t bar) const;
  [[nodiscard]] std::optional<std::int64_t> bar_at(QPointF point) const;
};

[[nodiscard]] OutputLayout output_layout(std::int64_t dims, const QRectF& body, double font_scale);

// The height of an error's bar or mark as a share of its room, on a logarithmic scale: 0 at 0.001x the bound and below,
// 0.5 at the bound, 1 at 1000x and above, and for infinity or NaN.
[[nodiscard]] double error_level(double ratio);

}  // namespace kvscope::viz
