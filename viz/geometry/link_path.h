// The curve that links one object in two panels: a cubic that leaves the edge of one anchor at a right angle and meets
// the facing edge of the other anchor at a right angle.
//
//   +-----+                  +-----+
//   |from |                  |from |-.
//   +--o--+                  +-----+  `.    +----+
//      `----.                           `-->| to |
//   +--------o+                             +----+
//   |   to    |
//   +---------+
//
// If one anchor is above the other, the curve goes from the middle of the bottom edge to the middle of the top edge;
// otherwise from the right edge to the left edge. A curve stays within the convex hull of its four points. These are
// clamped to the board, so the curve never leaves it.
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

// Precondition (caller): both anchors are within `board`. If the anchors overlap, start and end are the same point.
// `meets`: where along the top or bottom edge of `to` the curve ends, from its left (0) to its right (1). A value other
// than 0.5 avoids the text in the middle of the cells above.
[[nodiscard]] LinkPath link_path(const QRectF& from, const QRectF& to, const QRectF& board, double meets = 0.5);

// From the right edge of `from` to the left edge of `to`, at any height: links of adjacent panels.
// Precondition (caller): both lie within `board`.
[[nodiscard]] LinkPath side_link(const QRectF& from, const QRectF& to, const QRectF& board);

// t in [0, 1] from start to end.
[[nodiscard]] QPointF point_at(const LinkPath& path, double t);

// A piece of a curve: either over a line of text (drawn so that the text stays legible) or between texts.
struct LinkPiece {
  LinkPath path;
  bool over_text = false;
};
// The whole curve in order, cut where it enters and leaves `texts`; each piece begins where the previous one ends.
// Crossings shorter than 1/256 of the curve may be missed; a line of text is higher than that.
// Example: straight down from (0,0) to (0,100) over a text from y 40 to 60: three pieces, the middle one over it.
[[nodiscard]] std::vector<LinkPiece> pieces(const LinkPath& path, std::span<const QRectF> texts);

// The rectangle that the curve covers, with `margin` around it: the area to repaint when the curve changes. [px]
[[nodiscard]] QRectF bounds(const LinkPath& path, double margin);

}  // namespace kvscope::viz
