#include "viz/geometry/link_path.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

// Distance of the control points from their ends, as a share of the distance between the ends. One half gives a smooth
// curve; a short curve needs a minimum of some px, or its ends look like corners.
constexpr double kBow = 0.5, kLeastBow = 18;

double bow(double way) {
  return std::max(kBow * way, kLeastBow);
}

QPointF within(const QRectF& board, QPointF point) {
  return {std::clamp(point.x(), board.left(), board.right()), std::clamp(point.y(), board.top(), board.bottom())};
}

QPointF middle(const QRectF& rect, Qt::Edge edge) {
  switch (edge) {
    case Qt::TopEdge:
      return {rect.center().x(), rect.top()};
    case Qt::BottomEdge:
      return {rect.center().x(), rect.bottom()};
    case Qt::LeftEdge:
      return {rect.left(), rect.center().y()};
    case Qt::RightEdge:
      break;
  }
  return {rect.right(), rect.center().y()};
}

}  // namespace

LinkPath link_path(const QRectF& from, const QRectF& to, const QRectF& board, double meets) {
  const double down = std::max(to.top() - from.bottom(), from.top() - to.bottom());
  const double across = std::max(to.left() - from.right(), from.left() - to.right());
  LinkPath path;
  if (down >= 0) {
    const bool below = to.top() >= from.bottom();
    const QPointF bowed(0, below ? bow(down) : -bow(down));
    path.start = middle(from, below ? Qt::BottomEdge : Qt::TopEdge);
    path.end = QPointF(to.left() + meets * to.width(), below ? to.top() : to.bottom());
    path.control1 = path.start + bowed;
    path.control2 = path.end - bowed;
  } else if (across >= 0) {
    const bool right = to.left() >= from.right();
    const QPointF bowed(right ? bow(across) : -bow(across), 0);
    path.start = middle(from, right ? Qt::RightEdge : Qt::LeftEdge);
    path.end = middle(to, right ? Qt::LeftEdge : Qt::RightEdge);
    path.control1 = path.start + bowed;
    path.control2 = path.end - bowed;
  } else {
    path.start = path.control1 = path.control2 = path.end = from.intersected(to).center();
  }
  path.control1 = within(board, path.control1);
  path.control2 = within(board, path.control2);
  return path;
}

LinkPath side_link(const QRectF& from, const QRectF& to, const QRectF& board) {
  LinkPath path;
  path.start = middle(from, Qt::RightEdge);
  path.end = middle(to, Qt::LeftEdge);
  const QPointF bowed(bow(std::abs(path.end.x() - path.start.x())), 0);
  path.control1 = within(board, path.start + bowed);
  path.control2 = within(board, path.end - bowed);
  return path;
}

QPointF point_at(const LinkPath& path, double t) {
  const double s = 1 - t;
  return s * s * s * path.start + 3 * s * s * t * path.control1 + 3 * s * t * t * path.control2 + t * t * t * path.end;
}

namespace {

constexpr int kSamples = 256, kHalvings = 20;

// The cubic's polar form: point_at(t) with a separate parameter for each of the three steps of de Casteljau.
QPointF polar(const LinkPath& path, double r, double s, double t) {
  const auto between = [](QPointF a, QPointF b, double share) { return a + share * (b - a); };
  const QPointF first = between(path.start, path.control1, r), second = between(path.control1, path.control2, r),
                third = between(path.control2, path.end, r);
  return between(between(first, second, s), between(second, third, s), t);
}

LinkPath part(const LinkPath& path, double from, double to) {
  return {polar(path, from, from, from), polar(path, from, from, to), polar(path, from, to, to),
          polar(path, to, to, to)};
}

}  // namespace

std::vector<LinkPiece> pieces(const LinkPath& path, std::span<const QRectF> texts) {
  const auto over = [&](double t) {
    const QPointF at = point_at(path, t);
    return std::ranges::any_of(texts, [&](const QRectF& text) { return text.contains(at); });
  };
  std::vector<LinkPiece> cut;
  double begin = 0, before = 0;
  bool inside = over(0);
  for (int i = 1; i <= kSamples; ++i) {
    const double here = static_cast<double>(i) / kSamples;
    if (over(here) != inside) {
      double low = before, high = here;
      for (int k = 0; k < kHalvings; ++k) {
        const double middle = (low + high) / 2;
        (over(middle) == inside ? low : high) = middle;
      }
      cut.push_back({part(path, begin, high), inside});
      begin = high;
      inside = !inside;
    }
    before = here;
  }
  cut.push_back({part(path, begin, 1), inside});
  return cut;
}

QRectF bounds(const LinkPath& path, double margin) {
  const auto [left, right] = std::minmax({path.start.x(), path.control1.x(), path.control2.x(), path.end.x()});
  const auto [top, bottom] = std::minmax({path.start.y(), path.control1.y(), path.control2.y(), path.end.y()});
  return QRectF(QPointF(left, top), QPointF(right, bottom)).adjusted(-margin, -margin, margin, margin);
}

}  // namespace kvscope::viz
