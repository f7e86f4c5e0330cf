// The layouts of the tile view's panels: every row and every token has its rectangle inside the body, and a
// point of it leads back to it.
#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "viz/geometry/memory_layout.h"
#include "viz/geometry/tile_sequence_layout.h"
#include "viz/geometry/tma_layout.h"

namespace kvscope::viz::tile_layouts_test {
namespace {

constexpr double kRounding = 1e-6;

bool apart(const QRectF& a, const QRectF& b) {
  const QRectF common = a.intersected(b);
  return common.width() < kRounding || common.height() < kRounding;
}

bool inside(const QRectF& body, const QRectF& rect) {
  return body.adjusted(-kRounding, -kRounding, kRounding, kRounding).contains(rect);
}

QRectF some_body() {
  return {36.5, 80.25, static_cast<double>(*rc::gen::inRange(90, 900)),
          static_cast<double>(*rc::gen::inRange(60, 900))};
}

double some_font() {
  return *rc::gen::element(0.75, 1.0, 1.6, 2.5);
}

// --- memory ----------------------------------------------------------------------------------------------------------

// The worked number of the header.
TEST(MemoryLayout, TwoPagesOf16RowsAreTwoGroupsWithAJumpBetweenThem) {
  const MemoryLayout layout = memory_layout({{0, 16}, {16, 16}}, {0, 0, 260, 460}, 1);
  ASSERT_EQ(layout.groups.size(), 2u);
  EXPECT_EQ(layout.pitch, 11);
  EXPECT_EQ(layout.table, QRectF(0, 0, 260, 26));
  EXPECT_EQ(layout.groups[0].rows, QRectF(104, 36, 156, 176));
  EXPECT_EQ(layout.groups[0].jump, QRectF(0, 212, 260, 44));
  EXPECT_TRUE(layout.groups[1].jump.isEmpty());
  EXPECT_EQ(layout.row_rect(16), QRectF(104, 256, 156, 10));
  EXPECT_EQ(layout.row_at({110, 258}), 16);
  EXPECT_EQ(layout.row_at({110, 230}), std::nullopt) << "the jump is no row";
  EXPECT_EQ(layout.row_rect(32), std::nullopt);
}

TEST(MemoryLayout, EveryRowIsInTheBodyApartFromTheOthersAndFoundByItsMiddle) {
  EXPECT_TRUE(rc::check([] {
    const auto pages = *rc::gen::inRange<std::int64_t>(1, 17);
    std::vector<MemoryPart> parts;
    std::int64_t rows = 0;
    for (std::int64_t page = 0; page < pages; ++page) {
      parts.push_back({rows, *rc::gen::inRange<std::int64_t>(1, 65)});
      rows += parts.back().rows;
    }
    const QRectF body = some_body();
    const MemoryLayout layout = memory_layout(parts, body, some_font());
    std::optional<QRectF> before;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto rect = layout.row_rect(row);
      RC_ASSERT(rect && rect->height() > 0);
      RC_ASSERT(inside(body, *rect));
      RC_ASSERT(!before || (apart(*before, *rect) && before->top() < rect->top()));
      RC_ASSERT(layout.row_at(rect->center()) == row);
      before = rect;
    }
  }));
}

// Rows thinner than a tenth of a pixel: they were drawn past the end of the body.
TEST(MemoryLayout, TheRowsOf16PagesStayInABodyOf60Pixels) {
  std::vector<MemoryPart> parts;
  for (std::int64_t page = 0; page < 16; ++page) parts.push_back({page * 64, 64});
  const QRectF body(0, 0, 90, 60);
  const MemoryLayout layout = memory_layout(parts, body, 0.75);
  EXPECT_NEAR(layout.row_rect(1023)->bottom(), body.bottom(), kRounding);
  EXPECT_EQ(layout.row_at(layout.row_rect(1023)->center()), 1023);
}

TEST(MemoryLayout, ATileWithoutRowsHasNoGroups) {
  EXPECT_TRUE(memory_layout({{0, 0}}, {0, 0, 100, 100}, 1).groups.empty());
}

// --- boxes -----------------------------------------------------------------------------------------------------------

TEST(TmaLayout, BoxesStandAsTheirPagesAndBandsDo) {
  const TmaLayout layout = tma_layout({4, 2, 16}, {0, 0, 300, 500}, 1);
  ASSERT_EQ(layout.boxes.size(), 4u);
  EXPECT_EQ(layout.boxes[0].frame.top(), layout.boxes[1].frame.top());
  EXPECT_EQ(layout.boxes[0].frame.left(), layout.boxes[2].frame.left());
  EXPECT_LT(layout.boxes[0].frame.right(), layout.boxes[1].frame.left());
  EXPECT_LT(layout.boxes[0].state.bottom(), layout.boxes[2].frame.top());
  EXPECT_GT(layout.bar.top(), layout.boxes[3].state.bottom());
  EXPECT_EQ(layout.at(layout.row_rect(3, 15).center()), (TmaLayout::Place{3, 15}));
  EXPECT_EQ(layout.at(layout.boxes[1].heading.center()), (TmaLayout::Place{1, -1}));
  EXPECT_EQ(layout.at(layout.bar.center()), std::nullopt);
}

TEST(TmaLayout, EveryRowOfEveryBoxIsInTheBodyAndFoundByItsMiddle) {
  EXPECT_TRUE(rc::check([] {
    const TmaSize size{*rc::gen::inRange<std::int64_t>(1, 40), *rc::gen::inRange<std::int64_t>(1, 10),
                       *rc::gen::element<std::int64_t>(1, 4, 16, 64, 128)};
    const QRectF body = some_body();
    const TmaLayout layout = tma_layout(size, body, some_font());
    RC_ASSERT(std::ssize(layout.boxes) == size.boxes);
    for (std::int64_t box = 0; box < size.boxes; ++box) {
      const TmaBox& at = layout.boxes[static_cast<std::size_t>(box)];
      RC_ASSERT(inside(body, at.frame));
      RC_ASSERT(layout.barrier.isEmpty() || apart(layout.barrier, at.frame));
      for (std::int64_t other = 0; other < box; ++other) {
        RC_ASSERT(apart(at.frame, layout.boxes[static_cast<std::size_t>(other)].frame));
      }
      for (std::int64_t row = 0; row < size.rows; ++row) {
        RC_ASSERT(inside(at.frame, layout.row_rect(box, row)));
        RC_ASSERT(layout.at(layout.row_rect(box, row).center()) == (TmaLayout::Place{box, row}));
      }
    }
  }));
}

// --- the sequence ----------------------------------------------------------------------------------------------------

TEST(TileSequenceLayout, AllPagesWhereTheyFit) {
  const SequenceStrip strip = tile_sequence_layout({94, 16, 64, 32}, {0, 0, 1528, 80}, 1);
  EXPECT_EQ(strip.first_page, 0);
  EXPECT_EQ(strip.end_page, 6);
  EXPECT_TRUE(strip.before.isEmpty());
  EXPECT_TRUE(strip.after.isEmpty());
  EXPECT_EQ(strip.token_at(strip.token_rect(70)->center()), 70);
  EXPECT_TRUE(strip.tile_rect().contains(*strip.token_rect(64)));
  EXPECT_TRUE(strip.tile_rect().contains(*strip.token_rect(95)));
}

// A sequence of thousands of tokens: the tile is in sight, and both ends say how much is not.
TEST(TileSequenceLayout, TheTilesPagesAndThoseAroundThemWhereNotAllFit) {
  const SequenceStrip strip = tile_sequence_layout({20000, 16, 9600, 64}, {0, 0, 1000, 80}, 1);
  EXPECT_LE(strip.first_page, 600);
  EXPECT_GE(strip.end_page, 604);
  EXPECT_FALSE(strip.before.isEmpty());
  EXPECT_FALSE(strip.after.isEmpty());
  EXPECT_EQ(strip.pages, 1250);
  EXPECT_GE(strip.cell, 4);
  EXPECT_EQ(strip.token_rect(0), std::nullopt);
}

// A tile of two pages of 512 tokens: cells thinner than a tenth of a pixel were drawn past the end of the body.
TEST(TileSequenceLayout, ThePagesOfATileStayInABodyOf90Pixels) {
  const QRectF body(0, 0, 90, 60);
  const SequenceStrip strip = tile_sequence_layout({1874, 512, 1008, 24}, body, 1.6);
  EXPECT_EQ(strip.first_page, 1);
  EXPECT_EQ(strip.end_page, 3);
  EXPECT_TRUE(inside(body, *strip.token_rect(1535)));
  EXPECT_EQ(strip.token_at(strip.token_rect(1535)->center()), 1535);
}

TEST(TileSequenceLayout, EveryTokenShownIsInTheBodyAndFoundByItsMiddle) {
  EXPECT_TRUE(rc::check([] {
    SequenceStripSize size;
    size.tokens = *rc::gen::inRange<std::int64_t>(1, 5000);
    size.page_size = *rc::gen::element<std::int64_t>(1, 4, 12, 16, 64, 512);
    size.rows = *rc::gen::element<std::int64_t>(1, 16, 24, 64, 128);
    size.first = *rc::gen::inRange<std::int64_t>(0, size.tokens) / size.rows * size.rows;
    const QRectF body = some_body();
    const SequenceStrip strip = tile_sequence_layout(size, body, some_font());
    RC_ASSERT(strip.first_page <= size.first / size.page_size && size.first / size.page_size < strip.end_page);
    for (std::int64_t token = strip.first_page * size.page_size; token < strip.end_page * size.page_size; ++token) {
      const auto rect = strip.token_rect(token);
      RC_ASSERT(rect && rect->width() > 0);
      RC_ASSERT(inside(body, *rect));
      RC_ASSERT(strip.token_at(rect->center()) == token);
    }
    RC_ASSERT(strip.before.isEmpty() == (strip.first_page == 0));
    RC_ASSERT(strip.after.isEmpty() == (strip.end_page == strip.pages));
  }));
}

}  // namespace
}  // namespace kvscope::viz::tile_layouts_test
