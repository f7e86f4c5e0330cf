// Numbers written from the bottom of a cell to its top, hundreds of them in a millisecond: each digit is painted once for
// an ink and copied from then on. On a surface without pixels (SVG, PDF) they are text, turned.
//
//   UprightNumbers numbers(painter, mono_font(9));
//   numbers.write(cell, 37, ink);      // in the cell's middle
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include <QtGui/QFont>
#include <QtGui/QFontMetricsF>
#include <QtGui/QImage>
#include <QtGui/QPainter>

namespace kvscope::viz {

class UprightNumbers {
 public:
  // The painter belongs to this object until it goes: between, nobody else paints with it.
  UprightNumbers(QPainter& painter, const QFont& font);
  ~UprightNumbers();
  UprightNumbers(const UprightNumbers&) = delete;
  UprightNumbers& operator=(const UprightNumbers&) = delete;

  void write(const QRectF& cell, std::int64_t number, const QColor& ink);  // number >= 0

 private:
  using Digits = std::array<QImage, 10>;
  const Digits& digits(const QColor& ink);

  QPainter& painter_;
  QFont font_;
  QFontMetricsF metrics_;
  QTransform device_;  // from the painter's coordinates to pixels
  bool copies_ = false;
  double advance_ = 0;  // [px] of a digit, in the painter's coordinates
  std::map<QRgb, Digits> digits_;
};

}  // namespace kvscope::viz
