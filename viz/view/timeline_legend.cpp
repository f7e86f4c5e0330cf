#include "viz/view/timeline_legend.h"

#include <algorithm>

#include "viz/view/legend_flow.h"
#include "viz/view/text.h"
#include "viz/view/timeline_paint.h"

namespace kvscope::viz {
namespace {

constexpr double kSample = 22;  // [px] of a curve's line, at font scale 1

}  // namespace

double width_of(const QString& text, const QFont& font) {
  return text_width(font, text);
}

void paint_words(QPainter& painter, const QRectF& rect, const QString& text, const QFont& font, const QColor& color,
                 Qt::Alignment alignment) {
  const QString shown = elided(font, text, rect.width() + 0.5);
  draw_text_in(painter, font, color, rect, alignment, shown);
}

double item_width(const LegendItem& item, const Scene& scene) {
  const double sample = item.series ? scene.px(kSample) : scene.px(kGlyph);
  const double value = item.value.isEmpty() ? 0 : kBeside + width_of(item.value, mono_font(scene.px(kLegendFont)));
  return sample + kBeside + width_of(item.name, ui_font(scene.px(kLegendFont))) + value;
}

double items_width(std::span<const LegendItem> items, const Scene& scene) {
  double width = 0;
  for (const LegendItem& item : items) width += item_width(item, scene) + kBetween;
  return items.empty() ? 0 : width - kBetween;
}

void paint_item(QPainter& painter, const QRectF& row, const LegendItem& item, bool spread, const Scene& scene) {
  // In a column of items the names are aligned.
  const double sample = item.series || spread ? scene.px(kSample) : scene.px(kGlyph);
  const double middle = row.center().y();
  if (item.series) {
    const double half = scene.px(5);
    paint_sample(painter, QRectF(row.left(), middle - half, sample, 2 * half), *scene.theme, *item.series);
  } else if (item.mark) {
    paint_mark(painter, {row.left() + sample / 2, middle}, scene.px(kGlyph), *scene.theme, *item.mark);
  }
  const QFont ui = ui_font(scene.px(kLegendFont)), mono = mono_font(scene.px(kLegendFont));
  const double value = width_of(item.value, mono);
  const QRectF words = row.adjusted(sample + kBeside, 0, item.value.isEmpty() ? 0 : -value - kBeside, 0);
  paint_words(painter, words, item.name, ui, scene.theme->text_quiet, Qt::AlignVCenter | Qt::AlignLeft);
  const double end =
      spread ? row.right() : std::min(words.left() + width_of(item.name, ui) + kBeside + value, row.right());
  paint_words(painter, QRectF(end - value - 1, row.top(), value + 1, row.height()), item.value, mono, scene.theme->text,
              Qt::AlignVCenter | Qt::AlignRight);
}

namespace {

void paint_one_line(QPainter& painter, QRectF row, std::span<const LegendItem> items, const Scene& scene) {
  for (const LegendItem& item : items) {
    paint_item(painter, row, item, false, scene);
    row.setLeft(row.left() + item_width(item, scene) + kBetween);
  }
}

}  // namespace

void paint_items(QPainter& painter, const QRectF& row, std::span<const LegendItem> left,
                 std::span<const LegendItem> right, const Scene& scene) {
  const double at_left = items_width(left, scene), at_right = items_width(right, scene);
  if (row.height() < scene.px(2 * kLegendLine) && at_left + kBetween + at_right <= row.width()) {
    paint_one_line(painter, row, left, scene);
    return paint_one_line(painter, row.adjusted(row.width() - at_right, 0, 0, 0), right, scene);
  }
  LegendFlow lines(row, scene.font_scale);
  for (const std::span<const LegendItem> items : {left, right}) {
    for (const LegendItem& item : items) {
      if (const std::optional<QRectF> at = lines.next(item_width(item, scene)))
        paint_item(painter, *at, item, false, scene);
    }
  }
  paint_dots(painter, lines, ui_font(scene.px(kLegendFont)), scene.theme->text_quiet);
}

}  // namespace kvscope::viz
