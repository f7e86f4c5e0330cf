// Shared by the panels of the attention view: wrapped words, outlines, cells of errors.
#pragma once

#include <QtCore/QRectF>
#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/view/panel.h"

namespace kvscope::viz {

inline constexpr double kAttentionText = 12.5, kAttentionNumber = 12;  // [px] at font scale 1

// Sentences that wrap at the right edge; the last line that fits ends with dots when more follow.
void paint_attention_words(QPainter& painter, const QRectF& rect, const QString& text, const QColor& color,
                           const Scene& scene);

// The outline of the pinned or hovered object.
void paint_attention_outline(QPainter& painter, const QRectF& rect, const Scene& scene, bool pinned);

// The fill of a ratio's cell: within the bound a color that grows stronger towards it, above it the warning color.
[[nodiscard]] QColor error_fill(const Theme& theme, double ratio);

// One error. With room for its number: the whole cell and the number. Without: a square whose side grows with the
// ratio. Above the bound it is also hatched, so that color is never alone.
void paint_error_cell(QPainter& painter, const QRectF& rect, double ratio, const Scene& scene);

// The number of a row, a head, a dim: "0", "16", ... at most as many as are legible; `every` returns the step.
[[nodiscard]] std::int64_t label_step(const QFont& font, std::int64_t largest, double pitch);

// The panels do not zoom: their maps always fit.
class AttentionPanel : public Panel {
 public:
  [[nodiscard]] bool zooms(const Scene&) const override { return false; }
  [[nodiscard]] Viewport zoomed(double, QPointF, const QRectF&, const Scene& scene) const override {
    return scene.viewport_of(id());
  }
  [[nodiscard]] Viewport scrolled(QPointF, const QRectF&, const Scene& scene) const override {
    return scene.viewport_of(id());
  }
  [[nodiscard]] Viewport revealing(const Selection&, const QRectF&, const Scene& scene) const override {
    return scene.viewport_of(id());
  }
};

}  // namespace kvscope::viz
