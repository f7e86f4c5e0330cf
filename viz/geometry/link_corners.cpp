#include "viz/geometry/link_corners.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kvscope::viz {

Link route_through(std::span<const QPointF> corners) {
  constexpr double kTurn = 6;              // [px] radius of a corner
  constexpr double kQuarterCircle = 0.55;  // control points of a cubic that is nearly a circle's quarter
  std::vector<QPointF> way;
  for (const QPointF& corner : corners) {
    if (way.empty() || corner != way.back()) way.push_back(corner);
  }
  const auto toward = [](QPointF from, QPointF to, double by) {
    const QPointF along = to - from;
    return from + along / std::hypot(along.x(), along.y()) * by;
  };
  const auto length = [&](std::size_t n) {
    const QPointF along = way[n + 1] - way[n];
    return std::hypot(along.x(), along.y());
  };
  Link link;
  QPointF at = way.front();
  const auto line = [&](QPointF to) {
    link.parts.push_back({at, at + (to - at) / 3, at + (to - at) * 2 / 3, to});
    at = to;
  };
  for (std::size_t n = 1; n + 1 < way.size(); ++n) {
    const double turn = std::min({kTurn, length(n - 1) / 2, length(n) / 2});
    line(toward(way[n], way[n - 1], turn));
    const QPointF out = toward(way[n], way[n + 1], turn);
    const double reach = turn * (1 - kQuarterCircle);
    link.parts.push_back({at, toward(way[n], way[n - 1], reach), toward(way[n], way[n + 1], reach), out});
    at = out;
  }
  line(way.back());
  return link;
}

}  // namespace kvscope::viz
