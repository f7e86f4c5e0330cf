// The pool's grid against brute force: every cell once and at its place, and zooming keeps the content at the pointer.
#include "viz/geometry/pool_layout.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace kvscope::viz::pool_layout_test {
namespace {

constexpr double kScale = 1;  // font scale

// Pitches below four pixels are not whole numbers: adjacent cells may touch, apart from rounding.
bool apart(const QRectF& a, const QRectF& b) {
  const QRectF common = a.intersected(b);
  return common.width() < 1e-9 || common.height() < 1e-9;
}

QRectF body_of(int width, int height) {
  return {36.5, 341.25, width + 0.75, height + 0.5};  // as odd as a share of a window is
}

// The widest square cells with which `cells` of them fit, tried with every multiple of `step`.
double brute_force_pitch(std::int64_t cells, std::int64_t step, QSizeF area) {
  double best = 0;
  for (std::int64_t columns = step; columns <= cells; columns += step) {
    const double rows = std::ceil(static_cast<double>(cells) / static_cast<double>(columns));
    double pitch = std::min({area.width() / static_cast<double>(columns), area.height() / rows, 120.0});
    if (pitch >= 4) pitch = std::floor(pitch);
    best = std::max(best, pitch);
  }
  return best;
}

TEST(PoolLayout, SixtyFourBlocksAreFiveRowsOfSixteenWithTheNullPageAloneInTheLast) {
  const PoolLayout layout = pool_layout(64, {0, 0, 740, 370}, {}, kScale);
  EXPECT_EQ(layout.grid.columns, 16);
  EXPECT_EQ(layout.grid.rows, 5);
  EXPECT_EQ(layout.grid.pitch, QSizeF(46, 46));
  EXPECT_EQ(layout.place(18), (CellPlace{2, 1}));
  EXPECT_EQ(layout.place(64), (CellPlace{0, 4}));
  EXPECT_EQ(layout.rect(18), QRectF(92, 46, 42, 42));
  EXPECT_EQ(layout.detail, PoolDetail::words);
}

TEST(PoolLayout, AMillionBlocksShareThePixelsOfASmallerBodyAndAreAllThere) {
  const PoolLayout layout = pool_layout(1'000'000, {0, 0, 950, 880}, {}, kScale);
  EXPECT_EQ(layout.grid.columns % 16, 0);
  EXPECT_LT(layout.grid.pitch.width(), 1);
  EXPECT_GT(layout.grid.pitch.width(), 0.88);
  EXPECT_EQ(layout.grid.visible().cells(), layout.grid.columns * layout.grid.rows);
  EXPECT_EQ(layout.detail, PoolDetail::pixels);
}

// Pools of one block and of no block have a layout; a body of size 0 must not cause a division by zero.
TEST(PoolLayout, TheSmallestPoolsAndBodiesHaveALayout) {
  for (const std::int64_t blocks : {0, 1, 2, 3, 6, 7, 8}) {
    const PoolLayout layout = pool_layout(blocks, {0, 0, 740, 370}, {}, kScale);
    EXPECT_GE(layout.grid.pitch.width(), 87) << blocks;
    EXPECT_LE(layout.grid.pitch.width(), kLargestFitCell) << blocks;
    EXPECT_EQ(layout.block_at(layout.rect(blocks).center()), blocks);
    const PoolLayout none = pool_layout(blocks, {10, 10, 0, -5}, {}, kScale);
    EXPECT_EQ(none.grid.area, QRectF(10, 10, 1, 1));
    EXPECT_TRUE(none.block_at({10.1, 10.1}).has_value()) << blocks;
  }
}

// A dozen blocks in a card of half a window: at 56 px they left most of it empty, with numbers of 12 px.
TEST(PoolLayout, FewBlocksUseTheRoomAndTheirNumbersGrowWithThem) {
  const PoolLayout few = pool_layout(32, {0, 0, 741, 366}, {}, kScale),
                   many = pool_layout(160, {0, 0, 741, 366}, {}, kScale);
  EXPECT_EQ(few.grid.pitch, QSizeF(73, 73));
  EXPECT_EQ(few.grid.columns, 8);
  EXPECT_EQ(few.number_px, 15);
  EXPECT_EQ(few.words_px, 13);
  EXPECT_LT(many.number_px, 10);
  // Cells of 88 px in five columns would be larger still, but 62 px is all they need, and eight columns count well.
  EXPECT_EQ(pool_layout(10, {0, 0, 500, 300}, {}, kScale).grid.columns, 8);
  // "s31 p99" at the larger size still fits beside the smallest badge.
  EXPECT_GE(few.text_places(few.rect(0)).room, 7 * 0.6 * few.words_px);
}

RC_GTEST_PROP(PoolLayout, FittingGivesTheLargestCellsThatRoundNumbersOfColumnsAllow, ()) {
  const auto blocks = *rc::gen::inRange<std::int64_t>(0, 3000);
  const QRectF body = body_of(*rc::gen::inRange(60, 1900), *rc::gen::inRange(60, 1100));
  const PoolLayout layout = pool_layout(blocks, body, {}, kScale);
  const double any = brute_force_pitch(blocks + 1, 1, layout.grid.area.size());
  const double eights = brute_force_pitch(blocks + 1, 8, layout.grid.area.size());
  const double sixteens = brute_force_pitch(blocks + 1, 16, layout.grid.area.size());
  double expected = any;
  if (eights >= std::min(0.75 * expected, 56.0)) expected = eights;
  if (sixteens >= (expected < 24 ? 0.95 : 0.85) * expected) expected = sixteens;
  RC_ASSERT(std::abs(layout.fit_pitch - expected) < 1e-9);
  if (expected == sixteens && sixteens != eights) RC_ASSERT(layout.grid.columns % 16 == 0);
  RC_ASSERT(layout.grid.content().width() <= layout.grid.area.width() + 1e-6);
  RC_ASSERT(layout.grid.content().height() <= layout.grid.area.height() + 1e-6);
}

// Every block once, inside the body, apart from all others, and found again under its own center.
RC_GTEST_PROP(PoolLayout, EveryBlockHasACellOfItsOwnInsideTheBody, ()) {
  const auto blocks = *rc::gen::inRange<std::int64_t>(0, 700);
  const QRectF body = body_of(*rc::gen::inRange(40, 1200), *rc::gen::inRange(40, 900));
  const PoolLayout layout = pool_layout(blocks, body, {}, kScale);
  std::set<std::pair<double, double>> corners;
  for (std::int64_t b = 0; b <= blocks; ++b) {
    const QRectF cell = layout.rect(b);
    RC_ASSERT(body.adjusted(-1e-6, -1e-6, 1e-6, 1e-6).contains(cell));
    RC_ASSERT(cell.width() > 0 && cell.height() > 0);
    RC_ASSERT(layout.block_at(cell.center()) == b);
    RC_ASSERT(corners.insert({cell.left(), cell.top()}).second);
    if (b == 0) continue;
    // The neighbors before it and above it are all that a cell could touch.
    RC_ASSERT(apart(layout.rect(b - 1), cell));
    if (b >= layout.grid.columns) RC_ASSERT(apart(layout.rect(b - layout.grid.columns), cell));
  }
}

// One block too few would leave a stripe at an edge, one too many would cost time; checked at every zoom and offset.
RC_GTEST_PROP(PoolLayout, WhatIsDrawnIsExactlyWhatTheBodyCuts, ()) {
  const auto blocks = *rc::gen::inRange<std::int64_t>(1, 900);
  const QRectF body = body_of(*rc::gen::inRange(40, 500), *rc::gen::inRange(40, 400));
  const Viewport viewport{*rc::gen::inRange(0, 900) / 10.0,
                          QPointF(*rc::gen::inRange(-50, 3000), *rc::gen::inRange(-50, 3000))};
  const PoolLayout layout = pool_layout(blocks, body, viewport, kScale);
  const CellRange seen = layout.grid.visible();
  for (std::int64_t row = 0; row < layout.grid.rows; ++row) {
    for (std::int64_t column = 0; column < layout.grid.columns; ++column) {
      const QRectF cut = layout.grid.whole_rect({column, row}).intersected(layout.grid.area);
      const bool expected = cut.width() > 1e-9 && cut.height() > 1e-9;
      const bool drawn =
          column >= seen.first_column && column < seen.end_column && row >= seen.first_row && row < seen.end_row;
      RC_ASSERT(drawn == expected);
    }
  }
}

// The pixel to the right of the area belongs to another panel.
TEST(PoolLayout, TheAreaIsHalfOpen) {
  const PoolLayout layout = pool_layout(4096, {10, 20, 300, 200}, {30, {0, 0}}, kScale);
  EXPECT_TRUE(layout.block_at({309.9, 219.9}).has_value());
  EXPECT_FALSE(layout.block_at({310, 219.9}).has_value());
  EXPECT_FALSE(layout.block_at({309.9, 220}).has_value());
  EXPECT_FALSE(layout.block_at({9.9, 30}).has_value());
  // Right of the last column a row does not go on in the next one.
  const PoolLayout narrow = pool_layout(17, {0, 0, 900, 300}, {}, kScale);
  EXPECT_FALSE(narrow.block_at({narrow.grid.content().width() + 3, 3}).has_value());
}

// Every point of the grid, gaps included, belongs to exactly one block.
RC_GTEST_PROP(PoolLayout, APointBelongsToTheCellWhoseWholeRectHoldsIt, ()) {
  const auto blocks = *rc::gen::inRange<std::int64_t>(1, 300);
  const QRectF body = body_of(*rc::gen::inRange(40, 500), *rc::gen::inRange(40, 400));
  const Viewport viewport{*rc::gen::inRange(0, 400) / 10.0, QPointF(*rc::gen::inRange(0, 900), 17)};
  const PoolLayout layout = pool_layout(blocks, body, viewport, kScale);
  const QPointF point(*rc::gen::inRange(0, 6000) / 10.0, 300 + *rc::gen::inRange(0, 5000) / 10.0);
  std::optional<std::int64_t> expected;
  for (std::int64_t b = 0; b <= blocks; ++b) {
    const QRectF cell = layout.grid.whole_rect(layout.place(b));
    const bool inside =
        point.x() >= cell.left() && point.x() < cell.right() && point.y() >= cell.top() && point.y() < cell.bottom();
    const QRectF& area = layout.grid.area;
    const bool seen =
        point.x() >= area.left() && point.x() < area.right() && point.y() >= area.top() && point.y() < area.bottom();
    if (inside && seen) expected = b;
  }
  RC_ASSERT(layout.block_at(point) == expected);
}

RC_GTEST_PROP(PoolLayout, ZoomingKeepsTheBlockUnderThePointerUntilAnEdgeIsReached, ()) {
  const auto blocks = *rc::gen::inRange<std::int64_t>(100, 100'000);
  const QRectF body = body_of(*rc::gen::inRange(200, 1200), *rc::gen::inRange(200, 900));
  const Viewport from{*rc::gen::inRange(5, 900) / 10.0,
                      QPointF(*rc::gen::inRange(0, 5000), *rc::gen::inRange(0, 5000))};
  const double factor = *rc::gen::element(1.1, 1.25, 2.0, 7.0, 0.9, 0.5);
  const PoolLayout before = pool_layout(blocks, body, from, kScale);
  const QPointF at = before.grid.area.center() + QPointF(*rc::gen::inRange(-90, 90), *rc::gen::inRange(-90, 90));
  const Viewport to = pool_zoomed(before, body, from, kScale, factor, at);
  const PoolLayout after = pool_layout(blocks, body, to, kScale);
  RC_ASSERT(after.grid.columns == before.grid.columns);
  const auto in_blocks = [&](const CellGrid& grid) {
    return QPointF((at.x() - grid.area.left() + grid.offset.x()) / grid.pitch.width(),
                   (at.y() - grid.area.top() + grid.offset.y()) / grid.pitch.height());
  };
  const QPointF moved = in_blocks(after.grid) - in_blocks(before.grid);
  // Along an axis on which the grid's edge is in the way it cannot stay.
  const QPointF most(after.grid.content().width() - after.grid.area.width(),
                     after.grid.content().height() - after.grid.area.height());
  if (to.offset.x() > 0 && to.offset.x() < most.x()) {
    RC_ASSERT(std::abs(moved.x()) * after.grid.pitch.width() <= 0.5 + 1e-6);
  }
  if (to.offset.y() > 0 && to.offset.y() < most.y()) {
    RC_ASSERT(std::abs(moved.y()) * after.grid.pitch.height() <= 0.5 + 1e-6);
  }
}

// A slow wheel zooms in steps of a few percent; rounding the pitch to whole pixels must not drop them.
TEST(PoolLayout, ManySmallZoomsAddUpToOneLargeAndOutAgainToTheFit) {
  const QRectF body(20, 20, 740, 370);
  Viewport viewport;
  for (int i = 0; i < 40; ++i) {
    viewport = pool_zoomed(pool_layout(4096, body, viewport, kScale), body, viewport, kScale, 1.05, {300, 200});
  }
  const PoolLayout fitting = pool_layout(4096, body, {}, kScale);
  EXPECT_NEAR(viewport.zoom, fitting.fit_pitch * std::pow(1.05, 40), 1e-6);
  for (int i = 0; i < 41; ++i) {
    viewport = pool_zoomed(pool_layout(4096, body, viewport, kScale), body, viewport, kScale, 1 / 1.05, {300, 200});
  }
  EXPECT_EQ(viewport, Viewport{});
}

TEST(PoolLayout, ZoomEndsAtTheLargestCellAndAtTheFit) {
  const QRectF body(0, 0, 740, 370);
  const PoolLayout fitting = pool_layout(4096, body, {}, kScale);
  const Viewport in = pool_zoomed(fitting, body, {}, kScale, 1e9, {10, 10});
  EXPECT_EQ(in.zoom, kLargestPoolCell);
  EXPECT_EQ(pool_layout(4096, body, {1e9, {0, 0}}, kScale).grid.pitch, QSizeF(160, 160));
  EXPECT_EQ(pool_zoomed(pool_layout(4096, body, in, kScale), body, in, kScale, 1e-9, {10, 10}), Viewport{});
}

// Regression: at 2.5 times the text size the numbers of the blocks disappeared.
RC_GTEST_PROP(PoolLayout, LargerTextKeepsTheDetailOfEveryBlock, ()) {
  const auto blocks = *rc::gen::inRange<std::int64_t>(0, 3000);
  const QRectF body = body_of(*rc::gen::inRange(60, 1900), *rc::gen::inRange(60, 1100));
  const double larger = *rc::gen::element(1.1, 1.6, 2.5);
  const PoolLayout usual = pool_layout(blocks, body, {}, 1), layout = pool_layout(blocks, body, {}, larger);
  RC_ASSERT(layout.detail >= usual.detail);
  if (layout.detail >= PoolDetail::numbers) RC_ASSERT(layout.number_px >= 9 * larger);
  RC_ASSERT(layout.grid.content().width() <= layout.grid.area.width() + 1e-6 || layout.grid.columns == 1);
  // The last block is reached by scrolling.
  const Viewport end = pool_scrolled(layout, {}, {1e6, 1e6});
  const PoolLayout scrolled = pool_layout(blocks, body, end, larger);
  RC_ASSERT(scrolled.grid.visible().end_row == scrolled.grid.rows);
}

RC_GTEST_PROP(PoolLayout, ScrollingAddsUpAndNeverShowsBeyondTheGrid, ()) {
  const QRectF body(0, 0, 300, 200);
  const auto blocks = *rc::gen::inRange<std::int64_t>(500, 5000);
  const PoolLayout layout = pool_layout(blocks, body, {30, {0, 0}}, kScale);
  Viewport slowly{30, {0, 0}};
  const int steps = *rc::gen::inRange(1, 40);
  for (int i = 0; i < steps; ++i) {
    slowly = pool_scrolled(pool_layout(blocks, body, slowly, kScale), slowly, {0.3, 0.4});
  }
  const Viewport at_once = pool_scrolled(layout, {30, {0, 0}}, {0.3 * steps, 0.4 * steps});
  RC_ASSERT(std::abs(slowly.offset.x() - at_once.offset.x()) < 1e-6);
  RC_ASSERT(std::abs(slowly.offset.y() - at_once.offset.y()) < 1e-6);
  const Viewport far = pool_scrolled(layout, {30, {0, 0}}, {1e7, 1e7});
  const PoolLayout last = pool_layout(blocks, body, far, kScale);
  RC_ASSERT(last.grid.visible().end_row == last.grid.rows);
  RC_ASSERT(last.grid.visible().end_column == last.grid.columns);
  RC_ASSERT(pool_scrolled(layout, far, {-1e7, -1e7}).offset == QPointF(0, 0));
}

RC_GTEST_PROP(PoolLayout, ARevealedBlockIsWhollyInTheBodyAndAVisibleOneMovesNothing, ()) {
  const auto blocks = *rc::gen::inRange<std::int64_t>(100, 20'000);
  const QRectF body = body_of(*rc::gen::inRange(200, 900), *rc::gen::inRange(200, 900));
  const Viewport from{static_cast<double>(*rc::gen::inRange(0, 96)),
                      QPointF(*rc::gen::inRange(0, 3000), *rc::gen::inRange(0, 3000))};
  const auto block = *rc::gen::inRange<std::int64_t>(0, blocks + 1);
  const Viewport to = pool_revealing(pool_layout(blocks, body, from, kScale), from, block);
  const PoolLayout after = pool_layout(blocks, body, to, kScale);
  RC_ASSERT(to.zoom == from.zoom);
  RC_ASSERT(after.grid.area.adjusted(-1, -1, 1, 1).contains(after.rect(block)));
  RC_ASSERT(pool_revealing(after, to, block) == to);
}

TEST(PoolLayout, ArrowsStopAtTheEdgesOfThePool) {
  const PoolLayout layout = pool_layout(64, {0, 0, 740, 370}, {}, kScale);
  EXPECT_EQ(layout.neighbor(18, 1, 0), 19);
  EXPECT_EQ(layout.neighbor(18, 0, 1), 34);
  EXPECT_EQ(layout.neighbor(18, 0, -1), 2);
  EXPECT_EQ(layout.neighbor(2, 0, -1), 2);
  EXPECT_EQ(layout.neighbor(0, -1, 0), 0);
  EXPECT_EQ(layout.neighbor(64, 1, 0), 64);
  EXPECT_EQ(layout.neighbor(49, 0, 1), 49);  // below it is an empty place
  EXPECT_EQ(layout.neighbor(48, 0, 1), 64);
}

// A number that does not fit would run into its neighbor: detail follows from the largest number there is.
TEST(PoolLayout, ACellHasANumberWhenTheLargestOneFits) {
  const QRectF body(0, 0, 740, 370);
  const auto detail = [&](std::int64_t blocks, double zoom) {
    return pool_layout(blocks, body, {zoom, {0, 0}}, kScale).detail;
  };
  EXPECT_EQ(detail(999, 24), PoolDetail::cells);  // 3 x 5.4 + 6 = 22.2 > 24 - 3
  EXPECT_EQ(detail(999, 26), PoolDetail::numbers);
}

// A token's slot is a strip as far right as the slot is among the block's, inside the cell even for thousands of slots.
RC_GTEST_PROP(PoolLayout, ASlotStandsInsideItsCellInProportion, ()) {
  const PoolLayout layout =
      pool_layout(64, {0, 0, 740, 370}, {static_cast<double>(*rc::gen::inRange(24, 96)), {0, 0}}, 1);
  const auto slots = *rc::gen::inRange<std::int64_t>(1, 5000), slot = *rc::gen::inRange<std::int64_t>(0, slots);
  const QRectF cell = layout.rect(18), strip = layout.slot_rect(cell, slot, slots);
  RC_ASSERT(cell.adjusted(-1e-6, -1e-6, 1e-6, 1e-6).contains(strip));
  const double center = cell.left() + cell.width() * (static_cast<double>(slot) + 0.5) / static_cast<double>(slots);
  RC_ASSERT(std::abs(strip.center().x() - center) <= 2);
  RC_ASSERT(strip.width() >= 2 && strip.height() >= 2);
}

TEST(CellGrid, PixelsOfCellsNeverDecreaseAndCoverTheAreaWithoutAHole) {
  const std::vector<std::int32_t> pixels = pixels_of_cells(0.4, 3.0, 2.0, 5, 12);
  // Cell 5 begins at 5 * 0.4 - 3 = -1 px: before the area.
  EXPECT_THAT(pixels, testing::ElementsAre(-1, -1, -1, 0, 1, 2, 2, 3, 4, 5, 6, 6));
}

TEST(CellGrid, LabelsGoInStepsThatPeopleCountIn) {
  EXPECT_EQ(label_step(40, 30), 1);
  EXPECT_EQ(label_step(29, 30), 2);
  EXPECT_EQ(label_step(14, 30), 5);
  EXPECT_EQ(label_step(5, 30), 10);
  EXPECT_EQ(label_step(2, 30), 20);
  EXPECT_EQ(label_step(1, 30), 50);
  EXPECT_EQ(label_step(0.5, 30), 100);
}

TEST(CellGrid, DigitsChangeAtPowersOfTen) {
  EXPECT_EQ(digits(0), 1);
  EXPECT_EQ(digits(9), 1);
  EXPECT_EQ(digits(10), 2);
  EXPECT_EQ(digits(99'999), 5);
  EXPECT_EQ(digits(100'000), 6);
}

}  // namespace
}  // namespace kvscope::viz::pool_layout_test
