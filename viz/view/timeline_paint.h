// How a curve and a mark look, wherever they stand: plot, legend, readout. Curves are told apart by their line's
// pattern and marks by their shape; colour only helps.
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

[[nodiscard]] QColor series_colour(const Theme& theme, Series series);
[[nodiscard]] QPen series_pen(const Theme& theme, Series series);
// The soft surfaces first, all of them, so that no curve is veiled by another's.
void paint_surfaces(QPainter& painter, const Curve& curve, const Theme& theme, Series series);
void paint_line(QPainter& painter, const Curve& curve, const Theme& theme, Series series);
// A piece of the curve's line across the middle of `rect`.
void paint_sample(QPainter& painter, const QRectF& rect, const Theme& theme, Series series);

// preemption: a triangle, eviction: a cross, refusal: a square, copy: a diamond; `px` across.
void paint_mark(QPainter& painter, QPointF middle, double px, const Theme& theme, Mark mark);

}  // namespace kvscope::viz
