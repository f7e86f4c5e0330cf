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

// Paints as many items as fit, from the left. Returns the x for the next item.
double flow(QPainter& painter, const QRectF& row, std::span<const LegendItem> items, const Scene& scene) {
  double x = row.left();
  for (const LegendItem& item : items) {
    const double width = item_width(item, scene);
    if (x + width > row.right() + 0.5) break;
    paint_item(painter, QRectF(x, row.top(), width, row.height()), item, false, scene);
    x += width + kBetween;
  }
  return x;
}

}  // namespace

void paint_items(QPainter& painter, const QRectF& row, std::span<const LegendItem> left,
                 std::span<const LegendItem> right, const Scene& scene) {
  if (row.height() >= scene.px(2 * kLegendLine)) {
    LegendFlow lines(row, scene.font_scale);
    for (const std::span<const LegendItem> items : {left, right}) {
      for (const LegendItem& item : items) {
        if (const std::optional<QRectF> at = lines.next(item_width(item, scene)))
          paint_item(painter, *at, item, false, scene);
      }
    }
    return;
  }
  const double end = flow(painter, row, left, scene);
  const double width = items_width(right, scene);
  if (row.right() - width < end) return;
  flow(painter, row.adjusted(row.width() - width, 0, 0, 0), right, scene);
}

}  // namespace kvscope::viz
