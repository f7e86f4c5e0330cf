// The rectangles of the attention view: inside the body, without overlaps, and each point leads back to its object.
#include "viz/geometry/attention_layout.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "tests/property.h"
#include "viz/geometry/board.h"

namespace kvscope::viz::attention_layout_test {
namespace {

bool inside(const QRectF& rect, const QRectF& body) {
  return rect.isEmpty() || body.adjusted(-0.01, -0.01, 0.01, 0.01).contains(rect);
}

TEST(HeatGrid, EveryCellIsInItsRoomAndIsFoundAgain) {
  EXPECT_TRUE(prop::check("any sizes", [] {
    const auto rows = prop::in_range<std::int64_t>(1, 300), columns = prop::in_range<std::int64_t>(1, 600);
    const QRectF room(10, 20, static_cast<double>(prop::in_range<std::int64_t>(20, 700)),
                      static_cast<double>(prop::in_range<std::int64_t>(20, 400)));
    const HeatGrid grid = heat_grid(rows, columns, room, 1);
    RC_ASSERT(inside(grid.area, room));
    RC_ASSERT(grid.cell.width() >= kSmallestHeatCell - 1e-9 && grid.cell.height() >= kSmallestHeatCell - 1e-9);
    for (std::int64_t n = 0; n < 50; ++n) {
      const auto row = prop::in_range<std::int64_t>(0, rows), column = prop::in_range<std::int64_t>(0, columns);
      const HeatCell cell = grid.of(row, column);
      RC_ASSERT(cell.row < grid.drawn_rows() && cell.column < grid.drawn_columns());
      RC_ASSERT(grid.at(grid.rect(cell).center()) == cell);
    }
    RC_ASSERT(!grid.at(grid.area.topLeft() - QPointF(1, 1)).has_value());
  }));
}

TEST(HeatGrid, ExamplesOfTheHeader) {
  const HeatGrid grid = heat_grid(3, 8, {0, 0, 352, 200}, 1);
  EXPECT_EQ(grid.cell, QSizeF(44, 44));
  EXPECT_FALSE(grid.binned());
  const HeatGrid binned = heat_grid(1, 100, {0, 0, 200, 44}, 1);
  EXPECT_EQ(binned.drawn_columns(), 50);
  EXPECT_EQ(binned.column_bin, 2);
  EXPECT_TRUE(heat_grid(0, 8, {0, 0, 352, 200}, 1).area.isEmpty());
}

TEST(FlowLayout, RowsAndColumnsAreInsideAndLeadBackToTheirTile) {
  for (const double font : {0.75, 1.0, 1.6, 2.5}) {
    for (const QSizeF size : {QSizeF(640, 420), QSizeF(300, 180), QSizeF(120, 60)}) {
      for (const std::int64_t tiles : {1, 2, 9, 64, 1000}) {
        const QRectF body(QPointF(20, 30), size);
        for (const std::int64_t now : {std::int64_t{0}, tiles / 2, tiles}) {
          const FlowLayout at = flow_layout(tiles, now, 3, body, font);
          ASSERT_TRUE(inside(at.result, body));
          double last = body.top();
          for (const QRectF& strip : at.strips) {
            if (strip.isEmpty()) continue;
            ASSERT_GE(strip.top(), last);
            last = strip.bottom();
          }
          for (std::int64_t tile = at.first_row; tile < at.end_row; ++tile) {
            const QRectF row = *at.row_rect(tile);
            ASSERT_TRUE(inside(row, body)) << font << ' ' << tiles;
            ASSERT_GE(row.top(), last);
            ASSERT_LE(row.bottom(), at.result.top() + 0.01);
            ASSERT_EQ(at.tile_at(row.center()), tile);
          }
          for (const std::int64_t tile : {std::int64_t{0}, tiles - 1}) {
            const QRectF column = at.column_rect(tile);
            if (!column.isEmpty()) {
              ASSERT_EQ(at.tile_at(column.center()), tile);
            }
          }
          // The last tile that was added has a row whenever there is a table.
          if (now > 0 && at.end_row > at.first_row) {
            ASSERT_TRUE(at.row_rect(now - 1)) << tiles << ' ' << now;
          }
        }
      }
    }
  }
}

TEST(FlowLayout, NarrowTablesLoseColumnsAndKeepTheTileAndTheState) {
  const auto columns = [](double width) {
    std::vector<FlowColumn> found;
    for (const FlowColumnPlace& place : flow_layout(4, 4, 3, {0, 0, width, 400}, 1).columns) {
      EXPECT_LE(place.right, width + 0.01);
      found.push_back(place.column);
    }
    return found;
  };
  using enum FlowColumn;
  EXPECT_EQ(columns(700).size(), kFlowColumns);
  EXPECT_THAT(columns(300), ::testing::ElementsAre(tile, largest, rescale, sum));
  EXPECT_THAT(columns(60), ::testing::ElementsAre(tile));
}

TEST(ErrorsLayout, MapsAndWordsDoNotOverlap) {
  for (const double font : {0.75, 1.0, 1.6, 2.5}) {
    for (const QSizeF size : {QSizeF(680, 430), QSizeF(570, 250), QSizeF(200, 120), QSizeF(100, 60)}) {
      for (const ErrorsSize& of : {ErrorsSize{5, 4, 1, 8}, ErrorsSize{1, 64, 512, 128}, ErrorsSize{400, 32, 3, 576}}) {
        const QRectF body(QPointF(5, 7), size);
        const ErrorsLayout at = errors_layout(of, 7, body, font);
        for (const QRectF& rect : {at.words, at.head_map.area, at.element_map.area}) ASSERT_TRUE(inside(rect, body));
        ASSERT_FALSE(at.head_map.area.intersects(at.words));
        ASSERT_FALSE(at.element_map.area.intersects(at.words));
        ASSERT_FALSE(at.element_map.area.intersects(at.head_map.area));
        ASSERT_FALSE(at.element_name.intersects(at.head_map.area));
      }
    }
  }
  // The lower map is the first thing to go, not the upper one.
  EXPECT_FALSE(errors_layout({5, 4, 1, 8}, 7, {0, 0, 570, 250}, 1.6).element_map.area.isEmpty());
  EXPECT_FALSE(errors_layout({5, 4, 1, 8}, 7, {0, 0, 570, 150}, 1.6).head_map.area.isEmpty());
}

TEST(OutputLayout, EveryDimHasABarOrSharesOne) {
  for (const std::int64_t dims : {1, 8, 128, 576, 5000}) {
    for (const double width : {80.0, 300.0, 1528.0}) {
      const OutputLayout at = output_layout(dims, {0, 0, width, 160}, 1);
      ASSERT_GE(at.bars() * at.bin, dims);
      ASSERT_LT((at.bars() - 1) * at.bin, dims);
      for (const std::int64_t bar : {std::int64_t{0}, at.bars() - 1}) {
        ASSERT_EQ(at.bar_at(at.bar(at.values, bar).center()), bar);
        ASSERT_EQ(at.bar_at(at.bar(at.errors, bar).center()), bar);
      }
    }
  }
}

TEST(ErrorLevel, IsLogarithmicAroundTheBound) {
  EXPECT_EQ(error_level(0), 0);
  EXPECT_EQ(error_level(1), 0.5);
  EXPECT_NEAR(error_level(10), 4.0 / 6, 1e-12);
  EXPECT_EQ(error_level(1e9), 1);
  EXPECT_EQ(error_level(INFINITY), 1);
  EXPECT_EQ(error_level(NAN), 1);
}

// At each text size the view is as high as the chart, two rows of the table and the words need: the window scrolls.
TEST(AttentionLayout, TheChartIsShownAtEachTextSize) {
  for (const double font : {0.75, 1.0, 1.25, 1.6, 2.0, 2.5}) {
    for (const double width : {480.0, 700.0, 860.0, 936.0, 1000.0, 1366.0, 1600.0, 1920.0, 2560.0}) {
      for (const double height : {320.0, 500.0, 768.0, 1000.0, 1440.0}) {
        const QSizeF size = whole_size(View::attention, {width, height}, font);
        const std::vector<Place> places = board(View::attention, size, font);
        const auto place = std::ranges::find(places, PanelId::attention_flow, &Place::panel);
        ASSERT_NE(place, places.end()) << width << 'x' << height << " at " << font;
        for (const std::int64_t tiles : {1, 3, 13, 200}) {
          const FlowLayout at = flow_layout(tiles, tiles, 3, place->body, font);
          EXPECT_FALSE(at.strips[0].isEmpty()) << width << 'x' << height << " at " << font << ", " << tiles;
          EXPECT_GE(at.strips[0].height(), 12 * font) << width << 'x' << height << " at " << font;
          EXPECT_GE(at.end_row - at.first_row, std::min<std::int64_t>(tiles, 2)) << width << " at " << font;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::viz::attention_layout_test
