#include "viz/geometry/link_path.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

namespace kvscope::viz::link_path_test {
namespace {

const QRectF kBoard(0, 0, 1600, 1000);

QRectF any_anchor() {
  const double width = *rc::gen::inRange(1, 400), height = *rc::gen::inRange(1, 200);
  return {*rc::gen::inRange(0, 1600 - static_cast<int>(width)) * 1.0,
          *rc::gen::inRange(0, 1000 - static_cast<int>(height)) * 1.0, width, height};
}

// Whether a point is on the outline, neither inside nor outside. QRectF::contains includes the outline.
bool on_edge(const QRectF& rect, QPointF p) {
  return rect.contains(p) &&
         (p.x() == rect.left() || p.x() == rect.right() || p.y() == rect.top() || p.y() == rect.bottom());
}

// The worked number of the header.
TEST(LinkPath, LeavesTheBottomAndMeetsTheTopOfWhatLiesBelow) {
  const LinkPath path = link_path({0, 0, 10, 10}, {100, 200, 20, 10}, kBoard);
  EXPECT_EQ(path, (LinkPath{{5, 10}, {5, 105}, {110, 105}, {110, 200}}));
}

// Labels are in the middle of table cells: a curve down to the middle of the fourth row would cross three of them.
TEST(LinkPath, MeetsTheEdgeWhereItIsAskedTo) {
  const LinkPath path = link_path({0, 0, 10, 10}, {100, 200, 20, 10}, kBoard, 0.75);
  EXPECT_EQ(path.end, QPointF(115, 200));
  EXPECT_EQ(path.control2, QPointF(115, 105)) << "and still at a right angle";
}

// A table cell right of a block and at its height: a curve from bottom to top would loop through both labels.
TEST(LinkPath, GoesFromSideToSideBetweenNeighborsOfOneHeight) {
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

// The control points of an anchor at the board's edge would be outside the board and pull the curve out of it.
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

// Two low anchors at the very edge: the bow of a short curve, and its hull, would extend past the edge.
TEST(LinkPath, KeepsItsControlsOnTheBoardToo) {
  const LinkPath path = link_path({0, 980, 10, 10}, {500, 994, 10, 6}, kBoard);
  EXPECT_EQ(path.control1, QPointF(5, 1000));
  const LinkPath up = link_path({0, 10, 10, 10}, {500, 0, 10, 6}, kBoard);
  EXPECT_EQ(up.control1, QPointF(5, 0));
}

// The curve joins the facing edges: the straight line between its ends passes through neither anchor, so the curve does
// not cross the label at its start.
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

// The worked number of the header.
TEST(Pieces, OfACurveThroughALineOfTextAreThree) {
  const LinkPath down{{0, 0}, {0, 100.0 / 3}, {0, 200.0 / 3}, {0, 100}};
  const std::vector<QRectF> texts{{-10, 40, 20, 20}};
  const std::vector<LinkPiece> cut = pieces(down, texts);
  ASSERT_EQ(cut.size(), 3U);
  EXPECT_FALSE(cut[0].over_text);
  EXPECT_TRUE(cut[1].over_text);
  EXPECT_FALSE(cut[2].over_text);
  EXPECT_NEAR(cut[1].path.start.y(), 40, 1e-3);
  EXPECT_NEAR(cut[1].path.end.y(), 60, 1e-3);
}

TEST(Pieces, WithoutTextIsTheWholeCurve) {
  const LinkPath path = link_path({0, 0, 10, 10}, {100, 200, 20, 10}, kBoard);
  const std::vector<LinkPiece> cut = pieces(path, {});
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].path, path);
  EXPECT_FALSE(cut[0].over_text);
}

// A wrong piece would deviate from the curve at a title; a missing piece would leave a gap.
TEST(Pieces, AreTheCurveInOrderAndSplitAtTheTexts) {
  EXPECT_TRUE(rc::check([] {
    const LinkPath path = link_path(any_anchor(), any_anchor(), kBoard);
    const auto texts = *rc::gen::container<std::vector<QRectF>>(
        2, rc::gen::exec([] {
          return QRectF(*rc::gen::inRange(0, 1500) + 0.3, *rc::gen::inRange(0, 950) + 0.7, *rc::gen::inRange(30, 900),
                        *rc::gen::inRange(20, 60));
        }));
    const std::vector<LinkPiece> cut = pieces(path, texts);
    RC_ASSERT(cut.front().path.start == path.start);
    RC_ASSERT((cut.back().path.end - path.end).manhattanLength() < 1e-6);
    for (std::size_t i = 1; i < cut.size(); ++i) {
      RC_ASSERT((cut[i].path.start - cut[i - 1].path.end).manhattanLength() < 1e-6);
      RC_ASSERT(cut[i].over_text != cut[i - 1].over_text);
    }
    for (const LinkPiece& piece : cut) {
      for (int i = 0; i <= 16; ++i) {
        const QPointF at = point_at(piece.path, i / 16.0);
        double nearest = 1e9;
        for (int k = 0; k <= 2000; ++k) {
          nearest = std::min(nearest, (point_at(path, k / 2000.0) - at).manhattanLength());
        }
        RC_ASSERT(nearest < 2);
        // As exact as the samples: 1/256 of a curve that may be 2,000 px long.
        const auto inside = [&](double margin) {
          return std::ranges::any_of(
              texts, [&](const QRectF& text) { return text.adjusted(margin, margin, -margin, -margin).contains(at); });
        };
        const bool as_it_says = piece.over_text ? inside(-9) : !inside(9);
        RC_ASSERT(as_it_says);
      }
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

// Panels side by side: the curve leaves to the right and arrives from the left, also where one place is far higher.
TEST(SideLink, LeavesToTheRightAndArrivesFromTheLeft) {
  const QRectF board(0, 0, 1000, 600), from(100, 500, 80, 10), to(400, 20, 90, 6);
  const LinkPath path = side_link(from, to, board);
  EXPECT_EQ(path.start, QPointF(180, 505));
  EXPECT_EQ(path.end, QPointF(400, 23));
  EXPECT_EQ(path.control1, QPointF(290, 505));
  EXPECT_EQ(path.control2, QPointF(290, 23));
}

}  // namespace
}  // namespace kvscope::viz::link_path_test
