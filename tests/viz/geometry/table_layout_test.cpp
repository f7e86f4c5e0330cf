// The lookup table's grid against brute force: cells inside, apart and found by their points; names beside their rows;
// zoom and scroll that keep the content in place.
#include "viz/geometry/table_layout.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace kvscope::viz::table_layout_test {
namespace {

constexpr double kScale = 1;  // font scale

// Pitches below four pixels are not whole numbers: adjacent cells may touch, apart from rounding.
bool apart(const QRectF& a, const QRectF& b) {
  const QRectF common = a.intersected(b);
  return common.width() < 1e-9 || common.height() < 1e-9;
}

TableSize any_size() {
  return {*rc::gen::inRange<std::int64_t>(0, 60), *rc::gen::inRange<std::int64_t>(1, 90),
          *rc::gen::inRange<std::int64_t>(1, 100'000), *rc::gen::inRange(20, 70) + 0.3};
}
QRectF any_body() {
  return {*rc::gen::inRange(0, 900) + 0.4, *rc::gen::inRange(0, 700) + 0.7, *rc::gen::inRange(120, 1500) + 0.2,
          *rc::gen::inRange(80, 900) + 0.1};
}
Viewport any_viewport() {
  return {*rc::gen::inRange(0, 200) / 10.0, QPointF(*rc::gen::inRange(-20, 2500), *rc::gen::inRange(-20, 2500))};
}

TEST(TableLayout, FiveSequencesOfFourPagesHaveTheLargestCells) {
  const TableLayout layout = table_layout({5, 4, 64, 37.5}, {0, 0, 680, 370}, {}, kScale);
  EXPECT_EQ(layout.grid.area, QRectF(48, 18, 632, 352));
  EXPECT_EQ(layout.page_numbers, QRectF(48, 0, 632, 18));
  EXPECT_EQ(layout.names, QRectF(0, 18, 48, 352));
  EXPECT_EQ(layout.grid.pitch, QSizeF(140, 44));
  EXPECT_EQ(layout.grid.rect({3, 4}), QRectF(48 + 420, 18 + 176, 136, 40));
  EXPECT_EQ(layout.detail, TableDetail::numbers);
  EXPECT_EQ(layout.page_step, 1);
  EXPECT_EQ(layout.name_step, 1);
}

TEST(TableLayout, HundredsOfSequencesAndPagesArePixelsWithEveryFewthName) {
  const TableLayout layout = table_layout({300, 512, 100'000, 50}, {0, 0, 680, 370}, {}, kScale);
  EXPECT_EQ(layout.detail, TableDetail::pixels);
  EXPECT_EQ(layout.grid.pitch.height(), 1);  // 352 px for 384 rows: never smaller than a pixel
  EXPECT_NEAR(layout.grid.pitch.width(), 620.0 / 512, 1e-9);
  EXPECT_EQ(layout.name_step, 20);
  EXPECT_EQ(layout.page_step, 50);
}

// One more sequence must not reduce the height of every row by a pixel.
TEST(TableLayout, RowsKeepTheirHeightWhenOneMoreSequenceComes) {
  const QRectF body(0, 0, 680, 370);
  EXPECT_EQ(table_layout({17, 9, 64, 40}, body, {}, kScale).grid.pitch, QSizeF(70, 14));
  EXPECT_EQ(table_layout({24, 9, 64, 40}, body, {}, kScale).grid.pitch, QSizeF(70, 14));
  EXPECT_EQ(table_layout({25, 9, 64, 40}, body, {}, kScale).grid.pitch, QSizeF(70, 11));
}

TEST(TableLayout, NoSequenceAndNoRoomAreLayoutsToo) {
  const TableLayout none = table_layout({0, 1, 0, 0}, {0, 0, 680, 370}, {}, kScale);
  EXPECT_EQ(none.grid.visible().cells(), 0);
  EXPECT_EQ(none.grid.at({300, 200}), std::nullopt);
  EXPECT_EQ(none.name_at({3, 200}), std::nullopt);
  const TableLayout tiny = table_layout({3, 3, 9, 200}, {0, 0, 10, 8}, {}, kScale);
  EXPECT_EQ(tiny.grid.area, QRectF(9, 7, 1, 1));
}

RC_GTEST_PROP(TableLayout, EveryCellIsApartFromItsNeighborsAndFoundUnderItsCenter, ()) {
  const TableSize size = any_size();
  const QRectF body = any_body();
  const TableLayout layout = table_layout(size, body, {}, kScale);
  RC_ASSERT(body.contains(layout.grid.area));
  for (std::int64_t row = 0; row < size.rows; ++row) {
    for (std::int64_t column = 0; column < size.columns; ++column) {
      const QRectF cell = layout.grid.rect({column, row});
      RC_ASSERT(cell.width() > 0 && cell.height() > 0);
      if (column > 0) RC_ASSERT(apart(layout.grid.rect({column - 1, row}), cell));
      if (row > 0) RC_ASSERT(apart(layout.grid.rect({column, row - 1}), cell));
      const bool seen = layout.grid.area.contains(cell.center());
      if (seen) RC_ASSERT(layout.grid.at(cell.center()) == (CellPlace{column, row}));
      // What fits is in view without scrolling.
      if (layout.fit_pitch.width() > 1) RC_ASSERT(cell.right() <= layout.grid.area.right() + 1e-6);
      if (layout.fit_pitch.height() > 1) RC_ASSERT(cell.bottom() <= layout.grid.area.bottom() + 1e-6);
    }
  }
}

RC_GTEST_PROP(TableLayout, WhatIsDrawnIsExactlyWhatTheAreaCuts, ()) {
  const TableSize size = any_size();
  const TableLayout layout = table_layout(size, any_body(), any_viewport(), kScale);
  const CellRange seen = layout.grid.visible();
  for (std::int64_t row = 0; row < size.rows; ++row) {
    for (std::int64_t column = 0; column < size.columns; ++column) {
      const QRectF cut = layout.grid.whole_rect({column, row}).intersected(layout.grid.area);
      const bool expected = cut.width() > 1e-9 && cut.height() > 1e-9;
      const bool drawn =
          column >= seen.first_column && column < seen.end_column && row >= seen.first_row && row < seen.end_row;
      RC_ASSERT(drawn == expected);
    }
  }
}

// A click on "seq 3" must not select the row that was there before scrolling.
RC_GTEST_PROP(TableLayout, ANameBelongsToTheRowBesideIt, ()) {
  const TableSize size = any_size();
  const TableLayout layout = table_layout(size, any_body(), any_viewport(), kScale);
  const double y = layout.grid.area.top() + *rc::gen::inRange(0, 9000) / 10.0;
  std::optional<std::int64_t> expected;
  for (std::int64_t row = 0; row < size.rows; ++row) {
    const QRectF cell = layout.grid.whole_rect({0, row});
    if (y >= cell.top() && y < cell.bottom() && y < layout.grid.area.bottom()) expected = row;
  }
  RC_ASSERT(layout.name_at({layout.names.center().x(), y}) == expected);
  RC_ASSERT(layout.name_at({layout.grid.area.left() + 1, y}) == std::nullopt);
  RC_ASSERT(layout.name_at({layout.names.center().x(), layout.names.top() - 1}) == std::nullopt);
}

// Regression: "seq 0" was clipped at the top of a table of low rows; moved into view, it overlapped "seq 5".
RC_GTEST_PROP(TableLayout, NamesAndPageNumbersStandInsideTheirEdgeAndApart, ()) {
  TableSize size = any_size();
  size.rows *= 6;
  const TableLayout layout = table_layout(size, any_body(), any_viewport(), kScale);
  // The first name may extend into the corner beside the page numbers, and may be clipped by a pixel with its row.
  const double highest = layout.names.top() - layout.name_height / 2;
  double end = highest;
  for (const std::int64_t row : layout.named_rows()) {
    const QRectF name = layout.name_rect(row);
    RC_ASSERT(name.top() >= end - 0.51);
    end = name.bottom();
    RC_ASSERT(row % layout.name_step == 0);
    // Names of low rows are moved into view; the name of a high row that is half scrolled out is clipped with it.
    if (layout.grid.pitch.height() < 15 && layout.names.height() > 15) {
      RC_ASSERT(name.top() >= highest - 0.51 && name.bottom() <= layout.names.bottom() + 1e-9);
    }
    RC_ASSERT(std::abs(name.center().y() - layout.grid.rect({0, row}).center().y()) < 16);
  }
  for (std::int64_t page = 0; page < size.columns; ++page) {
    const QRectF number = layout.page_number_rect(page);
    if (layout.grid.whole_rect({page, 0}).right() > layout.page_numbers.right() + 1e-9) continue;
    if (layout.page_numbers.width() > layout.page_number_width) {
      RC_ASSERT(number.right() <= layout.page_numbers.right() + 1e-9);
    }
    RC_ASSERT(number.width() >= layout.page_number_width);
  }
}

// Regression: the first name, moved into view, displaced the second one: "seq 0, seq 10, seq 15" instead of every
// fifth.
TEST(TableLayout, NoNameIsLeftOutAtTheTop) {
  for (const std::int64_t rows : {40, 64, 100, 300}) {
    const TableLayout layout = table_layout({rows, 4, 64, 37.5}, {0, 0, 680, 370}, {}, kScale);
    const std::vector<std::int64_t> named = layout.named_rows();
    ASSERT_GE(named.size(), 3U);
    EXPECT_EQ(named[0], 0);
    EXPECT_EQ(named[1], layout.name_step);
    EXPECT_EQ(named[2], 2 * layout.name_step);
    EXPECT_GE(layout.name_rect(0).top(), 0) << "in the corner beside the page numbers, not above the panel";
  }
}

RC_GTEST_PROP(TableLayout, ZoomingKeepsTheCellUnderThePointerUntilAnEdgeIsReached, ()) {
  TableSize size = any_size();
  size.rows += 30;
  size.columns += 40;
  const QRectF body = any_body();
  const Viewport from = any_viewport();
  const TableLayout before = table_layout(size, body, from, kScale);
  const QPointF at = before.grid.area.center() + QPointF(*rc::gen::inRange(-20, 20), *rc::gen::inRange(-10, 10));
  const Viewport to = table_zoomed(size, body, from, kScale, *rc::gen::element(1.1, 1.7, 4.0, 0.8), at);
  const TableLayout after = table_layout(size, body, to, kScale);
  const auto cell_under = [&](const CellGrid& grid) {
    return QPointF((at.x() - grid.area.left() + grid.offset.x()) / grid.pitch.width(),
                   (at.y() - grid.area.top() + grid.offset.y()) / grid.pitch.height());
  };
  const QPointF moved = cell_under(after.grid) - cell_under(before.grid);
  const QSizeF most = after.grid.content() - after.grid.area.size();
  if (to.offset.x() > 0 && to.offset.x() < most.width()) {
    RC_ASSERT(std::abs(moved.x()) * after.grid.pitch.width() <= 0.5 + 1e-6);
  }
  if (to.offset.y() > 0 && to.offset.y() < most.height()) {
    RC_ASSERT(std::abs(moved.y()) * after.grid.pitch.height() <= 0.5 + 1e-6);
  }
}

TEST(TableLayout, ZoomEndsAtTheLargestCellAlongBothAxesAndAtTheFit) {
  const TableSize size{300, 512, 100'000, 50};
  const QRectF body(0, 0, 680, 370);
  const Viewport in = table_zoomed(size, body, {}, kScale, 1e9, {100, 100});
  EXPECT_EQ(table_layout(size, body, in, kScale).grid.pitch, QSizeF(180, 96));
  EXPECT_EQ(table_layout(size, body, in, kScale).detail, TableDetail::numbers);
  EXPECT_EQ(table_zoomed(size, body, in, kScale, 1e-9, {100, 100}), Viewport{});
}

// A low wide row: the number's size follows from the height only where it then fits the width.
TEST(TableLayout, ATallNarrowCellKeepsItsNumber) {
  const TableLayout layout = table_layout({5, 30, 100'000, 40}, {0, 0, 1400, 600}, {}, kScale);
  EXPECT_EQ(layout.detail, TableDetail::numbers);
  EXPECT_GT(layout.grid.pitch.height(), layout.grid.pitch.width());
  EXPECT_LE(6 * 0.6 * layout.number_px, layout.grid.rect({0, 0}).width());
}

// Regression: at 2.5 times the text size the numbers of a table disappeared, and most names.
RC_GTEST_PROP(TableLayout, LargerTextKeepsNumbersAndNames, ()) {
  const TableSize size = any_size();
  const QRectF body = any_body();
  const double larger = *rc::gen::element(1.1, 1.6, 2.5);
  const TableLayout usual = table_layout(size, body, {}, 1), layout = table_layout(size, body, {}, larger);
  RC_ASSERT(layout.detail >= usual.detail);
  if (usual.name_step == 1) RC_ASSERT(layout.name_step == 1);
  // What does not fit is reached by scrolling.
  const Viewport end = table_scrolled(layout, {}, {1e6, 1e6});
  const CellRange seen = table_layout(size, body, end, larger).grid.visible();
  RC_ASSERT(seen.end_column == layout.grid.columns && seen.end_row == layout.grid.rows);
}

RC_GTEST_PROP(TableLayout, ARevealedCellIsInViewAndAVisibleOneMovesNothing, ()) {
  TableSize size = any_size();
  size.rows += 1;
  const QRectF body = any_body();
  const Viewport from = any_viewport();
  const CellPlace place{*rc::gen::inRange<std::int64_t>(0, size.columns),
                        *rc::gen::inRange<std::int64_t>(0, size.rows)};
  const Viewport to = table_revealing(table_layout(size, body, from, kScale), from, place);
  const TableLayout after = table_layout(size, body, to, kScale);
  if (after.grid.area.width() > after.grid.pitch.width() && after.grid.area.height() > after.grid.pitch.height()) {
    RC_ASSERT(after.grid.area.adjusted(-1, -1, 1, 1).contains(after.grid.rect(place)));
  }
  RC_ASSERT(table_revealing(after, to, place) == to);
}

TEST(TableLayout, ScrollingByLessThanAPixelAddsUp) {
  const TableSize size{300, 512, 100'000, 50};
  const QRectF body(0, 0, 680, 370);
  Viewport viewport{8, {0, 0}};
  for (int i = 0; i < 10; ++i) {
    viewport = table_scrolled(table_layout(size, body, viewport, kScale), viewport, {0.25, 0.5});
  }
  EXPECT_EQ(viewport, (Viewport{8, {2.5, 5}}));
  EXPECT_EQ(table_scrolled(table_layout(size, body, viewport, kScale), viewport, {-100, -100}).offset, QPointF(0, 0));
}

}  // namespace
}  // namespace kvscope::viz::table_layout_test
