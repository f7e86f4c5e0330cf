// Paints thousands of cells of one size and their texts in a millisecond or two. On a raster surface each look and each
// glyph is painted once at this size and then copied; on any other surface (SVG, PDF) they are drawn as lines and text.
//
//   CellPainter cells(painter, body, theme);      // everything is clipped to `body`
//   cells.set_cell_size({22, 22});
//   cells.cell({x, y}, look, 5.0 / 16);           // its top left corner, in the painter's coordinates
//   cells.set_font(mono_font(9));
//   cells.label({x + 3, y + 9}, "18", ink);       // the start of its baseline
//   cells.finish();                               // now on the surface; the painter may be used again
//
// `body` is filled with the card's color first. Precondition (caller): between construction and finish() the painter is
// not used otherwise.
#pragma once

#include <memory>
#include <string_view>

#include <QtCore/QRectF>
#include <QtCore/QSizeF>
#include <QtGui/QFont>
#include <QtGui/QImage>
#include <QtGui/QPainter>

#include "viz/view/cell_paint.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

class CellPainter {
 public:
  CellPainter(QPainter& painter, const QRectF& body, const Theme& theme);
  ~CellPainter();  // finishes
  CellPainter(const CellPainter&) = delete;
  CellPainter& operator=(const CellPainter&) = delete;

  void set_cell_size(QSizeF size);  // [px]
  void cell(QPointF at, Look look, double filled = 1);

  void set_font(const QFont& font);
  // ASCII; other characters are omitted. Use QPainter for words.
  void label(QPointF baseline, std::string_view text, const QColor& ink);
  // A label on a cell painted with `look` and `filled`: black or white, whichever has more contrast, and without the
  // pattern under it. A label across the fill level has the color for the empty part and a rim in the empty part's
  // color, because a digit half black and half white is not legible.
  void label_on(QPointF baseline, std::string_view text, const QRectF& cell, Look look, double filled);
  void badge(QPointF at, std::int64_t count, double px);  // as paint_badge
  void just_now(const QRectF& cell, JustNow what);        // as paint_just_now
  void difference(QPointF at);                            // as paint_difference, on the cell at that corner

  void finish();

  class Impl;  // one for raster surfaces, one for all others

 private:
  std::unique_ptr<Impl> impl_;
};

// Width of a label in that font. [px]
[[nodiscard]] double label_width(const QFont& font, std::string_view text);

}  // namespace kvscope::viz
