// The boxes of a tile that TMA copies, in a grid (a row of it for each page, a column for each band of columns), and
// the barrier that they are counted by, below.
//
//   +-------+ +-------+
//   | box 0 | | box 1 |     heading, rows of the box, a line for its state
//   +-------+ +-------+
//   | box 2 | | box 3 |
//   +-------+ +-------+
//   [=====bar=====    ]     the barrier, with lines of text
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

namespace kvscope::viz {

struct TmaSize {
  std::int64_t boxes = 0;
  std::int64_t across = 1;  // boxes side by side: bands of columns
  std::int64_t rows = 0;    // of one box
  std::int64_t axes = 0;    // of the tensor map, one line each; 0: two lines about it
  bool offers = false;      // a line below the barrier for other paths
};

struct TmaBox {
  QRectF frame;    // [px]
  QRectF heading;  // [px] empty where there is no room
  QRectF rows;     // [px] inside the frame
  QRectF state;    // [px] the line under the frame; empty where there is no room
};

struct TmaLayout {
  TmaSize size;
  QRectF map;         // [px] lines about the tensor map; empty where there is no room
  bool axes = false;  // whether it has a line for each axis
  std::vector<TmaBox> boxes;
  double pitch = 1, gap = 0;  // [px] of a row of a box
  QRectF barrier;             // [px] all of it; empty where there is no room
  QRectF bar;                 // [px]
  QRectF barrier_text;        // [px] under the bar
  QRectF offers;              // [px] a line at the bottom; empty where there is no room or no other path

  [[nodiscard]] QRectF row_rect(std::int64_t box, std::int64_t row) const;
  struct Place {
    std::int64_t box = 0;
    std::int64_t row = -1;  // of the box; -1: beside its rows
    friend bool operator==(const Place&, const Place&) = default;
  };
  [[nodiscard]] std::optional<Place> at(QPointF point) const;
};

[[nodiscard]] TmaLayout tma_layout(const TmaSize& size, const QRectF& body, double font_scale);

}  // namespace kvscope::viz
