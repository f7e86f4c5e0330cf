// Where the lookup table stands: a row for each sequence that runs, a column for each page, names along the edges,
// which stay in view when the cells scroll.
//
//          0    1    2    3        page numbers
//   seq 0  12   41   7    58
//   seq 3  12   41   33   .        a cell without a block
//
//   5 sequences of 4 pages in 680 x 370: cells of 68 x 34; 300 of 512 pages: 1.2 x 1.2, one pixel or two each
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "viz/geometry/cell_grid.h"
#include "viz/geometry/viewport.h"

namespace kvscope::viz {

enum class TableDetail : std::uint8_t {
  pixels,   // one colour a cell
  cells,    // a rectangle; from kSmallestOutline with pattern and outline
  numbers,  // and the number of its block
};

struct TableLayout {
  CellGrid grid;                 // columns: pages; rows: sequences
  QRectF page_numbers;           // [px] above the grid's area
  QRectF names;                  // [px] to its left
  QSizeF fit_pitch{1, 1};        // [px] of the cells that fit
  std::int64_t page_step = 1;    // every how many pages there is a number
  std::int64_t name_step = 1;    // every how many rows there is a name
  double page_number_width = 0;  // [px] of the largest
  double name_height = 0;        // [px] of a line of text
  TableDetail detail = TableDetail::pixels;
  double number_px = 10;  // [px] font of the numbers

  [[nodiscard]] QRectF page_number_rect(std::int64_t page) const;  // what its number is centred in
  // What its name is centred in, from the left. The first of low rows reaches into the corner beside the page numbers.
  [[nodiscard]] QRectF name_rect(std::int64_t row) const;
  [[nodiscard]] std::vector<std::int64_t> named_rows() const;  // rows in view whose names stand apart
  [[nodiscard]] QRectF name_mark(std::int64_t row) const;      // a bar before its cells; empty when out of view
  [[nodiscard]] QRectF row_line(std::int64_t row) const;       // between it and the next, as wide as the cells
  // Where the baseline of a number begins that is so wide, in the middle of a cell.
  [[nodiscard]] QPointF number_at(const QRectF& cell, double width) const;
  // The row whose name is under the point, or beside it where names are left out.
  [[nodiscard]] std::optional<std::int64_t> name_at(QPointF point) const;
};

struct TableSize {
  std::int64_t rows = 0;     // sequences that run
  std::int64_t columns = 1;  // pages
  std::int64_t blocks = 0;   // the largest number written in a cell
  double name_width = 0;     // [px] of the widest name
};

// viewport.zoom is how many times larger than fitting; 0 or less than 1: fitting. Cells are never smaller than a pixel:
// a table that does not fit even so is scrolled. Rows are a little lower than needed, so that one more sequence seldom
// changes their height: room is made for 8, 12, 16, 24, 32, 48, ... of them.
[[nodiscard]] TableLayout table_layout(const TableSize& size, const QRectF& body, const Viewport& viewport,
                                       double font_scale);

// As for the pool; out to the fit, no further.
[[nodiscard]] Viewport table_zoomed(const TableSize& size, const QRectF& body, const Viewport& viewport,
                                    double font_scale, double factor, QPointF at);
[[nodiscard]] Viewport table_scrolled(const TableLayout& layout, const Viewport& viewport, QPointF by);
[[nodiscard]] Viewport table_revealing(const TableLayout& layout, const Viewport& viewport, CellPlace place);

}  // namespace kvscope::viz
