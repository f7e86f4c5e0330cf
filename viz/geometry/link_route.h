// The way of a link past the cells of panels: along lanes between columns or rows, and in a curve from lane to lane.
// The numbers of cells are inside the cells, so a link on lanes crosses none of them.
//
//   +-----+-----+-----+
//   |  1  |from |  3  |      the lane right of `from`, down to the end of its panel
//   +-----+-----o-----+
//   |  4  |  5  |  6  |
//   +-----+-----|-----+
//                `-.         a curve
//   +-----+-----+--|--+
//   |  0  |  1  |  2  |      the lane right of the cell above `to`
//   +-----+-----+--o--+
//   |  3  |  4  | to  |
//
// Example: from {0,0 10x10} with a lane at x 11 down to y 50, to {100,200 20x10} with a lane at x 121 from y 150: a
// line from (11,10) to (11,50), a curve to (121,150), a line to (121,200).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "viz/geometry/link_path.h"

namespace kvscope::viz {

// A line between two columns of cells (vertical) or two rows of cells (horizontal), from one end of a panel's content
// to the other. [px]
struct Lane {
  double at = 0;               // x of a vertical lane, y of a horizontal one
  double first = 0, last = 0;  // along the lane; first <= last
};

struct Link {
  std::vector<LinkPath> parts;  // each begins where the one before ends; not empty
  [[nodiscard]] QPointF start() const { return parts.front().start; }
  [[nodiscard]] QPointF end() const { return parts.back().end; }
};

// From the lower edge of `from`, at the lane `out`, down to the upper edge of `to`, at the lane `in`. `between`: the
// lanes of the panels between the two, from top to bottom.
// Preconditions (caller): from.bottom() <= to.top(); all are within the board.
[[nodiscard]] Link route_down(const QRectF& from, const Lane& out, std::span<const Lane> between, const QRectF& to,
                              const Lane& in);

// From the right edge of `from`, at the horizontal lane `out`, to the left edge of `to`, at the lane `in`.
// Precondition (caller): from.right() <= to.left().
[[nodiscard]] Link route_right(const QRectF& from, const Lane& out, const QRectF& to, const Lane& in);

}  // namespace kvscope::viz
