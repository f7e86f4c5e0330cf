#include "viz/geometry/link_route.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "viz/geometry/cell_grid.h"

namespace kvscope::viz::link_route_test {
namespace {

// The worked number of the header.
TEST(LinkRoute, GoesDownTheLanesAndCurvesFromOneToTheOther) {
  const Link link = route_down({0, 0, 10, 10}, {11, 0, 50}, {}, {100, 200, 20, 10}, {121, 150, 260});
  ASSERT_EQ(link.parts.size(), 3u);
  EXPECT_EQ(link.start(), QPointF(11, 10));
  EXPECT_EQ(link.parts[0].end, QPointF(11, 50));
  EXPECT_EQ(link.parts[1], (LinkPath{{11, 50}, {11, 100}, {121, 100}, {121, 150}}));
  EXPECT_EQ(link.end(), QPointF(121, 200));
}

// An object in the last row, and one in the first: the link is a curve alone.
TEST(LinkRoute, HasNoLineWhereALaneHasNoLength) {
  const Link link = route_down({0, 40, 10, 10}, {11, 0, 50}, {}, {100, 150, 20, 10}, {121, 150, 260});
  ASSERT_EQ(link.parts.size(), 1u);
  EXPECT_EQ(link.start(), QPointF(11, 50));
  EXPECT_EQ(link.end(), QPointF(121, 150));
}

TEST(LinkRoute, PassesThePanelsBetweenInTheirLanes) {
  const std::vector<Lane> between{{60, 70, 120}};
  const Link link = route_down({0, 40, 10, 10}, {11, 0, 50}, between, {100, 200, 20, 10}, {121, 150, 260});
  ASSERT_EQ(link.parts.size(), 4u);
  EXPECT_EQ(link.parts[1].start, QPointF(60, 70));
  EXPECT_EQ(link.parts[1].end, QPointF(60, 120));
}

TEST(LinkRoute, GoesToTheRightBetweenRows) {
  const Link link = route_right({0, 0, 10, 10}, {11, 0, 80}, {200, 100, 20, 10}, {98, 120, 300});
  ASSERT_EQ(link.parts.size(), 3u);
  EXPECT_EQ(link.start(), QPointF(10, 11));
  EXPECT_EQ(link.parts[1], (LinkPath{{80, 11}, {100, 11}, {100, 98}, {120, 98}}));
  EXPECT_EQ(link.end(), QPointF(200, 98));
}

// At every size and offset of a grid, the lanes are between its cells: no cell is touched.
TEST(Lanes, OfAGridTouchNoCell) {
  EXPECT_TRUE(rc::check([] {
    CellGrid grid;
    grid.columns = *rc::gen::inRange(1, 30);
    grid.rows = *rc::gen::inRange(1, 30);
    grid.pitch = {*rc::gen::inRange(8, 120) * 1.0, *rc::gen::inRange(8, 120) * 1.0};
    grid.area = {20, 30, *rc::gen::inRange(130, 900) * 1.0, *rc::gen::inRange(130, 700) * 1.0};
    grid.offset = grid_offset({*rc::gen::inRange(0, 2000) * 1.0, *rc::gen::inRange(0, 2000) * 1.0}, grid);
    const double x = *rc::gen::inRange(20, 900);
    const Lane lane = column_lane(grid, x, 10);
    RC_ASSERT(lane.at > grid.area.left() && lane.at < grid.area.right() && lane.first == 10);
    const CellPlace any{*rc::gen::inRange<std::int64_t>(0, grid.columns),
                        *rc::gen::inRange<std::int64_t>(0, grid.rows)};
    const QRectF cell = grid.rect(any);
    RC_ASSERT(lane.at < cell.left() || lane.at > cell.right());
    RC_ASSERT(row_lane_below(grid, cell, 0).at > cell.bottom() && row_lane_above(grid, cell, 0).at < cell.top());
    RC_ASSERT(row_lane_below(grid, cell, 0).at < grid.rect({any.column, any.row + 1}).top());
  }));
}

}  // namespace
}  // namespace kvscope::viz::link_route_test
