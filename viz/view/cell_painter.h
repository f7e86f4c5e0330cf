// Paints thousands of cells of one size, with what is written on them, in a millisecond or two. On a raster surface
// each look is painted once at this size and copied from then on, and so is each glyph; on any other (SVG, PDF)
// everything is passed on as lines and text.
//
//   CellPainter cells(painter, body, theme);      // nothing lands outside `body`
//   cells.set_cell_size({22, 22});
//   cells.cell({x, y}, look, 5.0 / 16);           // its top left corner, in the painter's coordinates
//   cells.set_font(mono_font(9));
//   cells.label({x + 3, y + 9}, "18", ink);       // where its baseline begins
//   cells.finish();                               // on the surface now; painter may be used again
//
// `body` is filled with the card's colour first. Between construction and finish() the painter belongs to this object.
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
  // ASCII; other characters are left out. Use QPainter for words.
  void label(QPointF baseline, std::string_view text, const QColor& ink);
  // On a cell that was painted so: black or white, whichever reads on the part under it, and no pattern there. Across
  // the level it is written as on the empty part, in a rim of that: a digit half black and half white cannot be read.
  void label_on(QPointF baseline, std::string_view text, const QRectF& cell, Look look, double filled);
  void badge(QPointF at, std::int64_t count, double px);  // as paint_badge
  void just_now(const QRectF& cell, JustNow what);        // as paint_just_now

  void finish();

  class Impl;  // one for raster surfaces, one for all others

 private:
  std::unique_ptr<Impl> impl_;
};

// Width of a label in that font. [px]
[[nodiscard]] double label_width(const QFont& font, std::string_view text);

}  // namespace kvscope::viz
