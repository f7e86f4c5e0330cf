// Numbers in the middle of cells, across them or upwards, hundreds in a millisecond: each digit is painted once for a
// look and copied from then on. A thin rim of the cell's colour keeps its pattern off the digits. On a surface without
// pixels (SVG, PDF) they are text, turned where they go upwards.
//
//   CellNumbers numbers(painter, mono_font(9), Writing::upwards);
//   numbers.write(cell, 37, look_ink(theme, look), look_fill(theme, look));
#pragma once

#include <cstdint>

#include <QtGui/QFont>
#include <QtGui/QFontMetricsF>
#include <QtGui/QPainter>

#include "viz/geometry/sequences_layout.h"

namespace kvscope::viz {

class CellNumbers {
 public:
  // The painter belongs to this object until it goes: between, nobody else paints with it.
  CellNumbers(QPainter& painter, const QFont& font, Writing writing);
  ~CellNumbers();
  CellNumbers(const CellNumbers&) = delete;
  CellNumbers& operator=(const CellNumbers&) = delete;

  void write(const QRectF& cell, std::int64_t number, const QColor& ink, const QColor& behind);  // number >= 0

 private:
  QPainter& painter_;
  QFont font_;
  QFontMetricsF metrics_;
  bool upwards_;
  QTransform device_;  // from the painter's coordinates to pixels
  bool copies_ = false;
  double advance_ = 0;  // [px] of a digit, in the painter's coordinates
};

}  // namespace kvscope::viz
