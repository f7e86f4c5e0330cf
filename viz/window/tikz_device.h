// A paint device that writes TikZ, the drawing language of LaTeX documents.
//
//   TikzDevice device({1600, 1000}, 1, "First light, step 6");
//   QPainter painter(&device);
//   paint_board(painter, ...);
//   painter.end();
//   write_file_atomically("picture.tikz", device.bytes());
//
// A document shows it with \usepackage{tikz} and \resizebox{\linewidth}{!}{\input{picture.tikz}}. Text is set in the
// document's sans serif and typewriter fonts, and scaled to the width that it was painted with. The pixels of an image
// become rectangles, one for adjacent pixels of a color. The same painting gives the same bytes.
#pragma once

#include <cstdint>
#include <string>

#include <QtCore/QSizeF>
#include <QtCore/QString>

#include "viz/window/vector_device.h"

namespace kvscope::viz {

class TikzDevice final : public VectorDevice {
 public:
  // `size` is in the painter's pixels, of 0.75 * `scale` bp (1/72 inch).
  TikzDevice(QSizeF size, double scale, QString title);

  // How many rectangles, other outlines and texts the picture has: TeX keeps all of them in memory at once.
  [[nodiscard]] std::int64_t shapes() const;
  // The tikzpicture. Precondition (caller): QPainter::end() was called.
  [[nodiscard]] std::string bytes() const;

 private:
  class Engine;
  double unit_;  // [bp/px]
  QString title_;
};

}  // namespace kvscope::viz
