// What of a panel's content is on screen: a zoom and a place. The content's own unit is a logical pixel at zoom 1.
#pragma once

#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QSizeF>

namespace kvscope::viz {

struct Viewport {
  double zoom = 0;       // 0: fit what there is into the panel
  QPointF offset{0, 0};  // [px at this zoom] of the panel's top left corner in the content
  friend bool operator==(const Viewport&, const Viewport&) = default;
};

// The same content point stays under `at` (a point of the panel, its corner being 0,0). `from` is the zoom in force.
[[nodiscard]] Viewport zoomed_at(const Viewport& viewport, double from, double to, QPointF at);

// The nearest offset that shows no emptiness beyond `content` [px at this zoom] in a panel of size `panel`.
[[nodiscard]] QPointF clamp_offset(QPointF offset, QSizeF content, QSizeF panel);

// The nearest offset that shows all of `target` (content coordinates at this zoom), moving no more than needed.
[[nodiscard]] QPointF offset_to_show(QPointF offset, const QRectF& target, QSizeF panel, double margin);

}  // namespace kvscope::viz
