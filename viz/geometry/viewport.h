// The visible part of a panel's content: a zoom and an offset. The unit of the content is a logical pixel at zoom 1.
#pragma once

#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QSizeF>

namespace kvscope::viz {

struct Viewport {
  double zoom = 0;       // 0: fit the whole content into the panel
  QPointF offset{0, 0};  // [px at this zoom] of the panel's top left corner in the content
  friend bool operator==(const Viewport&, const Viewport&) = default;
};

// Changes the zoom; the same content point stays under `at`, a point of the panel with its top left corner at (0, 0).
// `from` is the effective zoom before.
[[nodiscard]] Viewport zoomed_at(const Viewport& viewport, double from, double to, QPointF at);

// The nearest offset at which a panel of size `panel` shows nothing outside `content` [px at this zoom].
[[nodiscard]] QPointF clamp_offset(QPointF offset, QSizeF content, QSizeF panel);

// The offset closest to `offset` that shows all of `target` (content coordinates at this zoom).
[[nodiscard]] QPointF offset_to_show(QPointF offset, const QRectF& target, QSizeF panel, double margin);

}  // namespace kvscope::viz
