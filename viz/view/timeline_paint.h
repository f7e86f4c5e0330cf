// The look of curves and marks in plots, legends and readouts. Curves differ in their dash pattern and marks in their
// shape; color is only an additional difference.
#pragma once

#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QString>
#include <QtGui/QPainter>
#include <QtGui/QPen>

#include "viz/geometry/timeline_layout.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

inline constexpr double kCurveWidth = 1.5;  // [px]

[[nodiscard]] QString series_name(Series series);                // translated name(Series)
[[nodiscard]] QString mark_name(Mark mark, std::int64_t count);  // "preemption", "preemptions"
// "87.5 %" or "12".
[[nodiscard]] QString value_text(Series series, double value);

[[nodiscard]] QColor series_color(const Theme& theme, Series series);
[[nodiscard]] QPen series_pen(const Theme& theme, Series series);
// Paints the translucent area under a curve. All areas are painted before all lines, so that no area covers a line.
void paint_surfaces(QPainter& painter, const Curve& curve, const Theme& theme, Series series);
void paint_line(QPainter& painter, const Curve& curve, const Theme& theme, Series series);
// The curve of another run: dotted, in the color of quiet text.
void paint_compared(QPainter& painter, const Curve& curve, const Theme& theme);
// A sample of the curve's line across the middle of `rect`.
void paint_sample(QPainter& painter, const QRectF& rect, const Theme& theme, Series series);

// preemption: a triangle, eviction: a cross, refusal: a square, copy: a diamond; `px` across.
void paint_mark(QPainter& painter, QPointF middle, double px, const Theme& theme, Mark mark);

}  // namespace kvscope::viz
