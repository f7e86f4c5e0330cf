#include "viz/view/scroll_marks.h"

#include <algorithm>

namespace kvscope::viz {
namespace {

constexpr double kThickness = 4, kBesideBody = 5, kUnder = 2;  // [px] of a bar, and its distance from the body
constexpr double kShortest = 24;                               // [px] of the bright part
constexpr double kBeyond = 1e7;                                // [px] more than the content of any panel

// The bright part of a bar that shows `window` px of `window` + `range`, the first of them `before`.
std::pair<double, double> bright_part(double length, double window, double range, double before) {
  const double part = std::clamp(length * window / (window + range), std::min(kShortest, length), length);
  return {(length - part) * std::clamp(before / range, 0.0, 1.0), part};
}

}  // namespace

void paint_scroll_marks(QPainter& painter, const Place& place, const Panel& panel, const Scene& scene) {
  const auto offset_after = [&](double by) { return panel.scrolled({by, by}, place.body, scene).offset; };
  const QPointF first = offset_after(-kBeyond), range = offset_after(kBeyond) - first;
  if (range.x() < 1 && range.y() < 1) return;
  const QPointF before = offset_after(0) - first;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  const auto paint = [&](const QRectF& bar, const QRectF& bright) {
    for (const auto& [rect, color] :
         {std::pair(bar, scene.theme->cell_line), std::pair(bright, scene.theme->text_quiet)}) {
      painter.setBrush(color);
      painter.drawRoundedRect(rect, kThickness / 2, kThickness / 2);
    }
  };
  const QRectF& body = place.body;
  if (range.y() >= 1) {
    const QRectF bar(body.right() + kBesideBody, body.top(), kThickness, body.height());
    const auto [from, part] = bright_part(bar.height(), body.height(), range.y(), before.y());
    paint(bar, QRectF(bar.left(), bar.top() + from, kThickness, part));
  }
  if (range.x() >= 1) {
    const QRectF bar(body.left(), body.bottom() + kUnder, body.width(), kThickness);
    const auto [from, part] = bright_part(bar.width(), body.width(), range.x(), before.x());
    paint(bar, QRectF(bar.left() + from, bar.top(), part, kThickness));
  }
  painter.restore();
}

}  // namespace kvscope::viz
