#include "viz/geometry/link_path.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace kvscope::viz {
namespace {

const QRectF kBoard(0, 0, 1600, 1000);

QRectF any_anchor() {
  const double width = *rc::gen::inRange(1, 400), height = *rc::gen::inRange(1, 200);
  return {*rc::gen::inRange(0, 1600 - static_cast<int>(width)) * 1.0,
          *rc::gen::inRange(0, 1000 - static_cast<int>(height)) * 1.0, width, height};
}

// On the outline, not inside and not beyond. QRectF::contains takes the outline in.
bool on_edge(const QRectF& rect, QPointF p) {
  return rect.contains(p) &&
         (p.x() == rect.left() || p.x() == rect.right() || p.y() == rect.top() || p.y() == rect.bottom());
}

// The worked number of the header.
TEST(LinkPath, LeavesTheBottomAndMeetsTheTopOfWhatLiesBelow) {
  const LinkPath path = link_path({0, 0, 10, 10}, {100, 200, 20, 10}, kBoard);
  EXPECT_EQ(path, (LinkPath{{5, 10}, {5, 105}, {110, 105}, {110, 200}}));
}

// Labels stand in the middle of table cells: a curve down to the fourth row's middle would strike out three of them.
TEST(LinkPath, MeetsTheEdgeWhereItIsAskedTo) {
  const LinkPath path = link_path({0, 0, 10, 10}, {100, 200, 20, 10}, kBoard, 0.75);
  EXPECT_EQ(path.end, QPointF(115, 200));
  EXPECT_EQ(path.control2, QPointF(115, 105)) << "and still at a right angle";
}

// A table cell right of a block and at its height: a curve from bottom to top would loop through both labels.
TEST(LinkPath, GoesFromSideToSideBetweenNeighboursOfOneHeight) {
  const LinkPath path = link_path({0, 100, 20, 40}, {220, 110, 20, 20}, kBoard);
  EXPECT_EQ(path, (LinkPath{{20, 120}, {120, 120}, {120, 120}, {220, 120}}));
  const LinkPath back = link_path({220, 110, 20, 20}, {0, 100, 20, 40}, kBoard);
  EXPECT_EQ(back, (LinkPath{{220, 120}, {120, 120}, {120, 120}, {20, 120}}));
}

// Half of 4 px would be a corner, not a curve.
TEST(LinkPath, BowsOverAShortWayToo) {
  const LinkPath path = link_path({100, 100, 10, 10}, {300, 114, 10, 10}, kBoard);
  EXPECT_EQ(path.control1, QPointF(105, 128));
  EXPECT_EQ(path.control2, QPointF(305, 96));
}

TEST(LinkPath, OfAnchorsThatOverlapIsAPointOfBoth) {
  const QRectF from(100, 100, 50, 50), to(120, 90, 60, 30);
  const LinkPath path = link_path(from, to, kBoard);
  EXPECT_EQ(path.start, path.end);
  EXPECT_TRUE(from.contains(path.start) && to.contains(path.start));
}

// The controls of an anchor at the board's edge would lie outside it and pull the curve out of the picture.
TEST(LinkPath, StaysWithinTheBoardAndEndsOnTheEdgesOfBothAnchors) {
  EXPECT_TRUE(rc::check([] {
    const QRectF from = any_anchor(), to = any_anchor();
    const LinkPath path = link_path(from, to, kBoard, *rc::gen::inRange(0, 11) / 10.0);
    for (int i = 0; i <= 64; ++i) {
      RC_ASSERT(kBoard.adjusted(-1e-9, -1e-9, 1e-9, 1e-9).contains(point_at(path, i / 64.0)));
      RC_ASSERT(bounds(path, 1e-6).contains(point_at(path, i / 64.0)));
    }
    RC_PRE(!from.adjusted(-1, -1, 1, 1).intersects(to));
    RC_ASSERT(on_edge(from, path.start) && on_edge(to, path.end));
  }));
}

// Two low anchors at the very edge: the bow over a short way would reach past it, and the hull with it.
TEST(LinkPath, KeepsItsControlsOnTheBoardToo) {
  const LinkPath path = link_path({0, 980, 10, 10}, {500, 994, 10, 6}, kBoard);
  EXPECT_EQ(path.control1, QPointF(5, 1000));
  const LinkPath up = link_path({0, 10, 10, 10}, {500, 0, 10, 6}, kBoard);
  EXPECT_EQ(up.control1, QPointF(5, 0));
}

// The two edges that face one another: the straight way between the ends passes through neither anchor, so the curve
// does not begin by crossing the label it starts from.
TEST(LinkPath, JoinsTheFacingEdges) {
  EXPECT_TRUE(rc::check([] {
    const QRectF from = any_anchor(), to = any_anchor();
    RC_PRE(!from.adjusted(-1, -1, 1, 1).intersects(to));
    const LinkPath path = link_path(from, to, kBoard);
    const QRectF inner_from = from.adjusted(1e-6, 1e-6, -1e-6, -1e-6), inner_to = to.adjusted(1e-6, 1e-6, -1e-6, -1e-6);
    for (int i = 0; i <= 64; ++i) {
      const QPointF straight = path.start + (path.end - path.start) * (i / 64.0);
      RC_ASSERT(!inner_from.contains(straight) && !inner_to.contains(straight));
    }
  }));
}

// De Casteljau's construction as a second way to the same point.
TEST(PointAt, IsDeCasteljausPoint) {
  EXPECT_TRUE(rc::check([] {
    const LinkPath path = link_path(any_anchor(), any_anchor(), kBoard);
    const double t = *rc::gen::inRange(0, 1001) / 1000.0;
    const auto mix = [t](QPointF a, QPointF b) { return a + (b - a) * t; };
    const QPointF ab = mix(path.start, path.control1), bc = mix(path.control1, path.control2),
                  cd = mix(path.control2, path.end);
    const QPointF expected = mix(mix(ab, bc), mix(bc, cd));
    RC_ASSERT((point_at(path, t) - expected).manhattanLength() < 1e-6);
  }));
}

}  // namespace
}  // namespace kvscope::viz
