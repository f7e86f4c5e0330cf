// A paint device that writes SVG. Qt's QSvgGenerator ignores clipping, so that a scrolled panel would paint over
// adjacent panels. This device supports clipping and writes a third of the bytes.
//
//   SvgDevice device({1600, 1000}, 1, "First light, step 6");
//   QPainter painter(&device);
//   paint_board(painter, ...);
//   painter.end();
//   write_file_atomically("picture.svg", device.bytes());
//
// Text is written as text with its font and its width: a viewer without that font scales another one to the same width.
// Images are embedded. The file does not refer to other files, and the same painting gives the same bytes.
#pragma once

#include <string>

#include <QtCore/QSizeF>
#include <QtCore/QString>

#include "viz/window/vector_device.h"

namespace kvscope::viz {

class SvgDevice final : public VectorDevice {
 public:
  // `size` is in the painter's pixels; it is shown `scale` times as large.
  SvgDevice(QSizeF size, double scale, QString title);

  // The document. Precondition (caller): QPainter::end() was called.
  [[nodiscard]] std::string bytes() const;

 private:
  class Engine;
  double scale_;
  QString title_;
};

}  // namespace kvscope::viz
