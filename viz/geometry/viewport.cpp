#include "viz/geometry/viewport.h"

#include <algorithm>

namespace kvscope::viz {

Viewport zoomed_at(const Viewport& viewport, double from, double to, QPointF at) {
  return {to, (viewport.offset + at) * (to / from) - at};
}

QPointF clamp_offset(QPointF offset, QSizeF content, QSizeF panel) {
  const auto clamp = [](double value, double most) { return std::clamp(value, 0.0, std::max(most, 0.0)); };
  return {clamp(offset.x(), content.width() - panel.width()), clamp(offset.y(), content.height() - panel.height())};
}

QPointF offset_to_show(QPointF offset, const QRectF& target, QSizeF panel, double margin) {
  // Along one axis. A target larger than the panel is shown from its beginning.
  const auto shift = [margin](double from, double length, double first, double last) {
    if (last - first + 2 * margin > length || first - margin < from) return first - margin;
    if (last + margin > from + length) return last + margin - length;
    return from;
  };
  return {shift(offset.x(), panel.width(), target.left(), target.right()),
          shift(offset.y(), panel.height(), target.top(), target.bottom())};
}

}  // namespace kvscope::viz
