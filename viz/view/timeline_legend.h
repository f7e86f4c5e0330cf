// Curves and marks named: a line's pattern or a glyph, what it is, and its value now. In legends, footers and readouts.
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
  std::optional<Series> series;  // one of the two
  std::optional<Mark> mark;
  QString name, value;
};

inline constexpr double kBeside = 6, kBetween = 18;         // [px] inside an item, between two
inline constexpr double kLabelFont = 11, kLegendFont = 12;  // [px] at font scale 1
inline constexpr double kGlyph = 9;                         // [px] at font scale 1

[[nodiscard]] double width_of(const QString& text, const QFont& font);
// One line of text, elided where it is too long for `rect`.
void paint_words(QPainter& painter, const QRectF& rect, const QString& text, const QFont& font, const QColor& colour,
                 Qt::Alignment alignment);

[[nodiscard]] double item_width(const LegendItem& item, const Scene& scene);
[[nodiscard]] double items_width(std::span<const LegendItem> items, const Scene& scene);
// The name is elided where it must be; the value follows it, or stands at the end of `row` when `spread`.
void paint_item(QPainter& painter, const QRectF& row, const LegendItem& item, bool spread, const Scene& scene);
// One row: `left` from its left, as many as fit; `right` ending at its right, while all of it fits beside them.
void paint_items(QPainter& painter, const QRectF& row, std::span<const LegendItem> left,
                 std::span<const LegendItem> right, const Scene& scene);

}  // namespace kvscope::viz
