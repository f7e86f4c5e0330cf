#include "viz/geometry/timeline_layout.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>
#include <numeric>

namespace kvscope::viz::timeline_layout_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kHair = 1e-6;

StepAxis any_axis(std::int64_t steps) {
  Viewport viewport;
  if (*rc::gen::arbitrary<bool>()) {
    viewport.zoom = std::pow(10, *rc::gen::inRange(-20, 15) / 10.0);
    viewport.offset.setX(*rc::gen::inRange(0, 5000) / 3.0);
  }
  return step_axis(*rc::gen::inRange(0, 200), *rc::gen::inRange(1, 700), steps, viewport);
}

// --- columns ---------------------------------------------------------------------------------------------------------

// The numbers of steps and pixels never divide each other here: columns differ by one step, where a spike could be
// lost.
TEST(Columns, LoseNoExtremeAndInventNone) {
  EXPECT_TRUE(rc::check([] {
    const std::int64_t steps = *rc::gen::inRange<std::int64_t>(1, 5000);
    const auto seed = *rc::gen::arbitrary<unsigned>();
    std::vector<float> values(static_cast<std::size_t>(steps));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((seed + i * 2'654'435'761U) % 100'003U) / 1000.0F;
    }
    const StepAxis axis = any_axis(steps);
    const std::vector<Column> found = columns(values, axis);
    const auto [first, end] = axis.visible();

    // Every visible step is within the extremes of the column at its middle.
    std::size_t c = 0;
    for (std::int64_t i = first; i < end; ++i) {
      const double middle = std::clamp(axis.x(i), found.front().x, found.back().x);
      const float value = values[static_cast<std::size_t>(i)];
      bool held = false;
      while (c + 1 < found.size() && found[c].x + 0.5 < middle - kHair) ++c;
      for (std::size_t near = c; near < found.size() && found[near].x - 0.5 <= middle + kHair; ++near) {
        held = held || (found[near].low <= value && value <= found[near].high);
      }
      RC_ASSERT(held);
    }
    // Every extreme of a column is the value of a step whose middle is in it; at the sides, of a partly visible step.
    for (const Column& column : found) {
      bool low = false, high = false;
      for (std::int64_t i = std::max<std::int64_t>(first - 1, 0); i < std::min(end + 1, steps); ++i) {
        const double middle =
            axis.px_per_step >= 1 ? axis.x(i) : std::clamp(axis.x(i), found.front().x, found.back().x);
        if (std::abs(middle - column.x) > 0.5 + kHair) continue;
        low = low || values[static_cast<std::size_t>(i)] == column.low;
        high = high || values[static_cast<std::size_t>(i)] == column.high;
      }
      RC_ASSERT(low && high);
      RC_ASSERT(column.low <= column.mean + 1e-4F && column.mean <= column.high + 1e-4F);
    }
    RC_ASSERT(std::is_sorted(found.begin(), found.end(), [](const Column& a, const Column& b) { return a.x < b.x; }));
  }));
}

TEST(Columns, OfHalfAPixelAStepHoldTwoStepsEach) {
  const std::vector<float> values{1, 3, 7, 5, 2, 2};
  EXPECT_THAT(columns(values, step_axis(10, 3, 6, {})),
              ElementsAre(Column{10.5, 1, 3, 2, 2}, Column{11.5, 5, 7, 6, 2}, Column{12.5, 2, 2, 2, 2}));
}

// With the adjacent steps outside, the line leaves the plot in the right direction and does not end at the last middle.
TEST(Columns, OfAZoomedRunReachBeyondBothSides) {
  const std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<Column> found = columns(values, step_axis(0, 30, 10, {10, {40, 0}}));
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found.front(), (Column{-5, 3, 3, 3, 1}));
  EXPECT_EQ(found.back(), (Column{35, 7, 7, 7, 1}));
}

