#include "viz/view/attention_paint.h"

#include <algorithm>
#include <cmath>

#include <QtGui/QFontMetricsF>
#include <QtGui/QTextLayout>
#include <QtGui/QTextOption>

#include "viz/geometry/attention_layout.h"
#include "viz/view/cell_paint.h"
#include "viz/view/text.h"

namespace kvscope::viz {
namespace {

constexpr double kSmallestHatch = 7;                  // [px] of a cell's shorter side
constexpr double kWeakest = 0.16, kStrongest = 0.85;  // opacity of a ratio's color over the free cell

QColor error_blend(const QColor& over, const QColor& under, double alpha) {
  const auto mix = [&](double a, double b) { return static_cast<float>(alpha * a + (1 - alpha) * b); };
  return QColor::fromRgbF(mix(over.redF(), under.redF()), mix(over.greenF(), under.greenF()),
                          mix(over.blueF(), under.blueF()));
}

}  // namespace

void paint_attention_words(QPainter& painter, const QRectF& rect, const QString& text, const QColor& color,
                           const Scene& scene) {
  if (rect.isEmpty() || text.isEmpty()) return;
  const QFont font = ui_font(scene.px(kAttentionText));
  QTextOption option(Qt::AlignLeft | Qt::AlignTop);
  option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
  const QFontMetricsF metrics(font);
  double y = rect.top();
  const QStringList paragraphs = text.split(QLatin1Char('\n'));
  for (const QString& paragraph : paragraphs) {
    QTextLayout layout(paragraph, font);
    layout.setTextOption(option);
    layout.beginLayout();
    for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
      line.setLineWidth(rect.width());
      if (y + metrics.height() > rect.bottom() + 1) return layout.endLayout();
      const bool last_room = y + 2 * metrics.lineSpacing() > rect.bottom() + 1;
      const qsizetype end = line.textStart() + line.textLength();
      const bool more = end < paragraph.size() || &paragraph != &paragraphs.back();
      QString words = paragraph.mid(line.textStart(), line.textLength()).trimmed();
      if (last_room && more) words = elided(font, words + QStringLiteral(" …"), rect.width());
      draw_text(painter, font, color, {rect.left(), y + metrics.ascent()}, words);
      y += metrics.lineSpacing();
    }
    layout.endLayout();
  }
}

void paint_attention_outline(QPainter& painter, const QRectF& rect, const Scene& scene, bool pinned) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(pinned ? scene.theme->accent : scene.theme->hover, pinned ? 2 : 1.25));
  const double out = pinned ? 0.5 : 0;
  painter.drawRoundedRect(rect.adjusted(-out, -out, out, out), 2, 2);
  painter.restore();
}

QColor error_fill(const Theme& theme, double ratio) {
  if (!(ratio <= 1)) return theme.warning;
  if (ratio == 0) return theme.cell_free;
  const double level = 2 * error_level(ratio);  // 1 at the bound
  return error_blend(theme.series[0], theme.cell_free, kWeakest + (kStrongest - kWeakest) * level);
}

void paint_error_cell(QPainter& painter, const QRectF& rect, double ratio, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const double gap = std::min(rect.width(), rect.height()) >= 6 ? 1 : 0;
  const QRectF cell = rect.adjusted(0, 0, -gap, -gap);
  const QColor fill = error_fill(theme, ratio);
  const QFont font = mono_font(scene.px(kAttentionNumber - 1));
  const QString number = QString::fromStdString(ratio_text(ratio));
  const bool numbered = cell.width() >= text_width(font, number) + 4 && cell.height() >= scene.px(14);
  const bool fails = !(ratio <= 1);
  const bool hatched = fails && std::min(cell.width(), cell.height()) >= kSmallestHatch;
  painter.setRenderHint(QPainter::Antialiasing, false);
  if (numbered) {
    painter.fillRect(cell, fill);
    const QColor ink = theme.ink_on(fill);
    if (hatched) painter.fillRect(cell, QBrush(with_alpha(ink, 0.22), Qt::BDiagPattern));
    draw_text_in(painter, font, ink, cell, Qt::AlignHCenter, number);
    return;
  }
  painter.fillRect(cell, theme.cell_free);
  const double side = 0.3 + 0.7 * error_level(ratio);
  if (!(ratio == 0)) {
    const QSizeF size(cell.width() * side, cell.height() * side);
    const QRectF inner(cell.center() - QPointF(size.width() / 2, size.height() / 2), size);
    painter.fillRect(inner, fill);
    if (hatched) painter.fillRect(inner, QBrush(with_alpha(theme.ink_on(fill), 0.5), Qt::BDiagPattern));
  }
}

std::int64_t label_step(const QFont& font, std::int64_t largest, double pitch) {
  const double widest = text_width(font, QString::number(largest)) + 6;
  std::int64_t step = 1;
  while (static_cast<double>(step) * pitch < widest && step < largest) step *= 2;
  return step;
}

}  // namespace kvscope::viz
