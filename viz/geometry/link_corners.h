// The way of a link around cards: horizontal and vertical lines with rounded corners, in the gaps between cards and
// beside the cells in them. link_route.h has the ways inside a panel of cells.
//
//   +-----o---+
//   |     |   |
//   +-----|---+
//         `-------.       the gap between two cards
//   +---------+   |
//   |    to o-----'       the space beside the cells of the lower one
//   +---------+
#pragma once

#include <span>

#include <QtCore/QPointF>

#include "viz/geometry/link_route.h"

namespace kvscope::viz {

// Horizontal and vertical lines through the corners, in order, each corner rounded. Corners at the same place as the
// one before are skipped. Precondition (caller): at least two corners at different places; from corner to corner only x
// or only y changes. Example: (0,0) (0,50) (80,50): a line to (0,44), a quarter circle to (6,50), a line to (80,50).
[[nodiscard]] Link route_through(std::span<const QPointF> corners);

}  // namespace kvscope::viz