TEST(Columns, OfAMillionStepsAreNoMoreThanPixels) {
  std::vector<float> values(1'000'000, 0.25F);
  values[777'777] = 1;
  const std::vector<Column> found = columns(values, step_axis(0, 1400, 1'000'000, {}));
  EXPECT_EQ(found.size(), 1400U);
  EXPECT_EQ(std::ranges::count(found, 1.0F, &Column::high), 1);
}

// --- curves ----------------------------------------------------------------------------------------------------------

TEST(Curve, OfOneStepIsALineAcrossThePlot) {
  const StepAxis axis = step_axis(10, 100, 1, {});
  const Curve c = curve(columns(std::vector<float>{0.25F}, axis), axis, QRectF(10, 0, 100, 40), 1);
  EXPECT_THAT(c.line, ElementsAre(QPointF(10, 30), QPointF(60, 30), QPointF(110, 30)));
  EXPECT_THAT(c.fill,
              ElementsAre(QPointF(10, 30), QPointF(60, 30), QPointF(110, 30), QPointF(110, 40), QPointF(10, 40)));
  EXPECT_THAT(c.band, IsEmpty());
}

TEST(Curve, OfNoStepsIsNothing) {
  const StepAxis axis = step_axis(10, 100, 0, {});
  const Curve c = curve(columns({}, axis), axis, QRectF(10, 0, 100, 40), 1);
  EXPECT_THAT(c.line, IsEmpty());
  EXPECT_THAT(c.fill, IsEmpty());
  EXPECT_THAT(c.band, IsEmpty());
}

// One of four thousand steps is at the maximum, with four steps per column: the mean line hardly rises, and the band is
// one pixel wide at full height.
TEST(Curve, ShowsASingleHighStepAsABarOfAPixel) {
  std::vector<float> values(4000, 0);
  values[2002] = 1;
  const StepAxis axis = step_axis(0, 1000, 4000, {});
  const Curve c = curve(columns(values, axis), axis, QRectF(0, 0, 1000, 50), 1);
  ASSERT_EQ(c.band.size(), 3U);  // left of it, it, right of it
  EXPECT_EQ(c.band[1], QRectF(500, 0, 1, 50));
  EXPECT_DOUBLE_EQ(c.band_share, 1.0 / 1000);
  EXPECT_EQ(std::ranges::min(c.line, {}, &QPointF::y).y(), 50 - 50.0 / 16);
}

// With 1.5 steps per column most columns have one value, and a band without height would not be painted. The line is
// the mean of four columns, so the single high step would then be lost.
TEST(Curve, ShowsAHighStepThatHasItsColumnToItself) {
  std::vector<float> values(1500, 0.5F);
  for (const std::size_t high : {700U, 701U, 702U, 703U}) {
    values[high] = 1;
    const StepAxis axis = step_axis(0, 1000, 1500, {});
    const Curve c = curve(columns(values, axis), axis, QRectF(0, 0, 1000, 50), 1);
    EXPECT_LE(std::ranges::min(c.band, {}, &QRectF::top).top(), 0);
    for (const QRectF& bar : c.band) EXPECT_GE(bar.height(), 1.5);
    values[high] = 0.5F;
  }
}

// The mean of steps, not of columns: a column of two steps counts twice.
TEST(Curve, OfManyStepsGoesThroughTheMeansOfItsSteps) {
  EXPECT_TRUE(rc::check([] {
    const auto steps = *rc::gen::inRange<std::size_t>(101, 3000);
    std::vector<float> values(steps);
    for (std::size_t i = 0; i < steps; ++i) values[i] = static_cast<float>(i * 7919 % 101) / 100.0F;
    const StepAxis axis = step_axis(0, 100, static_cast<std::int64_t>(steps), {});
    const Curve c = curve(columns(values, axis), axis, QRectF(0, 0, 100, 50), 1);
    // All buckets together contain all steps; the second point from the left is the mean of the first four columns.
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < steps; ++i) {
      if (axis.x(static_cast<std::int64_t>(i)) >= 4) break;
      sum += static_cast<double>(values[i]);
      ++count;
    }
    RC_ASSERT(c.line.size() == 27U);  // 25 buckets and both sides
    RC_ASSERT(c.line[1].x() == 2);
    RC_ASSERT(std::abs(c.line[1].y() - (50 - 50 * sum / count)) < 1e-3);
  }));
}

TEST(Curve, StaysWithinItsPlot) {
  EXPECT_EQ(y_of(QRectF(0, 10, 1, 20), 0, 4), 30);
  EXPECT_EQ(y_of(QRectF(0, 10, 1, 20), 1, 4), 25);
  EXPECT_EQ(y_of(QRectF(0, 10, 1, 20), 9, 4), 10);
  EXPECT_EQ(y_of(QRectF(0, 10, 1, 20), -1, 4), 30);
}

