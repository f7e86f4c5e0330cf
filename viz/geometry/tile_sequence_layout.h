// The tokens of one sequence on one line, page by page, around the tile: every page that fits, the tile's first of all.
// What does not fit is counted at either end.
//
//   | 3 pages |[ page 3 ][ page 4 ][ page 5 ]| 12 pages |
//                         ^^^^^^^^^^^^^^^^^^^ the tile
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

namespace kvscope::viz {

struct SequenceStripSize {
  std::int64_t tokens = 0;  // in the cache
  std::int64_t page_size = 1;
  std::int64_t first = 0, rows = 0;  // tokens [first, first + rows) are the tile's, also those that are not there yet
};

struct SequenceStrip {
  SequenceStripSize size;
  std::int64_t first_page = 0, end_page = 0;  // that are shown
  std::int64_t pages = 0;                     // of the sequence and the tile
  double cell = 1;                            // [px] from token to token
  double between = 0;                         // [px] between two pages
  QRectF area;                                // [px] of the cells of the pages shown
  QRectF before, after;                       // [px] for the counts; empty: nothing is left out
  double label_height = 0;                    // [px] under the cells; 0: no room
  double lane = 0;                            // [px] y between the cells and the labels, where links pass

  [[nodiscard]] QRectF page_rect(std::int64_t page) const;  // precondition: it is shown
  // Nothing: it is not shown.
  [[nodiscard]] std::optional<QRectF> token_rect(std::int64_t token) const;
  [[nodiscard]] std::optional<std::int64_t> token_at(QPointF point) const;
  [[nodiscard]] QRectF tile_rect() const;  // around the tile's tokens that are shown
};

[[nodiscard]] SequenceStrip tile_sequence_layout(const SequenceStripSize& size, const QRectF& body, double font_scale);

}  // namespace kvscope::viz
