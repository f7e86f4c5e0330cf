#include "viz/geometry/sequences_layout.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>

namespace kvscope::viz::sequences_layout_test {
namespace {

const QRectF kBody(36, 88, 1528, 195);  // of the overview at 1600x1000

SequencesLayout fit(const QRectF& body, std::int64_t rows, std::int64_t pages, std::int64_t page_size,
                    double font_scale = 1) {
  return sequences_layout(body, {rows, pages, page_size}, {}, font_scale);
}

struct Any {
  QRectF body;
  SequencesExtent extent;
  Viewport viewport;
  double font_scale;
};
Any anything() {
  return {QRectF(36, 88, *rc::gen::inRange(200, 2000), *rc::gen::inRange(30, 900)),
          {*rc::gen::inRange<std::int64_t>(0, *rc::gen::element(8, 100, 5000)),
           *rc::gen::inRange<std::int64_t>(1, *rc::gen::element(6, 60, 9000)),
           *rc::gen::element<std::int64_t>(1, 4, 12, 16, 64, 512), *rc::gen::arbitrary<bool>()},
          {*rc::gen::inRange(0, 400) / 100.0, QPointF(*rc::gen::inRange(0, 3000), *rc::gen::inRange(0, 900))},
          *rc::gen::element(0.75, 1.0, 1.5, 2.0)};
}
SequencesLayout layout_of(const Any& any) {
  return sequences_layout(any.body, any.extent, any.viewport, any.font_scale);
}

// --- level of detail -------------------------------------------------------------------------------------------------

// The worked number of the header: five pages of 16 on 1442 px.
TEST(SequencesLayout, PutsAPageEvery284PxAndToken37IntoPage2) {
  const SequencesLayout layout = fit(kBody, 3, 5, 16);
  EXPECT_EQ(layout.detail, SequencesDetail::numbers);
  EXPECT_EQ(layout.cell, 17);
  EXPECT_EQ(layout.page_pitch, 284);
  EXPECT_EQ(layout.x_of(37) - layout.strip.left(), 656);
  EXPECT_EQ(layout.token_cell(1, 37).width(), 15);
  EXPECT_EQ(layout.token_cell(1, 37).left(), layout.x_of(37));
}

// Annotations of a row are above its box: three quarters of the gap are above it.
TEST(SequencesLayout, LeavesMostOfTheGapAboveTheBox) {
  const SequencesLayout layout = fit(kBody, 3, 5, 16);
  EXPECT_EQ(layout.row_pitch, 65);
  EXPECT_EQ(layout.box_top, 13);
  EXPECT_EQ(layout.box_height, 65 - 18);
  EXPECT_EQ(layout.page_box(1, 0).top(), 88 + 65 + 13);
}

// Two tokens in the whole panel must not become two bars across it, and must be larger than 18 px.
TEST(SequencesLayout, FewTokensAreLargeButNoBars) {
  const SequencesLayout layout = fit(kBody, 1, 1, 2);
  EXPECT_EQ(layout.cell, 28);
  EXPECT_EQ(layout.row_pitch, 105);
}

// Cells wider than the natural width are at most as wide as high: six low rows must not have cells of 28 px.
TEST(SequencesLayout, CellsWiderThanNaturalAreNoWiderThanHigh) {
  EXPECT_TRUE(rc::check([] {
    Any any = anything();
    any.viewport = {};
    const SequencesLayout layout = layout_of(any);
    RC_CLASSIFY(layout.cell > kNaturalCell * any.font_scale, "wide");
    if (layout.cell_gap == 0 || layout.cell <= kNaturalCell * any.font_scale) return;  // bars have no cells
    RC_ASSERT(layout.cell <= kMostFit * kNaturalCell * any.font_scale);
    // The axis and the note may take a line each, from all rows together.
    const double taken = 36 * any.font_scale / static_cast<double>(layout.extent.rows);
    RC_ASSERT(layout.cell <= layout.box_height + taken + 2);
  }));
}

TEST(SequencesLayout, ShowsLessOfEachTokenTheMoreThereAre) {
  using enum SequencesDetail;
  EXPECT_EQ(fit(kBody, 3, 5, 16).detail, numbers);
  EXPECT_EQ(fit(kBody, 3, 12, 16).detail, cells);
  EXPECT_EQ(fit(kBody, 3, 100, 16).detail, pages);
  EXPECT_EQ(fit(kBody, 30, 8000, 16).detail, lines);
  EXPECT_EQ(fit(kBody, 4000, 8000, 16).detail, density);
  EXPECT_EQ(fit(kBody, 16, 5, 16).detail, pages) << "cells 6 px high are no cells";
}

// With numbers in the cells there is no axis. Without them there is one, and it reduces the height of the rows.
TEST(SequencesLayout, HasAnAxisExactlyWhereCellsCarryNoNumbers) {
  EXPECT_TRUE(rc::check([] {
    const Any any = anything();
    const SequencesLayout layout = layout_of(any);
    RC_ASSERT(layout.axis.isEmpty() == (layout.writing != Writing::none));
    RC_ASSERT((layout.detail == SequencesDetail::numbers) <= (layout.writing != Writing::none));
    if (layout.axis.isEmpty()) return;
    RC_ASSERT(layout.axis.top() >= layout.strip.top() && layout.axis.bottom() <= any.body.bottom() + 1e-9);
    RC_ASSERT(layout.axis.top() <= layout.strip.bottom() + layout.note.height());
    RC_ASSERT(layout.axis.top() >= layout.note.bottom() || layout.note.isEmpty());
  }));
}

// A note over the last rows would make both illegible.
TEST(SequencesLayout, ANoteStandsUnderTheRowsWhateverTheirHeight) {
  EXPECT_TRUE(rc::check([] {
    const Any any = anything();
    const SequencesLayout layout = layout_of(any);
    RC_ASSERT(layout.note.isEmpty() == !any.extent.note);
    if (layout.note.isEmpty()) return;
    const IndexRange rows = layout.visible_rows();
    const double last = std::min(layout.page_box(rows.last - 1, 0).bottom(), layout.strip.bottom());
    RC_ASSERT(layout.note.top() >= last - 1e-9);
    RC_ASSERT(layout.note.bottom() <= any.body.bottom() + 1e-9);
  }));
}

TEST(SequencesLayout, AtFitEverythingIsOnScreen) {
  EXPECT_TRUE(rc::check([] {
    Any any = anything();
    any.viewport = {};
    any.font_scale = std::min(any.font_scale, 1.0);  // larger text may need more room than there is
    const SequencesLayout layout = layout_of(any);
    RC_ASSERT(layout.content.width() <= layout.strip.width() + 1e-6);
    RC_ASSERT(layout.content.height() <= layout.strip.height() + 1e-6);
    RC_ASSERT(layout.visible_rows() == (IndexRange{0, layout.extent.rows}));
    RC_ASSERT(layout.visible_pages() == (IndexRange{0, layout.extent.pages}));
    RC_ASSERT(layout.offset == QPointF(0, 0));
  }));
}

// Regression: at 1.6 times the text size the numbers in the cells disappeared, at 2.5 times the cells and most names.
TEST(SequencesLayout, LargerTextKeepsCellsNumbersAndNames) {
  EXPECT_TRUE(rc::check([] {
    Any any = anything();
    any.viewport = {};
    any.font_scale = 1;
    const SequencesLayout usual = layout_of(any);
    any.font_scale = *rc::gen::element(1.1, 1.6, 2.5);
    const SequencesLayout layout = layout_of(any);
    if (usual.detail <= SequencesDetail::cells) RC_ASSERT(layout.detail <= usual.detail);
    if (usual.row_pitch >= kNextLabel) RC_ASSERT(layout.row_pitch >= kNextLabel * any.font_scale);
    if (usual.detail == SequencesDetail::numbers) RC_ASSERT(layout.number_px >= kNumber * any.font_scale - 1);
    // Every row and every page is reached by scrolling.
    any.viewport = {layout.zoom, {1e7, 1e7}};
    const SequencesLayout end = layout_of(any);
    RC_ASSERT(end.visible_rows().last == end.extent.rows && end.visible_pages().last == end.extent.pages);
  }));
}

// The fit is the maximum: with one more px per token (or per page, if pages are bars) the content must not fit.
TEST(SequencesLayout, AtFitNothingWiderWouldFit) {
  EXPECT_TRUE(rc::check([] {
    Any any = anything();
    any.viewport = {};
    const SequencesLayout layout = layout_of(any);
    if (layout.cell >= std::floor(kNaturalCell * any.font_scale)) return;
    const auto pages = static_cast<double>(layout.extent.pages);
    const double more = layout.cell_gap > 0 ? static_cast<double>(layout.extent.page_size) * pages : pages;
    // From bars to the narrowest cells the padding of the boxes comes in at once.
    const double least_cell = 5 * any.font_scale;
    const bool at_the_edge = layout.cell_gap == 0 && layout.cell + 1 >= least_cell;
    if (at_the_edge) return;
    RC_ASSERT(layout.content.width() + more + layout.page_gap > layout.strip.width());
  }));
}

// --- places ----------------------------------------------------------------------------------------------------------

// Every visible token can be pointed at: the point in the middle of its cell gives this token and no other.
TEST(SequencesLayout, ThePointInATokensMiddleLeadsBackToIt) {
  EXPECT_TRUE(rc::check([] {
    const Any any = anything();
    const SequencesLayout layout = layout_of(any);
    const IndexRange rows = layout.visible_rows(), pages = layout.visible_pages();
    RC_PRE(rows.size() > 0 && pages.size() > 0);
    const auto row = *rc::gen::inRange(rows.first, rows.last), page = *rc::gen::inRange(pages.first, pages.last);
    const auto slot = *rc::gen::inRange<std::int64_t>(0, layout.extent.page_size);
    const QRectF cell = layout.token_cell(row, page * layout.extent.page_size + slot);
    RC_PRE(layout.strip.contains(cell.center()));
    const std::optional<SequencesSpot> spot = layout.at(cell.center());
    RC_ASSERT(spot.has_value());
    RC_ASSERT(*spot == (SequencesSpot{row, false, page, slot}));
  }));
}

TEST(SequencesLayout, ThePointInALabelsMiddleLeadsToItsRow) {
  EXPECT_TRUE(rc::check([] {
    const SequencesLayout layout = layout_of(anything());
    const IndexRange rows = layout.visible_rows();
    RC_PRE(rows.size() > 0);
    const auto row = *rc::gen::inRange(rows.first, rows.last);
    const QPointF at = layout.label_rect(row).center();
    RC_PRE(layout.gutter.contains(at));
    RC_ASSERT(layout.at(at) == (SequencesSpot{row, true, 0, 0}));
  }));
}

// A point between two boxes belongs to the nearer one: a pointer that crosses a page's border must always hit an
// object.
TEST(SequencesLayout, BetweenTwoPagesTheNearerOneIsMeant) {
  const SequencesLayout layout = fit(kBody, 3, 5, 16);
  const QRectF box = layout.page_box(1, 2);
  EXPECT_EQ(layout.at({box.right() + 2, box.center().y()}), (SequencesSpot{1, false, 2, 15}));
  EXPECT_EQ(layout.at({box.right() + 4, box.center().y()}), (SequencesSpot{1, false, 3, 0}));
  EXPECT_EQ(layout.at({box.left() + 1, box.center().y()}), (SequencesSpot{1, false, 2, 0})) << "in the padding";
}

TEST(SequencesLayout, OutsideAndBelowTheLastRowIsNothing) {
  const SequencesLayout layout = fit(QRectF(36, 88, 1528, 600), 2, 5, 16);
  EXPECT_EQ(layout.at({35, 100}), std::nullopt);
  EXPECT_EQ(layout.at({800, 87}), std::nullopt);
  EXPECT_EQ(layout.at({800, 88 + 2 * kNaturalRow + 1}), std::nullopt);
  EXPECT_EQ(layout.at({50, 88 + 2 * kNaturalRow + 1}), std::nullopt);
}

// Tokens in order, no two on one another, pages apart, all of a page's tokens in its box: in every detail and zoom.
TEST(SequencesLayout, CellsStandInTheirBoxesInOrder) {
  EXPECT_TRUE(rc::check([] {
    const SequencesLayout layout = layout_of(anything());
    const auto tokens = std::min<std::int64_t>(layout.extent.page_size * layout.extent.pages, 200);
    for (std::int64_t token = 0; token < tokens; ++token) {
      const QRectF cell = layout.token_cell(0, token), box = layout.page_box(0, token / layout.extent.page_size);
      RC_ASSERT(cell.width() > 0 && cell.height() > 0);
      RC_ASSERT(box.adjusted(-1e-6, -1e-6, 1e-6, 1e-6).contains(cell));
      if (token > 0) RC_ASSERT(layout.token_cell(0, token - 1).right() <= cell.left() + 1e-6);
    }
    RC_ASSERT(layout.page_box(0, 0).bottom() <= layout.page_box(1, 0).top() + 1e-6);
    RC_ASSERT(layout.page_box(0, 1).left() - layout.page_box(0, 0).right() >= layout.page_gap - 1e-6);
  }));
}

// Positions at half pixels would make gaps look different.
TEST(SequencesLayout, CellsAndBoxesStandOnWholePixels) {
  EXPECT_TRUE(rc::check([] {
    const SequencesLayout layout = layout_of(anything());
    if (layout.row_pitch >= 4) {
      const QRectF box = layout.page_box(2, 1);
      RC_ASSERT(box.top() == std::round(box.top()) && box.bottom() == std::round(box.bottom()));
    }
    if (layout.page_pitch >= 4) {
      const QRectF box = layout.page_box(2, 1);
      RC_ASSERT(box.left() == std::round(box.left()) && box.right() == std::round(box.right()));
    }
    if (layout.cell_gap > 0) {
      const QRectF cell = layout.token_cell(1, 3);
      RC_ASSERT(cell.left() == std::round(cell.left()) && cell.right() == std::round(cell.right()));
    }
  }));
}

TEST(SequencesLayout, ARunIsTheUnionOfItsCells) {
  const SequencesLayout layout = fit(kBody, 3, 5, 16);
  QRectF all;
  for (std::int64_t token = 10; token < 40; ++token) all |= layout.token_cell(2, token);
  EXPECT_EQ(layout.run_rect(2, 10, 40), all);
}

// --- thousands of rows -----------------------------------------------------------------------------------------------

// Every row belongs to exactly one band, and the bands follow each other without a gap.
TEST(RowsOfBand, CoverAllRowsInOrder) {
  EXPECT_TRUE(rc::check([] {
    const auto rows = *rc::gen::inRange<std::int64_t>(100, 20'000);
    const QRectF body(0, 0, 800, *rc::gen::inRange(40, 900));
    const SequencesLayout layout = fit(body, rows, 4000, 16);
    RC_PRE(layout.detail == SequencesDetail::density);
    const IndexRange bands = layout.visible_bands();
    std::int64_t next = 0;
    for (std::int64_t band = bands.first; band < bands.last; ++band) {
      const IndexRange range = layout.rows_of_band(band);
      RC_ASSERT(range.first == next && range.size() > 0);
      RC_ASSERT(std::abs(layout.band_rect(band).top() - layout.row_rect(range.first).top()) < 1e-9);
      if (range.last < rows) RC_ASSERT(layout.band_rect(band).height() >= kBand - 1e-9);
      next = range.last;
    }
    RC_ASSERT(next == rows);
  }));
}

// Beyond 60 rows the colors of single rows are noise: bands show how many of them reach how far. Zoomed in, rows are
// rows again.
TEST(SequencesLayout, MoreThanSixtyLowRowsAreBands) {
  const QRectF body(0, 0, 1500, 840);
  const auto detail = [&](std::int64_t rows) { return fit(body, rows, 40, 16).detail; };
  EXPECT_EQ(detail(60), SequencesDetail::pages);
  for (const std::int64_t rows : {61, 70, 80, 90, 110, 120}) {
    const SequencesLayout layout = fit(body, rows, 40, 16);
    EXPECT_EQ(layout.detail == SequencesDetail::density, layout.row_pitch < 10) << rows << ": " << layout.row_pitch;
    EXPECT_EQ(layout.band, 1) << rows;  // at least 6 px each: each row has one bar
  }
  EXPECT_EQ(detail(61), SequencesDetail::pages);
  EXPECT_EQ(detail(140), SequencesDetail::density);
  EXPECT_EQ(detail(10'000), SequencesDetail::density);
  EXPECT_EQ(fit(body, 10'000, 40, 16).band, 75);  // room for 10,240 rows of 0.080 px: bands of at least 6 px
  const SequencesLayout near = sequences_layout(body, {200, 40, 16, false}, {0.5, {0, 0}}, 1);
  EXPECT_LE(near.visible_rows().size(), 60);
  EXPECT_NE(near.detail, SequencesDetail::density);
  EXPECT_EQ(near.band, 1);
}

// --- zoom ------------------------------------------------------------------------------------------------------------

TEST(ZoomedSequences, KeepsTheTokenUnderThePointer) {
  EXPECT_TRUE(rc::check([] {
    const Any any = anything();
    const SequencesLayout before = layout_of(any);
    const QPointF at = before.strip.center() + QPointF(*rc::gen::inRange(-90, 90), *rc::gen::inRange(-9, 9));
    const double factor = *rc::gen::element(1.25, 2.0, 0.8);
    const Viewport zoomed = zoomed_sequences(any.body, any.extent, any.viewport, any.font_scale, factor, at);
    const SequencesLayout after = sequences_layout(any.body, any.extent, zoomed, any.font_scale);
    // At an edge of the content the token cannot stay under the pointer.
    const QPointF most(after.content.width() - after.strip.width(), after.content.height() - after.strip.height());
    const std::optional<SequencesSpot> from = before.at(at), to = after.at(at);
    RC_PRE(from.has_value() && zoomed.zoom > 0);
    const bool free_x = zoomed.offset.x() > 1 && zoomed.offset.x() < most.x() - 1;
    const bool free_y = zoomed.offset.y() > 1 && zoomed.offset.y() < most.y() - 1;
    RC_CLASSIFY(free_x, "free along the row");
    RC_PRE(to.has_value());  // an axis that appears or disappears may be under the pointer
    if (free_y) {
      const double moved = static_cast<double>(std::abs(to->row - from->row));
      RC_ASSERT(moved <= std::ceil(1 / std::min(before.row_pitch, after.row_pitch)));
    }
    if (free_x) {
      const auto tokens = [&](const SequencesSpot& s) {
        return static_cast<double>(s.page * before.extent.page_size + s.slot);
      };
      // A tolerance of one pixel of each scale; the padding of a box belongs to no token.
      const double pixel = static_cast<double>(before.extent.page_size) / std::min(before.page_pitch, after.page_pitch);
      RC_ASSERT(std::abs(tokens(*to) - tokens(*from)) <= 2 + 4 * pixel);
    }
  }));
}

// Zooming out ends at "fit", which follows the window's size; a stored zoom value would not.
TEST(ZoomedSequences, SmallerThanWhatFitsIsFit) {
  const SequencesExtent extent{3, 5, 16};
  Viewport viewport = zoomed_sequences(kBody, extent, {}, 1, 1.5, {400, 150});
  EXPECT_GT(viewport.zoom, 0);
  viewport = zoomed_sequences(kBody, extent, viewport, 1, 0.5, {400, 150});
  EXPECT_EQ(viewport, Viewport{});
}

TEST(ZoomedSequences, EndsAtTheLargestCell) {
  const SequencesExtent extent{3, 8000, 16};
  Viewport viewport;
  for (int i = 0; i < 60; ++i) viewport = zoomed_sequences(kBody, extent, viewport, 1, 1.5, {400, 150});
  EXPECT_EQ(viewport.zoom, kMostZoom);
  const SequencesLayout layout = sequences_layout(kBody, extent, viewport, 1);
  EXPECT_EQ(layout.cell, kMostZoom * kNaturalCell);
  EXPECT_EQ(layout.detail, SequencesDetail::numbers);
}

// Zooming into 126,000 tokens must lead to readable cells, not to bars of a px height.
TEST(ZoomedSequences, RowsGrowWithTheCells) {
  const SequencesExtent extent{300, 8000, 16};
  const SequencesLayout layout = sequences_layout(kBody, extent, {1, {1000, 1000}}, 1);
  EXPECT_EQ(layout.row_pitch, kNaturalRow);
  EXPECT_EQ(layout.visible_rows(), (IndexRange{15, 19}));
}

// --- calm sizes ------------------------------------------------------------------------------------------------------

TEST(CalmRows, IsTheNextStepOfTheLadder) {
  for (std::int64_t rows = 1; rows <= 16; ++rows) EXPECT_EQ(calm_rows(rows), rows);
  EXPECT_EQ(calm_rows(0), 1);
  EXPECT_EQ(calm_rows(17), 18);
  EXPECT_EQ(calm_rows(18), 18);
  EXPECT_EQ(calm_rows(32), 32);
  EXPECT_EQ(calm_rows(33), 36);
  EXPECT_EQ(calm_rows(4096), 4096);
  EXPECT_EQ(calm_rows(4097), 4608);
}

TEST(CalmPages, IsAHalfOrThreeQuartersOfTheLongestAndAlwaysEnough) {
  EXPECT_EQ(calm_pages(5, 5), 5);
  EXPECT_EQ(calm_pages(100, 100), 100);
  EXPECT_EQ(calm_pages(76, 100), 100);
  EXPECT_EQ(calm_pages(75, 100), 75);
  EXPECT_EQ(calm_pages(51, 100), 75);
  EXPECT_EQ(calm_pages(50, 100), 50);
  EXPECT_EQ(calm_pages(38, 100), 38);
  EXPECT_EQ(calm_pages(1, 100), 1);
  EXPECT_EQ(calm_pages(0, 100), 1);
  EXPECT_EQ(calm_pages(120, 100), 120) << "longer than `longest`";
  EXPECT_TRUE(rc::check([] {
    const auto longest = *rc::gen::inRange<std::int64_t>(1, 10'000),
               needed = *rc::gen::inRange<std::int64_t>(1, 10'000);
    const std::int64_t calm = calm_pages(needed, longest);
    RC_ASSERT(calm >= needed);
    RC_ASSERT(3 * (calm - 2) <= 5 * needed);  // never much more than half empty
  }));
}

// --- numbers ---------------------------------------------------------------------------------------------------------

TEST(WritingOf, IsAcrossWhereTheNumberFitsElseUpwardsElseNotAtAll) {
  EXPECT_EQ(writing_of({20, 40}, 2, 1), Writing::across);
  EXPECT_EQ(writing_of({15, 40}, 3, 1), Writing::upwards);
  EXPECT_EQ(writing_of({15, 40}, 6, 1), Writing::upwards);
  EXPECT_EQ(writing_of({15, 40}, 7, 1), Writing::none) << "40.8 px of digits";
  EXPECT_EQ(writing_of({8, 40}, 1, 1), Writing::none);
  EXPECT_EQ(writing_of({15, 40}, 3, 2), Writing::none) << "a larger font";
}

// When zoomed in, numbers grow with their cells and stay inside them.
TEST(NumberPx, IsTheLargestThatFits) {
  EXPECT_EQ(number_px({15, 40}, 2, Writing::upwards, 1), 13) << "15.75 by its width: no larger than the largest";
  EXPECT_EQ(number_px({12, 40}, 2, Writing::upwards, 1), 12) << "11 px of 8 are 12.4";
  EXPECT_EQ(number_px({9, 40}, 2, Writing::upwards, 1), 9);
  EXPECT_EQ(number_px({26, 40}, 3, Writing::across, 1), 11) << "20 px of 16.2 are 11.1";
  EXPECT_EQ(number_px({26, 40}, 3, Writing::none, 1), 0);
  EXPECT_EQ(number_px({60, 90}, 2, Writing::across, 2), 26);
  EXPECT_TRUE(rc::check([] {
    const QSizeF cell(*rc::gen::inRange(12, 90), *rc::gen::inRange(26, 90));
    const auto digits = *rc::gen::inRange<std::int64_t>(1, 7);
    const double scale = *rc::gen::element(1.0, 1.5, 2.0);
    const Writing writing = writing_of(cell, digits, scale);
    RC_PRE(writing != Writing::none);
    const double px = number_px(cell, digits, writing, scale);
    const double along = static_cast<double>(digits) * 0.6 * px;  // a digit of JetBrains Mono is 0.6 of its size
    RC_ASSERT(px >= std::floor(kNumber * scale));
    RC_ASSERT(along <= (writing == Writing::across ? cell.width() : cell.height()));
  }));
}

// Pages of 256 tokens in rows of six px: rounding 5.6 px per token down to 5 would leave a tenth of the panel empty.
TEST(SequencesLayout, BarsUseTheWidthThatCellsOfWholePixelsCannot) {
  const SequencesLayout layout = fit(kBody, 20, 1, 256);
  EXPECT_EQ(layout.detail, SequencesDetail::pages);
  EXPECT_GE(layout.content.width(), layout.strip.width() - 5);
}

TEST(AxisTicks, AreAtRoundTokensFarEnoughApart) {
  const SequencesLayout layout = fit(kBody, 3, 8000, 16);
  const std::vector<AxisTick> ticks = axis_ticks(layout, 60);
  std::vector<std::int64_t> tokens;
  for (const AxisTick& tick : ticks) tokens.push_back(tick.token);
  EXPECT_THAT(tokens, testing::ElementsAre(0, 10'000, 20'000, 30'000, 40'000, 50'000, 60'000, 70'000, 80'000, 90'000,
                                           100'000, 110'000, 120'000));
}

TEST(AxisTicks, StandWhereTheirTokensStand) {
  EXPECT_TRUE(rc::check([] {
    const SequencesLayout layout = layout_of(anything());
    const std::vector<AxisTick> ticks = axis_ticks(layout, 60);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      RC_ASSERT(ticks[i].x == layout.x_of(ticks[i].token));
      RC_ASSERT(ticks[i].x <= layout.strip.right());
      // The padding of the boxes makes single distances vary slightly.
      if (i > 0) RC_ASSERT(ticks[i].x - ticks[i - 1].x >= 60 - 12);
    }
  }));
}

}  // namespace
}  // namespace kvscope::viz::sequences_layout_test
