#include "viz/geometry/step_axis.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>

namespace kvscope::viz::step_axis_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// --- ticks -----------------------------------------------------------------------------------------------------------

// The worked number of the header.
TEST(NiceTicks, OfARunOf206StepsAreEvery50) {
  EXPECT_EQ(nice_step(206, 5, 1), 50);
}

// Labels of counts are whole numbers: a run with at most two waiting requests must not have 0, 1, 1, 2, 2 on its axis.
TEST(NiceTicks, OfASmallCountAreWholeNumbers) {
  EXPECT_EQ(nice_step(2, 4, 1), 1);
}

// The oracle tries every 1, 2 and 5 times a power of ten from the smallest up.
TEST(NiceTicks, AreTheClosestNiceOnesThatAreNotTooMany) {
  EXPECT_TRUE(rc::check([] {
    const double length = *rc::gen::inRange(1, 2'000'000) / 13.0;
    const int most = *rc::gen::inRange(1, 12);
    const double step = nice_step(length, most, 0);
    double expected = 0;
    for (int power = -9; power <= 9 && expected == 0; ++power) {
      for (const int factor : {1, 2, 5}) {
        const double candidate = factor * std::pow(10, power);
        if (expected == 0 && candidate * most >= length * (1 - 1e-9)) expected = candidate;
      }
    }
    RC_ASSERT(std::abs(step - expected) <= 1e-12 * expected);
  }));
}

