// Items of legends, footers and readouts: a line sample or a glyph, the name of the curve or mark, and its current
// value.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <QtCore/QRectF>
#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/playback/timeline.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

struct LegendItem {
  std::optional<Series> series;  // exactly one of series and mark is set
  std::optional<Mark> mark;
  QString name, value;
};

inline constexpr double kBeside = 6, kBetween = 18;         // [px] gap inside an item, gap between two items
inline constexpr double kLabelFont = 11, kLegendFont = 12;  // [px] at font scale 1
inline constexpr double kGlyph = 9;                         // [px] at font scale 1

[[nodiscard]] double width_of(const QString& text, const QFont& font);
// Paints one line of text, elided if it is too long for `rect`.
void paint_words(QPainter& painter, const QRectF& rect, const QString& text, const QFont& font, const QColor& color,
                 Qt::Alignment alignment);

[[nodiscard]] double item_width(const LegendItem& item, const Scene& scene);
[[nodiscard]] double items_width(std::span<const LegendItem> items, const Scene& scene);
// Paints one item. The name is elided if necessary; the value follows it, or is right-aligned in `row` if `spread`.
void paint_item(QPainter& painter, const QRectF& row, const LegendItem& item, bool spread, const Scene& scene);
// Paints items on the lines of a row: `left`, and after it `right`; on a single line where both fit, `right` is at its
// end. Dots stand for the items that do not fit.
void paint_items(QPainter& painter, const QRectF& row, std::span<const LegendItem> left,
                 std::span<const LegendItem> right, const Scene& scene);

}  // namespace kvscope::viz
