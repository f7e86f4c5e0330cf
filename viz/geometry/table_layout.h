// The layout of the lookup table: one row per running sequence, one column per page, and labels along the edges that
// stay in view when the cells scroll.
//
//          0    1    2    3        page numbers
//   seq 0  12   41   7    58
//   seq 3  12   41   33   .        a cell without a block
//
//   5 sequences of 4 pages in 680 x 370: cells of 140 x 44; 300 of 512 pages: 1.2 x 1.2, one or two pixels each
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "viz/geometry/cell_grid.h"
#include "viz/geometry/viewport.h"

namespace kvscope::viz {

enum class TableDetail : std::uint8_t {
  pixels,   // one color per cell
  cells,    // a rectangle; from kSmallestOutline with pattern and outline
  numbers,  // also the number of its block
};

struct TableLayout {
  CellGrid grid;                 // columns: pages; rows: sequences
  QRectF page_numbers;           // [px] above the grid's area
  QRectF names;                  // [px] to the left of the grid's area
  QSizeF fit_pitch{1, 1};        // [px] of the cells at the fitting zoom, the smallest one
  std::int64_t page_step = 1;    // every page_step-th page has a number
  std::int64_t name_step = 1;    // every name_step-th row has a name
  double page_number_width = 0;  // [px] of the largest page number
  double name_height = 0;        // [px] of a line of text
  TableDetail detail = TableDetail::pixels;
  double number_px = 10;  // [px] font of the numbers

  [[nodiscard]] QRectF page_number_rect(std::int64_t page) const;  // the page's number is centered in it
  // The row's name is centered vertically in it and left-aligned. In a table of low rows the first one's extends into
  // the corner beside the page numbers.
  [[nodiscard]] QRectF name_rect(std::int64_t row) const;
  [[nodiscard]] std::vector<std::int64_t> named_rows() const;  // visible rows whose names are drawn without overlap
  [[nodiscard]] QRectF name_mark(std::int64_t row) const;      // a bar before the row's cells; empty if not visible
  [[nodiscard]] QRectF row_line(std::int64_t row) const;       // between this row and the next, as wide as the cells
  // Start of the baseline of a number of the given width that is centered in a cell.
  [[nodiscard]] QPointF number_at(const QRectF& cell, double width) const;
  // The row whose name is under the point; if that name is omitted, the row beside the point.
  [[nodiscard]] std::optional<std::int64_t> name_at(QPointF point) const;
};

struct TableSize {
  std::int64_t rows = 0;     // running sequences
  std::int64_t columns = 1;  // pages
  std::int64_t blocks = 0;   // the largest number written in a cell
  double name_width = 0;     // [px] of the widest name
};

// viewport.zoom is relative to the fitting size; 0 or less than 1 means fitting. Cells are at least one pixel: a table
// that is larger even then is scrolled. The rows have room for 8, 12, 16, 24, 32, 48, ... sequences, so that one more
// sequence seldom changes their height. With a font scale above 1, cells have at least the detail and rows the names
// that they have in the same body at font scale 1; a table that is then too large is scrolled.
[[nodiscard]] TableLayout table_layout(const TableSize& size, const QRectF& body, const Viewport& viewport,
                                       double font_scale);

// As pool_zoomed(); zooming out ends at the fitting size.
[[nodiscard]] Viewport table_zoomed(const TableSize& size, const QRectF& body, const Viewport& viewport,
                                    double font_scale, double factor, QPointF at);
[[nodiscard]] Viewport table_scrolled(const TableLayout& layout, const Viewport& viewport, QPointF by);
[[nodiscard]] Viewport table_revealing(const TableLayout& layout, const Viewport& viewport, CellPlace place);

}  // namespace kvscope::viz