// The worked number of the header: both axes share the grid lines; otherwise labels at the right would be between
// lines.
TEST(CountAxes, EndAfterEquallyManyPartsEach) {
  const std::vector<int> parts{3, 4, 5};
  EXPECT_EQ(count_axes(6, 64, parts), (CountAxes{4, 8, 80}));
  EXPECT_EQ(count_axes(256, 8192, parts), (CountAxes{3, 300, 15'000}));
}

// A run in which no request waits still has an axis of whole numbers.
TEST(CountAxes, OfNothingCountOneEachPart) {
  const std::vector<int> parts{2, 4};
  EXPECT_EQ(count_axes(0, 0, parts), (CountAxes{2, 2, 2}));
  EXPECT_EQ(count_axes(1, 1, parts), (CountAxes{2, 2, 2}));
}

TEST(CountAxes, HoldTheHighestValueAndWasteLeast) {
  EXPECT_TRUE(rc::check([] {
    const double left = *rc::gen::inRange(0, 100'000), right = *rc::gen::inRange(0, 3000);
    const std::vector<int> parts{3, 4, 5};
    const CountAxes axes = count_axes(left, right, parts);
    RC_ASSERT(axes.left_top >= left && axes.right_top >= right);
    double least = 1e300;
    for (const int n : parts) {
      const double waste = n * nice_step(left, n, 1) * n * nice_step(right, n, 1);
      least = std::min(least, waste);
    }
    RC_ASSERT(std::abs(axes.left_top * axes.right_top - least) <= 1e-9 * least);
    RC_ASSERT(nice_step(axes.left_top / axes.parts, 1, 0) == axes.left_top / axes.parts);
    RC_ASSERT(nice_step(axes.right_top / axes.parts, 1, 0) == axes.right_top / axes.parts);
  }));
}

// --- the axis --------------------------------------------------------------------------------------------------------

TEST(StepAxis, FitsTheWholeRunUntilItIsZoomed) {
  const StepAxis axis = step_axis(100, 1000, 200, {});
  EXPECT_EQ(axis.px_per_step, 5);
  EXPECT_EQ(axis.x(3), 117.5);
  EXPECT_EQ(axis.visible(), std::pair(std::int64_t{0}, std::int64_t{200}));
  EXPECT_EQ(axis.at(114.9), 2);
  EXPECT_EQ(axis.at(115), 3);
  EXPECT_EQ(axis.at(0), 0);  // outside the plot: the nearest step
  EXPECT_EQ(axis.at(5000), 199);
}

TEST(StepAxis, OfOneStepIsThatStepEverywhere) {
  const StepAxis axis = step_axis(10, 500, 1, {});
  EXPECT_EQ(axis.x(0), 260);
  EXPECT_EQ(axis.at(11), 0);
  EXPECT_EQ(axis.at(509), 0);
  EXPECT_EQ(zoomed_steps(axis, 4, 200), Viewport{});  // already wider than a step may become
}

// A division by the number of steps would show as an infinity or a crash.
TEST(StepAxis, OfNoStepsShowsNothingAndBreaksNothing) {
  const StepAxis axis = step_axis(10, 500, 0, {2, {30, 0}});
  EXPECT_EQ(axis.at(100), std::nullopt);
  EXPECT_EQ(axis.visible(), std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_THAT(step_ticks(axis, 0, 60), IsEmpty());
  EXPECT_EQ(zoomed_steps(axis, 2, 100), Viewport{});
  EXPECT_EQ(scrolled_steps(axis, 20), Viewport{});
  EXPECT_EQ(revealed_step(axis, 0), Viewport{});
}

struct Axis {
  StepAxis axis;
  Viewport viewport;
};
Axis any_axis() {
  const std::int64_t steps = *rc::gen::element<std::int64_t>(1, 2, 7, 99, 1000, 12'345, 1'000'000);
  const double width = *rc::gen::inRange(1, 2000);
  const double left = *rc::gen::inRange(0, 300);
  Viewport viewport;
  if (*rc::gen::arbitrary<bool>()) {
    viewport.zoom = std::pow(10, *rc::gen::inRange(-40, 20) / 10.0);
    viewport.offset.setX(*rc::gen::inRange(-100, 5000) / 3.0);
  }
  return {step_axis(left, width, steps, viewport), viewport};
}

TEST(StepAxis, ShowsNoEmptinessWhateverWasAskedFor) {
  EXPECT_TRUE(rc::check([] {
    const StepAxis axis = any_axis().axis;
    RC_ASSERT(axis.edge(0) <= axis.left + 1e-6);
    RC_ASSERT(axis.edge(static_cast<double>(axis.steps)) >= axis.right() - 1e-6);
    RC_ASSERT(axis.px_per_step <= std::max(kWidestStep, axis.width / static_cast<double>(axis.steps)) * (1 + 1e-12));
  }));
}

TEST(StepAxis, FindsEachVisibleStepInTheMiddleOfItsColumn) {
  EXPECT_TRUE(rc::check([] {
    const StepAxis axis = any_axis().axis;
    const auto [first, end] = axis.visible();
    RC_ASSERT(first < end);
    const std::int64_t index = first + *rc::gen::inRange<std::int64_t>(0, end - first);
    RC_ASSERT(axis.at(axis.x(index)) == index);
    // Nothing but these shows.
    RC_ASSERT(axis.edge(static_cast<double>(first)) <= axis.left + 1e-6);
    RC_ASSERT(axis.edge(static_cast<double>(end)) >= axis.right() - 1e-6);
    if (first > 0) RC_ASSERT(axis.edge(static_cast<double>(first)) <= axis.left + 1e-6);
    if (end < axis.steps) RC_ASSERT(axis.edge(static_cast<double>(end - 1)) < axis.right() + 1e-6);
  }));
}

// An axis can be restored from its viewport; otherwise each turn of the wheel would add an error.
TEST(StepAxis, IsRestoredFromItsViewport) {
  EXPECT_TRUE(rc::check([] {
    const StepAxis axis = any_axis().axis;
    const StepAxis again = step_axis(axis.left, axis.width, axis.steps, viewport_of(axis));
    RC_ASSERT(std::abs(again.px_per_step - axis.px_per_step) <= 1e-9 * axis.px_per_step);
    RC_ASSERT(std::abs(again.offset - axis.offset) <= 1e-3);
  }));
}

TEST(StepAxis, ZoomsAroundThePointAndBackOutToWhatFits) {
  EXPECT_TRUE(rc::check([] {
    const StepAxis axis = any_axis().axis;
    const double x = axis.left + axis.width * *rc::gen::inRange(0, 100) / 100;
    const double under = (x - axis.left + axis.offset) / axis.px_per_step;
    const StepAxis in = step_axis(axis.left, axis.width, axis.steps, zoomed_steps(axis, 1.5, x));
    RC_ASSERT(in.px_per_step >= axis.px_per_step);
    if (in.px_per_step > axis.px_per_step) RC_ASSERT(std::abs(in.edge(under) - x) < 1e-3);
    RC_ASSERT(zoomed_steps(axis, 1e-9, x) == Viewport{});
  }));
}

TEST(StepAxis, ScrollsByAsMuchAsAskedUntilAnEnd) {
  const StepAxis axis = step_axis(0, 100, 1000, {2, {500, 0}});
  EXPECT_EQ(scrolled_steps(axis, 40), (Viewport{2, {540, 0}}));
  EXPECT_EQ(scrolled_steps(axis, -40), (Viewport{2, {460, 0}}));
  EXPECT_EQ(scrolled_steps(axis, -1e9), (Viewport{2, {0, 0}}));
  EXPECT_EQ(scrolled_steps(axis, 1e9), (Viewport{2, {1900, 0}}));
}

TEST(StepAxis, RevealsAStepBySmallMovesOnly) {
  EXPECT_TRUE(rc::check([] {
    const StepAxis axis = any_axis().axis;
    RC_PRE(axis.px_per_step <= axis.width);  // a plot narrower than a step cannot show a whole step
    const std::int64_t index = *rc::gen::inRange<std::int64_t>(0, axis.steps);
    const StepAxis after = step_axis(axis.left, axis.width, axis.steps, revealed_step(axis, index));
    RC_ASSERT(std::abs(after.px_per_step - axis.px_per_step) <= 1e-9 * axis.px_per_step);
    RC_ASSERT(after.x(index) >= axis.left - 1e-3);
    RC_ASSERT(after.x(index) <= axis.right() + 1e-3);
    const double margin = std::min(axis.width / 4, std::max(3 * axis.px_per_step, 24.0));
    if (axis.x(index) - axis.left > margin + axis.px_per_step &&
        axis.right() - axis.x(index) > margin + axis.px_per_step)
      RC_ASSERT(std::abs(after.offset - axis.offset) < 1e-3);
  }));
}

// --- ticks of the axis -----------------------------------------------------------------------------------------------

// In a trace that begins at step 95, labels are at 100, 120, not at 95, 115.
TEST(StepTicks, StandAtNiceNumbersOfATraceThatBeginsLater) {
  const StepAxis axis = step_axis(0, 500, 50, {});
  EXPECT_THAT(step_ticks(axis, 95, 80), ElementsAre(5, 15, 25, 35, 45));
}

TEST(StepTicks, OfAFewStepsLabelEachOnce) {
  const StepAxis axis = step_axis(0, 900, 3, {});
  EXPECT_THAT(step_ticks(axis, 0, 60), ElementsAre(0, 1, 2));
}

TEST(StepTicks, AreVisibleAndNeverCloserThanALabel) {
  EXPECT_TRUE(rc::check([] {
    const StepAxis axis = any_axis().axis;
    const std::int64_t first_number = *rc::gen::inRange(0, 1000);
    const double label = *rc::gen::inRange(20, 120);
    const std::vector<std::int64_t> ticks = step_ticks(axis, first_number, label);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      RC_ASSERT(axis.x(ticks[i]) >= axis.left);
      RC_ASSERT(axis.x(ticks[i]) <= axis.right());
      if (i > 0) RC_ASSERT(axis.x(ticks[i]) - axis.x(ticks[i - 1]) >= label - 1e-6);
    }
    // A wide plot always has ticks: at most 2.5 label widths and the column of a step are between two of them.
    if (axis.width > 6 * label && axis.px_per_step <= kWidestStep) RC_ASSERT(ticks.size() >= 2U);
  }));
}

}  // namespace
}  // namespace kvscope::viz::step_axis_test
