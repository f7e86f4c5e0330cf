#include "viz/geometry/link_route.h"

#include <algorithm>

namespace kvscope::viz {
namespace {

// A straight line as a cubic.
LinkPath line(QPointF from, QPointF to) {
  return {from, from + (to - from) / 3, to - (to - from) / 3, to};
}

// The parts of a link that runs along one axis: each goes on where the last one ended.
class Route {
 public:
  Route(QPointF start, bool down) : at_(start), down_(down) {}
  void line_to(double along) {
    const QPointF to = down_ ? QPointF(at_.x(), along) : QPointF(along, at_.y());
    if (to == at_) return;
    parts_.push_back(line(at_, to));
    at_ = to;
  }
  // Leaves and arrives along the axis.
  void curve_to(QPointF to) {
    if (to == at_) return;
    const QPointF half = down_ ? QPointF(0, (to.y() - at_.y()) / 2) : QPointF((to.x() - at_.x()) / 2, 0);
    parts_.push_back({at_, at_ + half, to - half, to});
    at_ = to;
  }
  [[nodiscard]] Link link() const { return {parts_.empty() ? std::vector{line(at_, at_)} : parts_}; }

 private:
  QPointF at_;
  bool down_;
  std::vector<LinkPath> parts_;
};

}  // namespace

Link route_down(const QRectF& from, const Lane& out, std::span<const Lane> between, const QRectF& to, const Lane& in) {
  Route route({out.at, from.bottom()}, true);
  route.line_to(std::max(out.last, from.bottom()));
  for (const Lane& lane : between) {
    route.curve_to({lane.at, lane.first});
    route.line_to(lane.last);
  }
  route.curve_to({in.at, std::min(in.first, to.top())});
  route.line_to(to.top());
  return route.link();
}

Link route_right(const QRectF& from, const Lane& out, const QRectF& to, const Lane& in) {
  Route route({from.right(), out.at}, false);
  route.line_to(std::max(out.last, from.right()));
  route.curve_to({std::min(in.first, to.left()), in.at});
  route.line_to(to.left());
  return route.link();
}

}  // namespace kvscope::viz
