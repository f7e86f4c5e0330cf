// The lines of a tensor map, and the parts beside and below the rows of the pool.
#include "viz/geometry/map_layout.h"

#include <gtest/gtest.h>

#include <vector>

#include "viz/geometry/memory_layout.h"
#include "viz/geometry/tma_layout.h"

namespace kvscope::viz::map_layout_test {
namespace {

bool apart(const QRectF& a, const QRectF& b) {
  return a.isEmpty() || b.isEmpty() || !a.adjusted(0.01, 0.01, -0.01, -0.01).intersects(b);
}

TEST(MapLayout, NameBarAndNumbersOfALineAreBesideOneAnother) {
  for (const double scale : {1.0, 1.6, 2.5}) {
    for (const double width : {60.0, 180.0, 264.0, 700.0}) {
      const QRectF body(10, 20, width * scale, 300);
      const MapLayout at = map_layout({0, 28, 0, 14}, 130 * scale, body, scale);
      ASSERT_EQ(at.lines.size(), 4U);
      double top = at.heading.bottom();
      for (std::size_t n = 0; n < at.lines.size(); ++n) {
        const MapLine& line = at.lines[n];
        EXPECT_TRUE(apart(line.name, line.bar) && apart(line.bar, line.numbers) && apart(line.name, line.numbers));
        EXPECT_TRUE(apart(line.name, line.note));
        EXPECT_GE(line.name.top(), top - 0.01);
        top = line.whole().bottom();
        EXPECT_EQ(line.note.isEmpty(), n % 2 == 0);
      }
      EXPECT_DOUBLE_EQ(at.bottom, top);
      EXPECT_EQ(at.lines[0].bar.isEmpty(), width < 264);
      EXPECT_DOUBLE_EQ(map_layout({0, 0, 0, 0}, 130 * scale, body, scale).bottom, body.top() + map_height(3, scale));
    }
  }
}

// 16 of 2064 rows would be less than a pixel.
TEST(MapLayout, APartIsNeverTooNarrowToBeSeenAndNeverLeavesItsBar) {
  const MapLayout at = map_layout({0, 0}, 100, QRectF(0, 0, 300, 60), 1);
  for (const double from : {0.0, 1.0, 1000.0, 2063.0, 2064.0, 5000.0}) {
    const QRectF part = at.part(0, from, 16, 2064);
    EXPECT_GE(part.width(), 2);
    EXPECT_GE(part.left(), at.lines[0].bar.left());
    EXPECT_LE(part.right(), at.lines[0].bar.right() + 1e-9);
  }
  EXPECT_DOUBLE_EQ(at.part(0, 0, 64, 64).width(), at.lines[0].bar.width());
  EXPECT_TRUE(at.part(0, 0, 1, 0).isEmpty());
}

TEST(MapLayout, TheMapOfATileTakesItsLinesOnlyInAHighBody) {
  TmaSize size{2, 1, 16, 3, true};
  const TmaLayout high = tma_layout(size, QRectF(0, 0, 264, 472), 1);
  EXPECT_TRUE(high.axes);
  EXPECT_GE(high.map.height(), map_height(3, 1));
  EXPECT_FALSE(high.offers.isEmpty());
  EXPECT_TRUE(apart(high.offers, high.barrier));
  EXPECT_TRUE(apart(high.boxes.back().frame, high.barrier));
  EXPECT_TRUE(apart(high.map, high.boxes.front().frame));
  EXPECT_FALSE(tma_layout(size, QRectF(0, 0, 264, 290), 1).axes);
  EXPECT_TRUE(tma_layout(size, QRectF(0, 0, 264, 280), 1).offers.isEmpty());
  size.offers = false;
  size.axes = 0;
  const TmaLayout plain = tma_layout(size, QRectF(0, 0, 264, 472), 1);
  EXPECT_FALSE(plain.axes);
  EXPECT_TRUE(plain.offers.isEmpty());
}

TEST(MemoryLayout, ScalesAreBesideTheirRowsAndBytesBelowAllOfThem) {
  for (const double scale : {1.0, 1.6}) {
    const QRectF body(10, 10, 264 * scale, 470 * scale);
    const MemoryLayout at = memory_layout({{0, 16}, {16, 16}}, body, scale, {60 * scale, 98 * scale});
    for (std::int64_t row = 0; row < 32; ++row) {
      const QRectF values = *at.row_rect(row), scales = *at.scale_rect(row);
      EXPECT_DOUBLE_EQ(values.top(), scales.top());
      EXPECT_DOUBLE_EQ(values.height(), scales.height());
      EXPECT_LT(values.right(), scales.left());
      EXPECT_LE(scales.right(), body.right() + 1e-9);
      EXPECT_LE(scales.bottom(), at.bytes.top());
      EXPECT_GE(scales.top(), at.heading.bottom());
    }
    EXPECT_FALSE(at.scale_rect(32));
    EXPECT_LE(at.bytes.bottom(), body.bottom() + 1e-9);
  }
  const MemoryLayout plain = memory_layout({{0, 16}, {16, 16}}, QRectF(0, 0, 264, 470), 1);
  EXPECT_FALSE(plain.scale_rect(0));
  EXPECT_TRUE(plain.bytes.isEmpty() && plain.heading.isEmpty());
  EXPECT_TRUE(memory_layout({{0, 16}}, QRectF(0, 0, 264, 200), 1, {0, 150}).bytes.isEmpty()) << "no room";
}

// "1,024" is wider than "896": it was cut off at its left.
TEST(RowBytesLayout, OffsetsHaveRoomForAllOfTheirDigits) {
  const QRectF area(5, 300, 264, 200);
  EXPECT_DOUBLE_EQ(row_bytes_layout(640, area, 1).offset, 26);
  EXPECT_DOUBLE_EQ(row_bytes_layout(1000, area, 1).offset, 26);
  EXPECT_DOUBLE_EQ(row_bytes_layout(1152, area, 1).offset, 31);
  EXPECT_DOUBLE_EQ(row_bytes_layout(20'000, area, 2).offset, 73);
  EXPECT_DOUBLE_EQ(row_bytes_layout(1152, area, 1).grid.left(), 5 + 31);
}

// 640 bytes: 10 lines. Each byte has another place.
TEST(MemoryLayout, TheBytesOfARowFillLinesOf64) {
  EXPECT_DOUBLE_EQ(row_bytes_height(640, 1), 98);
  const QRectF area(5, 300, 264, row_bytes_height(640, 1));
  const RowBytesLayout at = row_bytes_layout(640, area, 1);
  EXPECT_DOUBLE_EQ(at.grid.bottom(), area.bottom());
  std::vector<QRectF> all;
  for (std::int64_t byte = 0; byte < 640; ++byte) {
    const QRectF rect = at.rect(byte, 1);
    EXPECT_TRUE(at.grid.adjusted(-0.01, -0.01, 0.01, 0.01).contains(rect));
    EXPECT_TRUE(all.empty() || apart(all.back(), rect));
    all.push_back(rect);
  }
  EXPECT_DOUBLE_EQ(at.rect(64, 1).left(), at.rect(0, 1).left());
  EXPECT_GT(at.rect(64, 1).top(), at.rect(63, 1).bottom() - 1e-9);
  EXPECT_NEAR(at.rect(512, 2).width(), 2 * at.byte, 1e-9);
}

}  // namespace
}  // namespace kvscope::viz::map_layout_test
