// Where the tokens of the live sequences stand: a row a sequence, a box a page, a cell a token, all rows on one
// horizontal scale, so that lengths compare.
//
//   gutter  strip
//   seq 0   [t t t t] [t t t t] [t t . .] - - - |     page boxes, and a line to the last token it will ever have
//   seq 1   [t t t t] [t . . .] - - |
//           0         4         8                     axis, where cells carry no numbers of their own
//
// Content px: x from the first token, y from the first row; the viewport's zoom is relative to kNaturalCell px a token.
// Cells and boxes begin and end on whole pixels: cells of one width, gaps of one width.
// Example: cells of 17 px, pages of 16, boxes padded by 3 and 6 apart: a page every 284 px; token 37 is the 6th of page
// 2: it begins at 2 * 284 + 3 + 5 * 17 = 656.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QSizeF>

#include "viz/geometry/viewport.h"

namespace kvscope::viz {

// What is to be laid out. At least one row and one page are made room for.
struct SequencesExtent {
  std::int64_t rows = 0;       // live sequences
  std::int64_t pages = 0;      // of the longest row, with what is still to come
  std::int64_t page_size = 1;  // [tokens]
  bool note = false;           // a line of words under the rows
  friend bool operator==(const SequencesExtent&, const SequencesExtent&) = default;
};

// How much of a row can be told apart, from much to little.
enum class SequencesDetail : std::uint8_t {
  numbers,  // a cell a token, with its position written in it
  cells,    // a cell a token
  pages,    // a bar a page, filled as far as it holds tokens
  lines,    // a bar a sequence: pages are narrower than they can be told apart
  pixels,   // a line of pixels for one or several sequences
};

// How a number of so many digits is written into a cell.
enum class Writing : std::uint8_t { none, across, upwards };

inline constexpr double kNaturalCell = 18, kNaturalRow = 66;  // [px] at zoom 1 and font scale 1
inline constexpr double kMostFit = 1.6;                       // few tokens in a large panel, no wider than high
inline constexpr double kMostZoom = 3;                        // cells of 54 px
// Numbers in cells at font scale 1: the font's size, where they have more room, and what a digit of the former takes.
inline constexpr double kNumber = 9, kLargestNumber = 13;     // [px]
inline constexpr double kDigitWidth = 5.4, kDigitHeight = 8;  // [px]

struct IndexRange {  // [first, last)
  std::int64_t first = 0, last = 0;
  [[nodiscard]] std::int64_t size() const { return last - first; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// What is under a point of the panel.
struct SequencesSpot {
  std::int64_t row = 0;
  bool label = false;     // in the gutter
  std::int64_t page = 0;  // where not
  std::int64_t slot = 0;  // [0, page_size) of that page; between two boxes: of the nearer one
  friend bool operator==(const SequencesSpot&, const SequencesSpot&) = default;
};

struct SequencesLayout {
  SequencesExtent extent;
  SequencesDetail detail = SequencesDetail::numbers;
  Writing writing = Writing::none;
  double number_px = 0;   // size of the numbers' font; 0 without numbers
  QRectF gutter, strip;   // labels; what scrolls
  QRectF note;            // under the last row that shows, gutter and strip wide; empty without one
  QRectF axis;            // under that; empty where cells carry numbers
  double cell = 0;        // [px] from a token to the next
  double cell_gap = 0;    // [px] of it between two cells
  double pad = 0;         // [px] between a box's left edge and its first cell
  double pad_above = 0;   // [px] between a box's top edge and its cells, and below them
  double page_pitch = 0;  // [px] from a page to the next
  double page_gap = 0;    // [px] of it between two boxes
  double row_pitch = 0;   // [px] from a row to the next
  double box_top = 0;     // [px] of a box in its row: above it is room for what is said about it
  double box_height = 0;  // [px]
  double zoom = 0;        // in force; at fit, the one that fits
  double fit = 0;         // the zoom that fits: the least there is
  QPointF offset;         // in force: clamped
  QSizeF content;         // [px]

  // Left edge of a token's cell, in board coordinates. Tokens past the extent stand on in the same rhythm.
  [[nodiscard]] double x_of(std::int64_t token) const;
  // All of a row from the strip's left to its right; cut to nothing.
  [[nodiscard]] QRectF row_rect(std::int64_t row) const;
  [[nodiscard]] QRectF label_rect(std::int64_t row) const;  // in the gutter, as high as the row's boxes
  [[nodiscard]] QRectF page_box(std::int64_t row, std::int64_t page) const;
  // From the left edge of token `first` to the right edge of the cell before token `last`, inside the boxes' padding.
  // Precondition (caller): first < last.
  [[nodiscard]] QRectF run_rect(std::int64_t row, std::int64_t first, std::int64_t last) const;
  [[nodiscard]] QRectF token_cell(std::int64_t row, std::int64_t token) const;

  // Those that show at least in part. Pages are the same for every row.
  [[nodiscard]] IndexRange visible_rows() const;
  [[nodiscard]] IndexRange visible_pages() const;
  // At detail pixels: the rows that share the pixel line `line` of the strip, counted from its top. May be empty.
  [[nodiscard]] IndexRange rows_of_line(std::int64_t line) const;

  // Nothing outside gutter and strip, and below the last row.
  [[nodiscard]] std::optional<SequencesSpot> at(QPointF point) const;
};

[[nodiscard]] SequencesLayout sequences_layout(const QRectF& body, const SequencesExtent& extent,
                                               const Viewport& viewport, double font_scale);

// The viewport after a turn of the wheel at `at` (board coordinates): the same token of the same row stays there.
// Smaller than what fits becomes "fit".
[[nodiscard]] Viewport zoomed_sequences(const QRectF& body, const SequencesExtent& extent, const Viewport& viewport,
                                        double font_scale, double factor, QPointF at);

// Steps of a ladder, so that rows and cells keep their size while sequences come and go.
[[nodiscard]] std::int64_t calm_rows(std::int64_t rows);  // the next of 1 .. 16 18 20 .. 32 36 40 .. 64 72 ...
// `longest` pages, or a half, a quarter ... of them, or three quarters of such a step, but no less than `needed`.
[[nodiscard]] std::int64_t calm_pages(std::int64_t needed, std::int64_t longest);

// Numbers under the rows: token positions at round distances, 1, 2 or 5 times a power of ten, far enough apart to be
// read.
struct AxisTick {
  std::int64_t token = 0;
  double x = 0;  // [px] board
  friend bool operator==(const AxisTick&, const AxisTick&) = default;
};
[[nodiscard]] std::vector<AxisTick> axis_ticks(const SequencesLayout& layout, double least_distance);

[[nodiscard]] Writing writing_of(QSizeF cell, std::int64_t digits, double font_scale);
// [px] The largest font, whole px, with which so many digits still fit; 0 without writing.
[[nodiscard]] double number_px(QSizeF cell, std::int64_t digits, Writing writing, double font_scale);

}  // namespace kvscope::viz