// --- marks -----------------------------------------------------------------------------------------------------------

TEST(MarkGroups, StandAtTheirStepWhereThereIsRoom) {
  const std::vector<std::int32_t> counts{0, 1, 0, 0, 0, 3, 0, 0, 0, 0};
  const StepAxis axis = step_axis(0, 1000, 10, {});
  EXPECT_THAT(mark_groups(counts, axis, {}), ElementsAre(MarkGroup{150, 9, 1, 1, 1}, MarkGroup{550, 17, 5, 5, 3}));
}

// Two dozen evictions on 30 px are one glyph with their number: overlapping glyphs could not be counted.
TEST(MarkGroups, ThatWouldOverlapAreOneWithTheirNumber) {
  const std::vector<std::int32_t> counts{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
  const std::vector<MarkGroup> groups = mark_groups(counts, step_axis(0, 37, 12, {}), {});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].count, 24);
  EXPECT_EQ(groups[0].first, 0);
  EXPECT_EQ(groups[0].last, 11);
}

TEST(MarkGroups, HoldEveryVisibleMarkOnceAndNeverOverlap) {
  EXPECT_TRUE(rc::check([] {
    const std::int64_t steps = *rc::gen::inRange<std::int64_t>(1, 3000);
    const auto seed = *rc::gen::arbitrary<unsigned>();
    const unsigned sparse = *rc::gen::inRange(1U, 60U);
    std::vector<std::int32_t> counts(static_cast<std::size_t>(steps));
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto h = static_cast<unsigned>((seed + i) * 2'654'435'761U) >> 7U;
      counts[i] = h % sparse == 0 ? static_cast<std::int32_t>(h / sparse % 4000) : 0;
    }
    const StepAxis axis = any_axis(steps);
    const GlyphSize size;
    const std::vector<MarkGroup> groups = mark_groups(counts, axis, size);
    std::vector<int> held(counts.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const MarkGroup& group = groups[g];
      const auto begin = counts.begin() + group.first, end = counts.begin() + group.last + 1;
      RC_ASSERT(group.count == std::accumulate(begin, end, std::int64_t{0}));
      RC_ASSERT(*begin > 0 && *(end - 1) > 0);
      for (std::int64_t i = group.first; i <= group.last; ++i) ++held[static_cast<std::size_t>(i)];
      if (group.first == group.last) RC_ASSERT(std::abs(group.x - axis.x(group.first)) <= group.width + 2 + kHair);
      // A plot narrower than one glyph and its number has no room for two groups, nor for one.
      if (axis.width < 45) continue;
      if (g > 0) {
        RC_ASSERT(groups[g - 1].x + groups[g - 1].width <= group.x + kHair);
        RC_ASSERT(groups[g - 1].last < group.first);
      }
    }
    const auto [first, end] = axis.visible();
    for (std::int64_t i = 0; i < steps; ++i) {
      const auto at = static_cast<std::size_t>(i);
      RC_ASSERT(held[at] <= 1);
      if (i >= first && i < end && counts[at] > 0) RC_ASSERT(held[at] == 1);
    }
  }));
}

