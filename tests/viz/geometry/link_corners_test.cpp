// The rounded way through corners: its parts meet, its corners are quarter circles.
#include "viz/geometry/link_corners.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kvscope::viz::link_corners_test {
namespace {

// The example of the header: lines meet a rounded corner without a gap, and a place given twice changes nothing.
TEST(LinkCorners, ThroughCornersItTurnsInQuarterCircles) {
  const std::vector<QPointF> corners{{0, 0}, {0, 0}, {0, 50}, {80, 50}};
  const Link link = route_through(corners);
  ASSERT_EQ(link.parts.size(), 3u);
  EXPECT_EQ(link.start(), QPointF(0, 0));
  EXPECT_EQ(link.parts[0].end, QPointF(0, 44));
  EXPECT_EQ(link.parts[1].end, QPointF(6, 50));
  EXPECT_EQ(link.end(), QPointF(80, 50));
  for (std::size_t n = 1; n < link.parts.size(); ++n) EXPECT_EQ(link.parts[n].start, link.parts[n - 1].end);
  for (int i = 0; i <= 20; ++i) {  // on the circle around (6, 44)
    const QPointF at = point_at(link.parts[1], i / 20.0) - QPointF(6, 44);
    EXPECT_NEAR(std::hypot(at.x(), at.y()), 6, 0.05);
  }
  // Corners nearer than two radii share the room between them.
  const std::vector<QPointF> near{{0, 0}, {0, 4}, {2, 4}, {2, 30}};
  const Link small = route_through(near);
  EXPECT_EQ(small.parts[0].end, QPointF(0, 3));
  EXPECT_EQ(small.end(), QPointF(2, 30));
}

}  // namespace
}  // namespace kvscope::viz::link_corners_test
