// Lines of text with cached glyphs: titles, legends, labels. Finding the glyphs of a line and their widths takes longer
// than painting them, so both are cached per thread. The cache depends only on text and font, not on the theme, the
// position or the surface's scale.
//
//   draw_text(painter, ui_font(12), theme.text_quiet, {20, 34}, "seq 3");  // the start of its baseline
//
// The pixels equal those of QPainter::drawText. On a surface without pixels (SVG, PDF) it is drawn as text that can be
// searched and copied.
#pragma once

#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QString>
#include <QtCore/QStringList>
#include <QtGui/QColor>
#include <QtGui/QFont>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

namespace kvscope::viz {

[[nodiscard]] double text_width(const QFont& font, const QString& text);  // [px]
[[nodiscard]] double cap_height(const QFont& font);                       // [px]
// The text, shortened and ended with dots if it is wider than `room`. It is cut between words; a first word that is too
// wide is cut too, unless it has a digit: "4 of 9 boxes" is "4 of …" and never "4 of 9 bo…", "73,728 B" never "73,7…".
[[nodiscard]] QString elided(const QFont& font, const QString& text, double room);
// The text up to the last " · ", "; ", ": " or ", " before which it fits, without dots; empty if no part fits.
// "TMA · 9 boxes · 64 × 64 each" is "TMA · 9 boxes" in a narrow card.
[[nodiscard]] QString whole_parts(const QFont& font, const QString& text, double room);
// The first of `texts` that is no wider than `room`; else the last one, elided. One at least.
[[nodiscard]] QString first_that_fits(const QFont& font, const QStringList& texts, double room);

// The letters as curves, with the start of the baseline at (0, 0). The result is reproducible; Qt's outlines of small
// sizes differ by 1/64 of a pixel between calls.
[[nodiscard]] QPainterPath text_outline(const QFont& font, const QString& text);

// Draws one line. Changes the painter's font and pen.
void draw_text(QPainter& painter, const QFont& font, const QColor& color, QPointF baseline, const QString& text);
// Draws one line, centered vertically in the rectangle and not clipped to it; `alignment`: AlignLeft, AlignHCenter or
// AlignRight.
void draw_text_in(QPainter& painter, const QFont& font, const QColor& color, const QRectF& rect,
                  Qt::Alignment alignment, const QString& text);

}  // namespace kvscope::viz
