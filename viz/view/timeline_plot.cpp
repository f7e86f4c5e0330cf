#include "viz/view/timeline_plot.h"

#include <algorithm>
#include <cmath>

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetricsF>
#include <QtGui/QPaintEngine>

#include "viz/view/device_pixels.h"
#include "viz/view/time_text.h"
#include "viz/view/timeline_legend.h"
#include "viz/view/timeline_paint.h"

namespace kvscope::viz {
namespace {

constexpr double kStepLabel = 84;  // [px] minimum distance of labels under the axis, at font scale 1
constexpr double kTick = 3;        // [px] length of a tick
constexpr double kAroundMark = 1;  // [px] gap between a line and a mark
constexpr std::array kSharesParts{5, 2, 1};

void paint_hair(QPainter& painter, const QRectF& rect, const Scene& scene) {
  painter.setRenderHint(QPainter::Antialiasing, false);
  // Borders of high contrast are as bright as text; lines behind curves are quieter.
  painter.fillRect(rect,
                   scene.theme->kind == ThemeKind::high_contrast ? scene.theme->cell_line : scene.theme->card_border);
  painter.setRenderHint(QPainter::Antialiasing, true);
}

// --- axes of values --------------------------------------------------------------------------------------------------

enum class Side : std::uint8_t { left, right };

struct ValueAxis {
  QRectF plot;
  double top = 1;
  int parts = 1;
  Side side = Side::left;
  bool share = false;
  bool lines = false;
};

int labels_that_fit(const QRectF& plot, const QFont& font) {
  return static_cast<int>(plot.height() / (1.6 * QFontMetricsF(font).height())) + 1;
}

void paint_axis(QPainter& painter, const ValueAxis& axis, const Scene& scene) {
  const QFont font = mono_font(scene.px(kLabelFont));
  const double height = QFontMetricsF(font).height();
  const int room = labels_that_fit(axis.plot, font);
  const int every = room > axis.parts ? 1 : axis.parts % 2 == 0 && room > 2 ? axis.parts / 2 : axis.parts;
  for (int part = 0; part <= axis.parts; part += every) {
    const double value = axis.top * part / axis.parts;
    const double y = y_of(axis.plot, value, axis.top);
    if (axis.lines) paint_hair(painter, QRectF(axis.plot.left(), std::round(y) - 1, axis.plot.width(), 1), scene);
    const QString number = number_text(std::llround(axis.share ? value * 100 : value));
    const QString text = axis.share ? QCoreApplication::translate("Timeline", "%1 %").arg(number) : number;
    const double width = width_of(text, font) + 1;
    const double x = axis.side == Side::left ? axis.plot.left() - kBeside - width : axis.plot.right() + kBeside;
    paint_words(painter, QRectF(x, y - height / 2, width, height), text, font, scene.theme->text_quiet,
                Qt::AlignVCenter | Qt::AlignLeft);
  }
}

void paint_axes(QPainter& painter, const PreparedTimeline& p, const Scene& scene) {
  const TimelineLayout& layout = p.layout;
  const int room = labels_that_fit(layout.shares, mono_font(scene.px(kLabelFont)));
  const auto fits = std::ranges::find_if(kSharesParts, [&](int parts) { return parts < room; });
  const int shares = !layout.stacked ? (room > 2 ? 2 : 1) : fits == kSharesParts.end() ? 1 : *fits;
  paint_axis(painter, {layout.shares, 1, shares, Side::left, true, true}, scene);
  if (!layout.stacked) {
    paint_axis(painter, {layout.counts, p.counts.left_top, p.counts.parts, Side::right, false, false}, scene);
    return;
  }
  paint_axis(painter, {layout.counts, p.counts.left_top, p.counts.parts, Side::left, false, true}, scene);
  paint_axis(painter, {layout.counts, p.counts.right_top, p.counts.parts, Side::right, false, false}, scene);
}

// --- the axis of steps -----------------------------------------------------------------------------------------------

// A caption beside a row, in the gutter at the left.
void paint_caption(QPainter& painter, const QRectF& row, const QString& text, const PreparedTimeline& p,
                   const Scene& scene) {
  const QRectF rect(row.left() - p.layout.left_labels, row.top(), p.layout.left_labels - kBeside, row.height());
  paint_words(painter, rect, text, ui_font(scene.px(kLabelFont)), scene.theme->text_quiet,
              Qt::AlignVCenter | Qt::AlignRight);
}

std::vector<std::int64_t> labeled_steps(const PreparedTimeline& p, const Scene& scene) {
  const Timeline& timeline = scene.run().timeline();
  if (timeline.steps() == 0) return {};
  return step_ticks(p.layout.axis, timeline.step.front(), scene.px(kStepLabel));
}

// A label centered under the step's middle, moved inside at the ends of the row.
QRectF label_rect(const QRectF& row, double x, double width, const PreparedTimeline& p) {
  const double left = std::clamp(x - width / 2, row.left(), row.right() + p.layout.right_labels - width);
  return {left, row.top(), width, row.height()};
}

void paint_times(QPainter& painter, const PreparedTimeline& p, const Scene& scene) {
  const QRectF& row = p.layout.time_labels;
  if (row.isEmpty()) return;
  paint_caption(painter, row, QCoreApplication::translate("Timeline", "time"), p, scene);
  const QFont font = mono_font(scene.px(kLabelFont));
  QColor quiet = scene.theme->text_quiet;
  quiet.setAlphaF(0.8F);
  for (const std::int64_t index : labeled_steps(p, scene)) {
    if (index >= scene.run().timeline().steps()) break;  // of the compared run
    const QString time = time_of(scene.run().timeline(), index);
    const QRectF rect = label_rect(row, p.layout.axis.x(index), width_of(time, font) + 1, p);
    paint_words(painter, rect, time, font, quiet, Qt::AlignVCenter | Qt::AlignLeft);
  }
}

// --- curves and marks ------------------------------------------------------------------------------------------------

void paint_curves(QPainter& painter, const PreparedTimeline& p, const Scene& scene) {
  std::vector<Series> shown = shown_series(p.layout.stacked);
  std::ranges::reverse(shown);  // the first of the legend on top
  for (const bool surfaces : {true, false}) {
    if (!surfaces && !p.compared.line.empty()) {
      painter.save();
      painter.setClipRect(p.plot(Series::utilization).adjusted(0, -1, 0, 1), Qt::IntersectClip);
      paint_compared(painter, p.compared, *scene.theme);
      painter.restore();
    }
    for (const Series series : shown) {
      painter.save();
      // Half a line width more, so that a curve at 0 or at 100 % has its full thickness.
      painter.setClipRect(p.plot(series).adjusted(0, -1, 0, 1), Qt::IntersectClip);
      const Curve& curve = p.curves[at(series)];
      surfaces ? paint_surfaces(painter, curve, *scene.theme, series)
               : paint_line(painter, curve, *scene.theme, series);
      painter.restore();
    }
  }
}

// The glyph of a group of marks, and their number.
void paint_group(QPainter& painter, const MarkGroup& group, const QRectF& lane, Mark mark, const Scene& scene) {
  const double glyph = scene.px(kGlyph);
  paint_mark(painter, {group.x, lane.center().y()}, glyph, *scene.theme, mark);
  if (group.count < 2) return;
  painter.setFont(mono_font(scene.px(kLabelFont)));
  painter.setPen(scene.theme->text_quiet);
  painter.drawText(QRectF(group.x + glyph / 2 + 2, lane.top(), group.width, lane.height()),
                   Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine, short_count(group.count));
}

void paint_lanes(QPainter& painter, const PreparedTimeline& p, const Scene& scene) {
  const double glyph = scene.px(kGlyph);
  for (const Mark mark : kMarkKinds) {
    const QRectF& lane = p.layout.lanes[at(mark)];
    if (lane.isEmpty()) continue;
    if (p.layout.stacked) paint_caption(painter, lane, mark_name(mark, p.facts.totals[at(mark)]), p, scene);
    painter.save();
    painter.setClipRect(lane.adjusted(-glyph / 2, 0, glyph / 2, 0), Qt::IntersectClip);
    for (const MarkGroup& group : p.groups[at(mark)]) paint_group(painter, group, lane, mark, scene);
    painter.restore();
  }
}

}  // namespace

void paint_marks_over(QPainter& painter, const PreparedTimeline& p, double x, const Scene& scene) {
  const double glyph = scene.px(kGlyph);
  for (const Mark mark : kMarkKinds) {
    const QRectF& lane = p.layout.lanes[at(mark)];
    for (const MarkGroup& group : p.groups[at(mark)]) {
      const QRectF plate(group.x - glyph / 2 - kAroundMark, lane.top(), group.width + 2 * kAroundMark, lane.height());
      if (lane.isEmpty() || x < plate.left() - kCurveWidth || x > plate.right() + kCurveWidth) continue;
      painter.fillRect(plate, scene.theme->card);
      paint_group(painter, group, lane, mark, scene);
    }
  }
}

QString number_of(const Timeline& timeline, std::int64_t index) {
  return number_text(timeline.step[static_cast<std::size_t>(index)]);
}

QString time_of(const Timeline& timeline, std::int64_t index) {
  return time_text(timeline.time_us[static_cast<std::size_t>(index)]);
}

void paint_plots(QPainter& painter, const PreparedTimeline& prepared, const Scene& scene) {
  painter.setRenderHint(QPainter::Antialiasing);
  paint_axes(painter, prepared, scene);
  paint_curves(painter, prepared, scene);
  paint_lanes(painter, prepared, scene);
  paint_times(painter, prepared, scene);
}

void paint_step_labels(QPainter& painter, const PreparedTimeline& p, const QRectF& flag, const Scene& scene) {
  const QRectF& row = p.layout.step_labels;
  if (row.isEmpty()) return;
  paint_caption(painter, row, QCoreApplication::translate("Timeline", "step"), p, scene);
  const QFont font = mono_font(scene.px(kLabelFont));
  for (const std::int64_t index : labeled_steps(p, scene)) {
    const double x = p.layout.axis.x(index);
    const QString number = number_text(scene.run().timeline().step.front() + index);
    const QRectF rect = label_rect(row, x, width_of(number, font) + 1, p);
    if (!flag.isEmpty() && rect.adjusted(-kBeside, 0, kBeside, 0).intersects(flag)) continue;
    paint_hair(painter, QRectF(std::round(x - 0.5), row.top(), 1, scene.px(kTick)), scene);
    paint_words(painter, rect.translated(0, scene.px(1)), number, font, scene.theme->text_quiet,
                Qt::AlignVCenter | Qt::AlignLeft);
  }
}

void PlotPicture::paint(QPainter& painter, const QRectF& body, const PreparedTimeline& prepared, const Scene& scene) {
  const QTransform transform = painter.deviceTransform();
  const QRect pixels = transform.mapRect(body).toAlignedRect();
  const bool raster = painter.paintEngine() != nullptr && painter.paintEngine()->type() == QPaintEngine::Raster;
  if (!raster || transform.type() > QTransform::TxScale ||
      std::int64_t{pixels.width()} * pixels.height() > kMostPixels || pixels.isEmpty()) {
    painter.save();
    paint_plots(painter, prepared, scene);
    painter.restore();
    return;
  }
  const Key key{prepared.revision, transform, scene.theme->kind, QCoreApplication::translate("Timeline", "step")};
  if (image_.isNull() || key != key_) {
    if (image_.size() != pixels.size()) image_ = QImage(pixels.size(), QImage::Format_RGB32);
    // Opaque, with the card's color: antialiased text needs the background, and opaque pixels are copied fastest.
    image_.fill(scene.theme->card);
    QPainter plots(&image_);
    plots.setTransform(transform * QTransform::fromTranslate(-pixels.x(), -pixels.y()));
    paint_plots(plots, prepared, scene);
    key_ = key;
  }
  draw_pixels(painter, pixels.topLeft(), image_);
}

}  // namespace kvscope::viz
