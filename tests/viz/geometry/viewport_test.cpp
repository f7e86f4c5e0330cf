#include "viz/geometry/viewport.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

namespace kvscope::viz::viewport_test {
namespace {

// Content 300 px right of the corner, doubled: it would slide 300 px away if the offset did not follow.
TEST(ZoomedAt, KeepsTheContentUnderThePointer) {
  const Viewport viewport = zoomed_at({1, {200, 50}}, 1, 2, {100, 10});
  EXPECT_EQ(viewport, (Viewport{2, {(200 + 100) * 2 - 100, (50 + 10) * 2 - 10}}));
}

// A fitting viewport stores zoom 0, so the effective zoom is a parameter; dividing by the stored zoom would be by zero.
TEST(ZoomedAt, TakesTheZoomInForceNotTheStoredOne) {
  EXPECT_EQ(zoomed_at({0, {0, 0}}, 4, 8, {10, 20}), (Viewport{8, {10, 20}}));
}

TEST(ZoomedAt, AndBackIsWhereItWas) {
  EXPECT_TRUE(rc::check([] {
    const Viewport viewport{*rc::gen::inRange(1, 100) / 10.0,
                            QPointF(*rc::gen::inRange(0, 10'000), *rc::gen::inRange(0, 10'000))};
    const QPointF at(*rc::gen::inRange(0, 1000), *rc::gen::inRange(0, 1000));
    const double to = *rc::gen::inRange(1, 500) / 10.0;
    const Viewport there = zoomed_at(viewport, viewport.zoom, to, at);
    const Viewport back = zoomed_at(there, to, viewport.zoom, at);
    RC_ASSERT(back.zoom == viewport.zoom);
    RC_ASSERT((back.offset - viewport.offset).manhattanLength() < 1e-6);
    // The law itself: content point = (offset + at) / zoom.
    const QPointF before = (viewport.offset + at) / viewport.zoom, after = (there.offset + at) / to;
    RC_ASSERT((before - after).manhattanLength() < 1e-6 * (1 + before.manhattanLength()));
  }));
}

TEST(ClampOffset, ShowsNoEmptinessBeyondTheContent) {
  EXPECT_EQ(clamp_offset({-5, 900}, {1000, 1000}, {200, 300}), QPointF(0, 700));
  EXPECT_EQ(clamp_offset({333, 444}, {1000, 1000}, {200, 300}), QPointF(333, 444));
}

// For content smaller than the panel, the maximum offset is negative, and std::clamp with it is undefined.
TEST(ClampOffset, ContentSmallerThanThePanelStaysAtItsBeginning) {
  EXPECT_EQ(clamp_offset({50, -50}, {100, 100}, {200, 300}), QPointF(0, 0));
}

// One axis at a time: the oracle finds the smallest shift by trying every whole offset.
TEST(OffsetToShow, IsTheNearestOffsetThatShowsAllOfTheTarget) {
  EXPECT_TRUE(rc::check([] {
    const int from = *rc::gen::inRange(-50, 400), length = *rc::gen::inRange(20, 200);
    const int first = *rc::gen::inRange(0, 400), size = *rc::gen::inRange(1, 150), margin = *rc::gen::inRange(0, 9);
    const QPointF moved = offset_to_show(QPointF(from, 0), QRectF(first, 0, size, 1), QSizeF(length, 1000), margin);
    if (size + 2 * margin > length) {  // larger than the panel: shown from its beginning
      RC_ASSERT(moved.x() == first - margin);
      return;
    }
    int best = 10'000;
    for (int offset = -600; offset <= 600; ++offset) {
      const bool shows = first - margin >= offset && first + size + margin <= offset + length;
      if (shows && std::abs(offset - from) < std::abs(best - from)) best = offset;
    }
    RC_ASSERT(moved.x() == best);
  }));
}

TEST(OffsetToShow, KeepsTheOffsetOfAVisibleTarget) {
  EXPECT_EQ(offset_to_show({100, 100}, {150, 150, 20, 20}, {200, 200}, 8), QPointF(100, 100));
}

}  // namespace
}  // namespace kvscope::viz::viewport_test
