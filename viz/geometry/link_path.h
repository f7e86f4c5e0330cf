// The curve that joins one object in two panels: a cubic that leaves the edge of one anchor at a right angle and meets
// the facing edge of the other at a right angle.
//
//   +-----+                  +-----+
//   |from |                  |from |-.
//   +--o--+                  +-----+  `.    +----+
//      `----.                           `-->| to |
//   +--------o+                             +----+
//   |   to    |
//   +---------+
//
// Above one another: from the bottom's middle to the top's middle; else side by side: from the right to the left. A
// curve lies within the hull of its four points, and these are kept within the board, so it never leaves the board.
// Example: {0,0 10x10} to {100,200 20x10}: (5,10) (5,105) (110,105) (110,200).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

namespace kvscope::viz {

struct LinkPath {
  QPointF start, control1, control2, end;
  friend bool operator==(const LinkPath&, const LinkPath&) = default;
};

// Precondition (caller): both anchors lie within `board`. Anchors that overlap have nothing between them to join: start
// and end are then the same point.
// `meets`: where along the top or bottom edge of `to` the curve ends, from its left (0) to its right (1); beside the
// middle it passes by what is written in the middle of the cells above.
[[nodiscard]] LinkPath link_path(const QRectF& from, const QRectF& to, const QRectF& board, double meets = 0.5);

// From the right edge of `from` to the left edge of `to`, however high they are: the way of the data through panels that
// stand side by side. Precondition (caller): both lie within `board`.
[[nodiscard]] LinkPath side_link(const QRectF& from, const QRectF& to, const QRectF& board);

// t in [0, 1] from start to end.
[[nodiscard]] QPointF point_at(const LinkPath& path, double t);

// A stretch of a curve: over a line of text, which it must not strike out, or between two.
struct LinkPiece {
  LinkPath path;
  bool over_text = false;
};
// All of the curve in order, cut where it enters and leaves `texts`; each piece begins where the one before it ends.
// Crossings shorter than a 256th of the way may be missed: a line of text is higher.
// Example: straight down from (0,0) to (0,100) over a text from y 40 to 60: three pieces, the middle one over it.
[[nodiscard]] std::vector<LinkPiece> pieces(const LinkPath& path, std::span<const QRectF> texts);

// Everything the curve covers, and `margin` around it: what to paint again when it goes. [px]
[[nodiscard]] QRectF bounds(const LinkPath& path, double margin);

}  // namespace kvscope::viz
