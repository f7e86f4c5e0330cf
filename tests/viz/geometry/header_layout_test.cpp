#include "viz/geometry/header_layout.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>

namespace kvscope::viz::header_layout_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const QRectF kBody(20, 0, 1560, 52);

HeaderLayout with_bar(double left, double right) {
  HeaderLayout layout;
  layout.bar = QRectF(left, 20, right - left, 6);
  return layout;
}

TEST(HeaderLayout, PutsTheCounterAtTheRightTheBarBesideItAndTheWordsInTheRest) {
  const HeaderLayout layout = header_layout(kBody, 1, 180, 70);
  EXPECT_EQ(layout.counter, QRectF(1510, 0, 70, 52));
  EXPECT_EQ(layout.bar, QRectF(1510 - 14 - 468, 23, 468, 6));
  EXPECT_EQ(layout.title, QRectF(20, 0, 180, 52));
  EXPECT_EQ(layout.facts.left(), 20 + 180 + 16);
  EXPECT_EQ(layout.facts.right(), layout.grip.left() - 14);
}

// A run's name may be 200 characters long: first the facts are omitted, then the name is elided; the bar does not move.
TEST(HeaderLayout, ALongNamePushesTheFactsOutButNotTheBar) {
  const HeaderLayout calm = header_layout(kBody, 1, 180, 70), crowded = header_layout(kBody, 1, 2000, 70);
  EXPECT_TRUE(crowded.facts.isEmpty());
  EXPECT_EQ(crowded.title.right(), calm.facts.right());
  EXPECT_EQ(crowded.bar, calm.bar);
}

// At every width and font size the parts are in reading order, inside the body, and do not overlap.
TEST(HeaderLayout, NeverOverlapsAndStaysInside) {
  EXPECT_TRUE(rc::check([] {
    const QRectF body(20, *rc::gen::inRange(0, 9), *rc::gen::inRange(440, 3000), *rc::gen::inRange(30, 120));
    const double scale = *rc::gen::element(1.0, 1.25, 1.5, 2.0);
    const HeaderLayout layout =
        header_layout(body, scale, *rc::gen::inRange(10, 1500), *rc::gen::inRange(40, 90) * scale);
    RC_ASSERT(layout.title.left() == body.left());
    const bool below = layout.facts.top() >= layout.title.bottom() - 8 * scale && layout.facts.left() == body.left();
    RC_ASSERT(layout.facts.isEmpty() || below || layout.facts.left() > layout.title.right());
    RC_ASSERT(layout.title.right() <= layout.grip.left() && (below || layout.facts.right() <= layout.grip.left()));
    RC_ASSERT(body.contains(layout.facts) || layout.facts.isEmpty());
    RC_ASSERT(layout.grip.contains(layout.bar));
    RC_ASSERT(layout.bar.width() >= 90 && layout.grip.left() >= body.left());
    RC_ASSERT(layout.bar.right() + layout.handle <= layout.counter.left());
    RC_ASSERT(std::abs(layout.counter.right() - body.right()) < 1e-9);
    RC_ASSERT(layout.grip.top() >= body.top() && layout.grip.bottom() <= body.bottom());
  }));
}

// Regression: with large text a long name left no room for the facts. A header of two lines has them below the name.
TEST(HeaderLayout, AHeaderOfTwoLinesHasTheFactsBelowTheName) {
  const HeaderLayout layout = header_layout({20, 0, 1326, 205}, 2.5, 600, 150);
  EXPECT_EQ(layout.facts, QRectF(20, 110, 1326, 75));
  EXPECT_EQ(layout.title, QRectF(20, 0, 600, 130));
  EXPECT_EQ(layout.bar.center().y(), 65);
}

// The worked number of the header.
TEST(StepAt, IsTheNearestStep) {
  const HeaderLayout layout = with_bar(100, 500);
  EXPECT_EQ(step_x(layout, 1, 5), 200);
  EXPECT_EQ(step_at(layout, 149, 5), 0);
  EXPECT_EQ(step_at(layout, 150, 5), 1);
  EXPECT_EQ(step_at(layout, 249, 5), 1);
  EXPECT_EQ(step_at(layout, 250, 5), 2);
}

// Dragging may continue past both ends of the bar.
TEST(StepAt, OutsideTheBarIsTheFirstOrTheLast) {
  const HeaderLayout layout = with_bar(100, 500);
  EXPECT_EQ(step_at(layout, -1000, 5), 0);
  EXPECT_EQ(step_at(layout, 5000, 5), 4);
}

TEST(StepAt, OfARunOfOneStepIsThatStepEverywhere) {
  const HeaderLayout layout = with_bar(100, 500);
  for (const double x : {0.0, 100.0, 300.0, 500.0}) EXPECT_EQ(step_at(layout, x, 1), 0);
  EXPECT_EQ(step_x(layout, 0, 1), 500);
}

// Before the first step the index is -1: the handle must not be left of the bar.
TEST(StepX, IsHeldWithinTheBar) {
  const HeaderLayout layout = with_bar(100, 500);
  EXPECT_EQ(step_x(layout, -1, 5), 100);
  EXPECT_EQ(step_x(layout, 9, 5), 500);
}

// A click on the handle selects the step that the handle shows, also for a million steps on a few hundred px.
TEST(StepAt, InvertsStepX) {
  EXPECT_TRUE(rc::check([] {
    const HeaderLayout layout = with_bar(100, 100 + *rc::gen::inRange(90, 900));
    const auto steps = *rc::gen::inRange<std::int64_t>(2, 1'000'000);
    const auto step = *rc::gen::inRange<std::int64_t>(0, steps);
    RC_ASSERT(step_at(layout, step_x(layout, step, steps), steps) == step);
  }));
}

TEST(BarTicks, StandWhereItHappened) {
  const std::vector<std::int32_t> counts{0, 2, 0, 0, 1};
  EXPECT_THAT(bar_ticks(with_bar(100, 500), counts), ElementsAre(200, 500));
  EXPECT_THAT(bar_ticks(with_bar(100, 500), std::vector<std::int32_t>(9)), IsEmpty());
}

// A million preemptions are drawn as a few hundred ticks, and every preemption has a tick at its pixel.
TEST(BarTicks, AreOneAPixelHoweverManyStepsThereAre) {
  const std::vector<std::int32_t> counts(100'000, 1);
  const std::vector<double> ticks = bar_ticks(with_bar(100, 500), counts);
  ASSERT_EQ(ticks.size(), 401u);
  for (std::size_t i = 0; i < ticks.size(); ++i) EXPECT_EQ(ticks[i], 100 + static_cast<double>(i));
}

}  // namespace
}  // namespace kvscope::viz::header_layout_test
