// The layout of the tokens of the live sequences: one row per sequence, one box per page, one cell per token. All rows
// have the same horizontal scale, so that lengths can be compared.
//
//   gutter  strip
//   seq 0   [t t t t] [t t t t] [t t . .] - - - |     page boxes, and a line to the sequence's final length
//   seq 1   [t t t t] [t . . .] - - |
//           0         4         8                     axis, if the cells have no numbers
//
// Content coordinates in px: x from the first token, y from the first row. The viewport's zoom is relative to
// kNaturalCell px per token. Cells and boxes begin and end on whole pixels: all cells have one width, all gaps another.
// Example: cells of 17 px, pages of 16 tokens, boxes padded by 3 px and 6 px apart: a page every 284 px. Token 37 is
// the 6th of page 2 and begins at 2 * 284 + 3 + 5 * 17 = 656.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QSizeF>

#include "viz/geometry/link_route.h"
#include "viz/geometry/viewport.h"

namespace kvscope::viz {

// The size of the content. The layout has room for at least one row and one page.
struct SequencesExtent {
  std::int64_t rows = 0;       // live sequences
  std::int64_t pages = 0;      // of the longest row at its final length
  std::int64_t page_size = 1;  // [tokens]
  bool note = false;           // whether there is a line of text under the rows
  friend bool operator==(const SequencesExtent&, const SequencesExtent&) = default;
};

// The level of detail of a row, from high to low.
enum class SequencesDetail : std::uint8_t {
  numbers,  // one cell per token, with its position written in it
  cells,    // one cell per token
  pages,    // one bar per page, filled up to its number of tokens
  lines,    // one bar per sequence: pages are too narrow to be distinguished
  density,  // bands of one or several sequences: how many of them hold a token at each place
};

// The direction in which a number is written into a cell.
enum class Writing : std::uint8_t { none, across, upwards };

inline constexpr double kNaturalCell = 18, kNaturalRow = 66;  // [px] at zoom 1 and font scale 1
inline constexpr std::int64_t kMostRows = 60;  // more visible rows are drawn one by one only if each is 10 px high
inline constexpr double kBand = 6;             // [px] minimum height of a band at font scale 1
inline constexpr double kMostFit = 1.6;        // maximum fitting zoom: cells are not wider than high
inline constexpr double kMostZoom = 3;         // maximum zoom: cells of 54 px
inline constexpr double kNextLabel = 15;       // [px] of a row whose name never overlaps the next one
inline constexpr double kRoomForNote = 12;     // [px] above a box for a line of text
// Numbers in cells at font scale 1: the usual and the maximum font size, and the size of a digit of the usual font.
inline constexpr double kNumber = 9, kLargestNumber = 13;     // [px]
inline constexpr double kDigitWidth = 5.4, kDigitHeight = 8;  // [px]

struct IndexRange {  // [first, last)
  std::int64_t first = 0, last = 0;
  [[nodiscard]] std::int64_t size() const { return last - first; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// The object under a point of the panel.
struct SequencesSpot {
  std::int64_t row = 0;
  bool label = false;     // in the gutter
  std::int64_t page = 0;  // if not in the gutter
  std::int64_t slot = 0;  // [0, page_size) of that page; between two boxes: of the nearer box
  friend bool operator==(const SequencesSpot&, const SequencesSpot&) = default;
};

struct SequencesLayout {
  SequencesExtent extent;
  SequencesDetail detail = SequencesDetail::numbers;
  Writing writing = Writing::none;
  double number_px = 0;   // size of the numbers' font; 0 without numbers
  QRectF gutter, strip;   // the labels; the scrollable part
  QRectF note;            // under the last visible row, as wide as gutter and strip; empty without a note
  QRectF axis;            // under the note; empty if the cells have numbers
  double cell = 0;        // [px] from a token to the next
  double cell_gap = 0;    // [px] of `cell` that is between two cells
  double pad = 0;         // [px] between a box's left edge and its first cell
  double pad_above = 0;   // [px] between a box's top edge and its cells, and again below them
  double page_pitch = 0;  // [px] from a page to the next
  double page_gap = 0;    // [px] of `page_pitch` that is between two boxes
  double row_pitch = 0;   // [px] from a row to the next
  double box_top = 0;     // [px] of a box in its row; the room above it holds the row's annotations
  double box_height = 0;  // [px]
  std::int64_t band = 1;  // rows of a band, at detail density; else 1
  double zoom = 0;        // effective zoom, at least `fit`
  double fit = 0;         // the minimum zoom: all pages fit, or cells have room for the text that they have at scale 1
  QPointF offset;         // effective offset: clamped
  QSizeF content;         // [px]

  // Left edge of a token's cell, in board coordinates. Tokens past the extent continue at the same distances.
  [[nodiscard]] double x_of(std::int64_t token) const;
  // The whole row from the strip's left edge to its right edge; not clipped vertically.
  [[nodiscard]] QRectF row_rect(std::int64_t row) const;
  [[nodiscard]] QRectF label_rect(std::int64_t row) const;  // in the gutter, as high as the row's boxes
  [[nodiscard]] QRectF page_box(std::int64_t row, std::int64_t page) const;
  // From the left edge of token `first` to the right edge of the cell before token `last`, inside the boxes' padding.
  // Precondition (caller): first < last.
  [[nodiscard]] QRectF run_rect(std::int64_t row, std::int64_t first, std::int64_t last) const;
  [[nodiscard]] QRectF token_cell(std::int64_t row, std::int64_t token) const;

  // Rows and pages that are at least partly visible. All rows have the same visible pages.
  [[nodiscard]] IndexRange visible_rows() const;
  [[nodiscard]] IndexRange visible_pages() const;
  // At detail density: the visible bands, the rows of a band, and its place in the strip, not clipped.
  [[nodiscard]] IndexRange visible_bands() const;
  [[nodiscard]] IndexRange rows_of_band(std::int64_t band_index) const;
  [[nodiscard]] QRectF band_rect(std::int64_t band_index) const;

  // Whether the content is larger than the strip.
  [[nodiscard]] bool scrolls() const;

  // The vertical lane between two tokens nearest to x, from the strip's top to the last row; where pages are bars, at
  // x.
  [[nodiscard]] Lane lane(double x) const;
  // The horizontal lane under the boxes of the row that holds `token`, from the gutter to the strip's right edge.
  [[nodiscard]] Lane lane_below(const QRectF& token) const;

  // nullopt outside gutter and strip, and below the last row.
  [[nodiscard]] std::optional<SequencesSpot> at(QPointF point) const;
};

// With a font scale above 1, rows and cells have at least the detail and the names of the same body at font scale 1;
// the content is then larger than the strip and scrolls.
[[nodiscard]] SequencesLayout sequences_layout(const QRectF& body, const SequencesExtent& extent,
                                               const Viewport& viewport, double font_scale);

// The viewport after zooming by `factor` at `at` (board coordinates): the same token of the same row stays there.
// A zoom below the fitting one becomes "fit".
[[nodiscard]] Viewport zoomed_sequences(const QRectF& body, const SequencesExtent& extent, const Viewport& viewport,
                                        double font_scale, double factor, QPointF at);

// Rounding up to a few sizes, so that rows and cells seldom change size while sequences arrive and finish.
[[nodiscard]] std::int64_t calm_rows(std::int64_t rows);  // the next of 1 .. 16 18 20 .. 32 36 40 .. 64 72 ...
// The smallest number >= `needed` of: `longest` pages, a half, a quarter, ... of them, and three quarters of each.
[[nodiscard]] std::int64_t calm_pages(std::int64_t needed, std::int64_t longest);

// Numbers under the rows: token positions at distances of 1, 2 or 5 times a power of ten, at least `least_distance` px
// apart.
struct AxisTick {
  std::int64_t token = 0;
  double x = 0;  // [px] board
  friend bool operator==(const AxisTick&, const AxisTick&) = default;
};
[[nodiscard]] std::vector<AxisTick> axis_ticks(const SequencesLayout& layout, double least_distance);

[[nodiscard]] Writing writing_of(QSizeF cell, std::int64_t digits, double font_scale);
// [px] The largest font size, in whole px, with which so many digits fit; 0 for Writing::none.
[[nodiscard]] double number_px(QSizeF cell, std::int64_t digits, Writing writing, double font_scale);

}  // namespace kvscope::viz
