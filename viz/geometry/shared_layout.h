// Shared memory as its banks see it: one line for each banks * 4 bytes, one cell for each 16 bytes of a line. Beside
// the grid the same chunks without the swizzle, where there is room; below both the wavefronts of one read, and the
// result in words.
//
//             banks  0-3  4-7 ..            0-3  4-7 ..
//   tokens 64        c0   c1  ..            c0   c1  ..      grids: with and without the swizzle
//          65        c1   c0  ..            c0   c1  ..
//   strips            #   #   #              #               bank by wavefront
//                                            #
//   "ldmatrix takes chunk c3 of 8 rows: ..."                 verdict
//
// Lines that do not fit are scrolled: pitch is never smaller than what a label needs, unless the viewport zooms out.
// Example: 32 lines of 8 chunks, body 480 x 470 at font scale 1: two grids of 217 px, 10 px a line, nothing scrolled.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

#include "viz/geometry/viewport.h"

namespace kvscope::viz {

struct SharedSize {
  std::int64_t lines = 0;       // of banks * 4 bytes
  std::int64_t chunks = 0;      // of 16 bytes in a line
  std::int64_t band_lines = 0;  // lines of a band of columns: a gap follows each; 0: no gaps
  double label_width = 0;       // [px] of the widest line label
  double chunk_width = 0;       // [px] of the widest chunk label
  bool compare = false;         // draw the chunks without the swizzle too, where there is room
  bool reads = false;           // leave room for the wavefronts of a read
  std::int64_t layouts = 0;     // ways to store the tile: a line of chips above the grids
  double chip_width = 0;        // [px] of the widest name with its number; chips that are narrower have two lines
};

struct SharedLayout {
  SharedSize size;
  QRectF chips_name;            // [px] left of the chips; empty without room
  std::vector<QRectF> chips;    // [px] one for each layout, of one or two lines; empty without room
  QRectF caption, caption_off;  // [px] above the grids; the second is empty without a second grid
  QRectF banks, banks_off;      // [px] bank numbers
  QRectF labels;                // [px] left of the first grid
  QRectF grid, grid_off;        // [px] visible part; lines scroll inside
  QRectF bar;                   // [px] scroll bar right of the grids; empty when every line is visible
  QRectF more;                  // [px] the line that states what is not shown; empty when all of it is legible
  QRectF strip_title, strip_title_off;
  QRectF strip, strip_off;  // [px] wavefronts; empty without room
  QRectF verdict;           // [px] lines of text; empty without room
  double pitch = 1;         // [px] from line to line
  double gap = 0;           // [px] of it between two lines
  double band_gap = 0;      // [px] between two bands
  double offset = 0;        // [px] scrolled
  double room = 1;          // [px] height that lines may fill; the grids end with a whole line
  double least_pitch = 1, most_pitch = 1;

  struct Place {
    std::int64_t line = 0;
    std::int64_t chunk = 0;  // of the line
    bool off = false;        // in the grid without the swizzle
    friend bool operator==(const Place&, const Place&) = default;
  };
  [[nodiscard]] double top_of(std::int64_t line) const;  // [px] in the content, whose top is 0
  [[nodiscard]] double content() const;                  // [px] height of all lines
  // Not cut to the grid.
  [[nodiscard]] QRectF cell_rect(const Place& place) const;
  [[nodiscard]] QRectF label_rect(std::int64_t line) const;
  // The cell under a point of a grid; nothing beside the grids and in the gap after a band.
  [[nodiscard]] std::optional<Place> at(QPointF point) const;
  [[nodiscard]] std::optional<std::int64_t> label_at(QPointF point) const;
  // Lines that are visible at least in part: [first, end).
  [[nodiscard]] std::int64_t first_line() const;
  [[nodiscard]] std::int64_t end_line() const;
};

[[nodiscard]] SharedLayout shared_layout(const SharedSize& size, const QRectF& body, const Viewport& viewport,
                                         double font_scale);

// `by` as Panel::scrolled.
[[nodiscard]] Viewport shared_scrolled(const SharedLayout& layout, const Viewport& viewport, QPointF by);
// The line under `at` stays there; zooming out ends where every line fits.
[[nodiscard]] Viewport shared_zoomed(const SharedLayout& layout, double factor, QPointF at);
[[nodiscard]] Viewport shared_revealing(const SharedLayout& layout, const Viewport& viewport, std::int64_t line);

// One bank of one wavefront in a strip of `wavefronts` rows.
[[nodiscard]] QRectF strip_rect(const QRectF& strip, std::int64_t banks, std::int64_t wavefronts, std::int64_t bank,
                                std::int64_t wavefront);

}  // namespace kvscope::viz