// An eviction in every step: numbers without a gap between them cannot be read.
TEST(MarkGroups, OfWhatHappensAllTheTimeStandFarApart) {
  const std::vector<std::int32_t> counts(100'000, 7);
  const std::vector<MarkGroup> groups = mark_groups(counts, step_axis(0, 1400, 100'000, {}), {});
  EXPECT_GE(groups.size(), 5U);
  for (std::size_t g = 1; g < groups.size(); ++g) {
    EXPECT_GE(groups[g].x - groups[g - 1].x, 2.5 * groups[g].width);
  }
}

// Numbers that changed during scrolling would look like new events.
TEST(MarkGroups, AreTheSameAfterScrolling) {
  std::vector<std::int32_t> counts(3000);
  for (std::size_t i = 0; i < counts.size(); i += 3) counts[i] = 1 + static_cast<std::int32_t>(i % 5);
  const auto groups_at = [&](double offset) {
    return mark_groups(counts, step_axis(0, 600, 3000, {2, {offset, 0}}), {});
  };
  const std::vector<MarkGroup> here = groups_at(1000);
  std::vector<MarkGroup> there = groups_at(1013);
  std::size_t same = 0;
  for (MarkGroup& group : there) {
    group.x += 13;
    same += static_cast<std::size_t>(std::ranges::count_if(here, [&](const MarkGroup& h) {
      return h.first == group.first && h.last == group.last && h.count == group.count &&
             std::abs(h.x - group.x) < kHair;
    }));
  }
  EXPECT_GE(same + 1, there.size());
}

TEST(ShortCount, IsAtMostFourCharacters) {
  EXPECT_EQ(short_count(1), QStringLiteral("1"));
  EXPECT_EQ(short_count(9999), QStringLiteral("9999"));
  EXPECT_EQ(short_count(10'000), QStringLiteral("10k"));
  EXPECT_EQ(short_count(999'999), QStringLiteral("999k"));
  EXPECT_EQ(short_count(1'000'000), QStringLiteral("1M"));
  EXPECT_EQ(short_count(2'147'483'647), QStringLiteral("2G"));
}

// --- layout ----------------------------------------------------------------------------------------------------------

TimelineNeeds needs_of(std::int64_t steps) {
  TimelineNeeds needs{steps, {true, true, true, true}, 3, 6};
  return needs;
}

// The body of the strip at 1600x1000 with every kind of mark: nothing is dropped.
TEST(TimelineLayout, OfTheStripHoldsPlotLanesAndLabels) {
  const TimelineLayout layout = timeline_layout(QRectF(36, 803, 1528, 121), false, needs_of(200), {}, 1);
  EXPECT_FALSE(layout.stacked);
  EXPECT_EQ(layout.shares, layout.counts);
  EXPECT_EQ(layout.shares.height(), 40);
  for (const QRectF& lane : layout.lanes) EXPECT_EQ(lane.height(), 13);
  EXPECT_FALSE(layout.step_labels.isEmpty());
  EXPECT_TRUE(layout.time_labels.isEmpty());
}

TEST(TimelineLayout, OfItsOwnViewHasTwoPlotsOnOneAxis) {
  const TimelineLayout layout = timeline_layout(QRectF(36, 90, 1528, 850), true, needs_of(200), {}, 1);
  EXPECT_TRUE(layout.stacked);
  EXPECT_EQ(layout.shares.left(), layout.counts.left());
  EXPECT_EQ(layout.shares.width(), layout.counts.width());
  EXPECT_NEAR(layout.shares.height(), layout.counts.height(), 1);
  EXPECT_FALSE(layout.time_labels.isEmpty());
}

TEST(TimelineLayout, GivesKindsThatDoNotOccurNoLane) {
  TimelineNeeds needs = needs_of(20);
  needs.marks = {false, true, false, false};
  const TimelineLayout layout = timeline_layout(QRectF(0, 0, 800, 120), false, needs, {}, 1);
  EXPECT_TRUE(layout.lanes[0].isEmpty());
  EXPECT_FALSE(layout.lanes[1].isEmpty());
  EXPECT_EQ(layout.shares.height(), 120 - 7 - 4 - 13 - 18);
}

// At every size of a window, all parts are inside the body and do not overlap.
TEST(TimelineLayout, OverlapsNothingAndStaysInsideAtEverySize) {
  EXPECT_TRUE(rc::check([] {
    const QRectF body(*rc::gen::inRange(0, 50), *rc::gen::inRange(0, 50) + 0.4, *rc::gen::inRange(120, 2000) + 0.7,
                      *rc::gen::inRange(10, 1200) + 0.3);
    TimelineNeeds needs = needs_of(*rc::gen::inRange(0, 100));
    for (bool& mark : needs.marks) mark = *rc::gen::arbitrary<bool>();
    const double font_scale = *rc::gen::element(0.8, 1.0, 1.5);
    const TimelineLayout layout = timeline_layout(body, *rc::gen::arbitrary<bool>(), needs, {}, font_scale);
    std::vector<QRectF> parts{layout.shares, layout.shares_legend, layout.counts_legend, layout.step_labels,
                              layout.time_labels};
    if (layout.stacked) parts.push_back(layout.counts);
    parts.insert(parts.end(), layout.lanes.begin(), layout.lanes.end());
    std::erase_if(parts, [](const QRectF& part) { return part.isEmpty(); });
    for (std::size_t a = 0; a < parts.size(); ++a) {
      RC_ASSERT(parts[a].left() >= body.left() && parts[a].right() <= body.right());
      if (body.height() > 40) RC_ASSERT(parts[a].bottom() <= body.bottom());
      for (std::size_t b = 0; b < a; ++b) RC_ASSERT(!parts[a].intersects(parts[b]));
    }
    RC_ASSERT(layout.shares.height() >= 1);
    RC_ASSERT(layout.axis.left == layout.shares.left() && layout.axis.width == layout.shares.width());
  }));
}

TEST(TimelineLayout, FindsStepsUnderPlotsLanesAndLabelsAndNothingBesideThem) {
  const TimelineLayout layout = timeline_layout(QRectF(0, 0, 1000, 600), true, needs_of(50), {}, 1);
  const double x = layout.axis.x(17);
  EXPECT_EQ(step_at(layout, {x, layout.shares.center().y()}), 17);
  EXPECT_EQ(step_at(layout, {x, layout.counts.center().y()}), 17);
  EXPECT_EQ(step_at(layout, {x, layout.lanes[2].center().y()}), 17);
  EXPECT_EQ(step_at(layout, {x, layout.time_labels.center().y()}), 17);
  EXPECT_EQ(step_at(layout, {layout.left_labels - 2, layout.shares.center().y()}), std::nullopt);
  EXPECT_EQ(step_at(layout, {x, layout.shares.top() - 2}), std::nullopt);
}

// In the strip a box of nine rows is taller than the plot: its rows are then in several columns.
TEST(Readout, HoldsItsRowsApartAndInsideThePlot) {
  EXPECT_TRUE(rc::check([] {
    const QRectF bounds(*rc::gen::inRange(0, 50), *rc::gen::inRange(0, 50), *rc::gen::inRange(100, 1500),
                        *rc::gen::inRange(40, 800));
    const double x = bounds.left() + *rc::gen::inRange(0, 700);
    const auto rows = *rc::gen::inRange<std::size_t>(0, 9);
    const double width = *rc::gen::inRange(40, 70);
    const Readout box = readout(bounds, x, rows, {width, 16}, 8);
    RC_ASSERT(bounds.contains(box.box));
    RC_ASSERT(box.box.contains(box.title));
    for (std::size_t a = 0; a < box.rows.size(); ++a) {
      RC_ASSERT(box.box.contains(box.rows[a]));
      RC_ASSERT(!box.rows[a].intersects(box.title));
      for (std::size_t b = 0; b < a; ++b) RC_ASSERT(!box.rows[a].intersects(box.rows[b]));
    }
    // No row is omitted if there is room for it: brute force over the possible numbers of rows and columns.
    std::size_t below = 0, beside = 0;
    while (16 + static_cast<double>(below + 2) * 16 <= bounds.height()) ++below;
    while (static_cast<double>(beside + 1) * (width + 16) <= bounds.width()) ++beside;
    RC_ASSERT(box.rows.size() == std::min(rows, below * beside));
  }));
}

TEST(Readout, StandsToTheLeftOfItsLineWhereTheRightHasNoRoom) {
  const QRectF plot(100, 50, 400, 100);
  EXPECT_EQ(readout(plot, 200, 2, {100, 16}, 8).box, QRectF(208, 50, 116, 64));
  EXPECT_EQ(readout(plot, 450, 2, {100, 16}, 8).box, QRectF(326, 50, 116, 64));
  EXPECT_EQ(readout(QRectF(0, 0, 400, 31), 50, 3, {100, 16}, 8).rows.size(), 0U);  // no room below the title
}

TEST(IndexOf, AStepsNumberIsItsIndexInATraceThatBeginsLater) {
  Timeline timeline;
  timeline.step = {5, 6, 9};
  EXPECT_EQ(index_of(timeline, StepIdx{5}), 0);
  EXPECT_EQ(index_of(timeline, StepIdx{9}), 2);
  EXPECT_EQ(index_of(timeline, StepIdx{7}), std::nullopt);
  EXPECT_EQ(index_of(timeline, StepIdx{10}), std::nullopt);
  EXPECT_EQ(index_of(Timeline{}, StepIdx{0}), std::nullopt);
}

}  // namespace
}  // namespace kvscope::viz::timeline_layout_test
