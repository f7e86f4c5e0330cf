#include "viz/view/timeline_paint.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <QtCore/QCoreApplication>
#include <QtCore/QList>

#include "viz/view/theme.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

constexpr std::size_t index_of(Series series) {
  return static_cast<std::size_t>(series);
}

// The strings that lupdate extracts; they are equal to those of name(Series).
constexpr std::array<const char*, kSeries> kSeriesNames{
    QT_TRANSLATE_NOOP("Timeline", "utilization"),      QT_TRANSLATE_NOOP("Timeline", "fragmentation"),
    QT_TRANSLATE_NOOP("Timeline", "prefix hit rate"),  QT_TRANSLATE_NOOP("Timeline", "cached blocks"),
    QT_TRANSLATE_NOOP("Timeline", "waiting requests"), QT_TRANSLATE_NOOP("Timeline", "running requests"),
    QT_TRANSLATE_NOOP("Timeline", "prefill tokens"),   QT_TRANSLATE_NOOP("Timeline", "decode tokens")};

// Lengths of dash, gap, ... [px]. Two curves in the same plot have different patterns.
QList<qreal> dashes(Series series) {
  switch (series) {
    case Series::utilization:
    case Series::prefill:
      return {};
    case Series::fragmentation:
    case Series::decode:
      return {1.5, 3};
    case Series::hit_rate:
      return {6, 3};
    case Series::cached:
      return {9, 3, 1.5, 3};
    case Series::waiting:
      return {3, 2};
    case Series::running:
      return {15, 3};
  }
  return {};
}

// One curve of each plot is filled down to 0. Prefill alternates between 0 and the maximum of a step: as a line it
// would hide the other curves.
bool is_filled(Series series) {
  return series == Series::utilization || series == Series::prefill;
}

}  // namespace

QString series_name(Series series) {
  return QCoreApplication::translate("Timeline", kSeriesNames[index_of(series)]);
}

QString mark_name(Mark mark, std::int64_t count) {
  switch (mark) {
    case Mark::preemption:
      return count == 1 ? QCoreApplication::translate("Timeline", "preemption")
                        : QCoreApplication::translate("Timeline", "preemptions");
    case Mark::eviction:
      return count == 1 ? QCoreApplication::translate("Timeline", "eviction")
                        : QCoreApplication::translate("Timeline", "evictions");
    case Mark::refusal:
      return count == 1 ? QCoreApplication::translate("Timeline", "rejection")
                        : QCoreApplication::translate("Timeline", "rejections");
    case Mark::copy:
      return count == 1 ? QCoreApplication::translate("Timeline", "copy")
                        : QCoreApplication::translate("Timeline", "copies");
  }
  return {};
}

QString value_text(Series series, double value) {
  return is_share(series) ? QCoreApplication::translate("Timeline", "%1 %").arg(QString::number(value * 100, 'f', 1))
                          : number_text(std::llround(value));
}

QColor series_color(const Theme& theme, Series series) {
  return theme.series[index_of(series)];
}

QPen series_pen(const Theme& theme, Series series) {
  QPen pen(series_color(theme, series), kCurveWidth);
  if (series == Series::prefill) pen.setColor(with_alpha(pen.color(), 0.35));
  pen.setCapStyle(Qt::FlatCap);
  pen.setJoinStyle(Qt::BevelJoin);  // the tip of a miter join would extend far above a single high step
  QList<qreal> pattern = dashes(series);
  for (qreal& length : pattern) length /= kCurveWidth;
  if (!pattern.isEmpty()) pen.setDashPattern(pattern);
  return pen;
}

void paint_surfaces(QPainter& painter, const Curve& curve, const Theme& theme, Series series) {
  painter.setPen(Qt::NoPen);
  if (is_filled(series) && !curve.fill.empty()) {
    painter.setBrush(with_alpha(series_color(theme, series), theme.on_dark() ? 0.16 : 0.12));
    painter.drawPolygon(curve.fill.data(), static_cast<int>(curve.fill.size()));
  }
  if (curve.band.empty()) return;
  // The larger the share of the plot that a band covers, the more transparent it is, so that it does not hide much.
  const double alpha = 0.42 - 0.32 * std::min(curve.band_share, 1.0);
  painter.setBrush(with_alpha(series_color(theme, series), alpha));
  painter.setRenderHint(QPainter::Antialiasing, false);  // adjacent columns of pixels without visible seams
  painter.drawRects(curve.band.data(), static_cast<int>(curve.band.size()));
  painter.setRenderHint(QPainter::Antialiasing, true);
}

void paint_line(QPainter& painter, const Curve& curve, const Theme& theme, Series series) {
  painter.setPen(series_pen(theme, series));
  painter.drawPolyline(curve.line.data(), static_cast<int>(curve.line.size()));
}

void paint_compared(QPainter& painter, const Curve& curve, const Theme& theme) {
  QPen pen(theme.text_quiet, kCurveWidth);
  pen.setCapStyle(Qt::FlatCap);
  pen.setJoinStyle(Qt::BevelJoin);
  pen.setDashPattern({1, 1.5});
  painter.setPen(pen);
  painter.drawPolyline(curve.line.data(), static_cast<int>(curve.line.size()));
}

void paint_sample(QPainter& painter, const QRectF& rect, const Theme& theme, Series series) {
  const double y = rect.center().y();
  Curve sample;
  sample.line = {{rect.left(), y}, {rect.right(), y}};
  if (is_filled(series)) {
    sample.fill = {{rect.left(), y}, {rect.right(), y}, rect.bottomRight(), rect.bottomLeft()};
  }
  paint_surfaces(painter, sample, theme, series);
  paint_line(painter, sample, theme, series);
}

void paint_mark(QPainter& painter, QPointF middle, double px, const Theme& theme, Mark mark) {
  const double r = px / 2;
  painter.setPen(Qt::NoPen);
  switch (mark) {
    case Mark::preemption: {
      painter.setBrush(theme.warning);
      const std::array triangle{middle + QPointF(0, -r), middle + QPointF(r, r * 0.85), middle + QPointF(-r, r * 0.85)};
      painter.drawPolygon(triangle.data(), static_cast<int>(triangle.size()));
      break;
    }
    case Mark::eviction: {
      painter.setPen(QPen(theme.text_quiet, 1.5, Qt::SolidLine, Qt::FlatCap));
      const double arm = r * 0.8;
      painter.drawLine(middle + QPointF(-arm, -arm), middle + QPointF(arm, arm));
      painter.drawLine(middle + QPointF(-arm, arm), middle + QPointF(arm, -arm));
      break;
    }
    case Mark::refusal:
      painter.setBrush(theme.warning);
      painter.drawRect(QRectF(middle.x() - r * 0.8, middle.y() - r * 0.8, r * 1.6, r * 1.6));
      break;
    case Mark::copy: {
      painter.setBrush(theme.shared);
      const std::array diamond{middle + QPointF(0, -r), middle + QPointF(r, 0), middle + QPointF(0, r),
                               middle + QPointF(-r, 0)};
      painter.drawPolygon(diamond.data(), static_cast<int>(diamond.size()));
      break;
    }
  }
}

}  // namespace kvscope::viz
