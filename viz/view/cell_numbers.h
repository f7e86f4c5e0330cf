// Centered numbers in cells, horizontal or vertical, hundreds per millisecond: each digit is painted once per look and
// then copied. A thin rim in the cell's color separates the digits from the cell's pattern. On a surface without pixels
// (SVG, PDF) the numbers are text, rotated if vertical.
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
  // Precondition (caller): during the lifetime of this object the painter is not used otherwise.
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
