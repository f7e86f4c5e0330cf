// Text that every picture says again: titles, legends, labels. Finding the glyphs of a line and how wide they are takes
// longer than painting them, so both are found once and kept for each thread that paints. Nothing of it depends on the
// theme, the place or the surface's scale: the same text in the same font has the same glyphs.
//
//   draw_text(painter, ui_font(12), theme.text_quiet, {20, 34}, "seq 3");  // where its baseline begins
//
// The pixels are those of QPainter::drawText. On a surface without pixels (SVG, PDF) it is passed on as text, to be
// searched and copied.
#pragma once

#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QString>
#include <QtGui/QColor>
#include <QtGui/QFont>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

namespace kvscope::viz {

[[nodiscard]] double text_width(const QFont& font, const QString& text);  // [px]
[[nodiscard]] double cap_height(const QFont& font);                       // [px]
// Cut at the right and ended with dots where it is wider than `room`.
[[nodiscard]] QString elided(const QFont& font, const QString& text, double room);

// The letters as curves, from where the baseline of a line begins at (0, 0). The same ones every time: those that Qt
// gives for a small size are a 64th of a pixel apart from one call to the next.
[[nodiscard]] QPainterPath text_outline(const QFont& font, const QString& text);

// One line. Leaves its font and colour in the painter.
void draw_text(QPainter& painter, const QFont& font, const QColor& colour, QPointF baseline, const QString& text);
// In the middle of the rectangle's height; `alignment`: AlignLeft, AlignHCenter or AlignRight. Not cut where it is
// wider.
void draw_text_in(QPainter& painter, const QFont& font, const QColor& colour, const QRectF& rect,
                  Qt::Alignment alignment, const QString& text);

}  // namespace kvscope::viz
