// A surface that writes SVG. Qt's own generator drops clipping, so that a panel that is scrolled would paint over its
// neighbours; this one keeps it, and writes a third of the bytes.
//
//   SvgDevice device({1600, 1000}, 1, "First light, step 6");
//   QPainter painter(&device);
//   paint_board(painter, ...);
//   painter.end();
//   write_file_atomically("picture.svg", device.bytes());
//
// Text stays text, in the font it was painted with and at the width it had there: a reader without that font shows
// another one squeezed to fit. Images are embedded. Nothing refers to anything outside the file, and the same painting
// gives the same bytes.
#pragma once

#include <memory>
#include <string>

#include <QtCore/QSizeF>
#include <QtCore/QString>
#include <QtGui/QPaintDevice>

namespace kvscope::viz {

class SvgDevice final : public QPaintDevice {
 public:
  // `size` in painter's pixels is shown `scale` times as large.
  SvgDevice(QSizeF size, double scale, QString title);
  ~SvgDevice() override;

  [[nodiscard]] QPaintEngine* paintEngine() const override;
  // The document. Precondition: whoever painted has called QPainter::end().
  [[nodiscard]] std::string bytes() const;

 protected:
  [[nodiscard]] int metric(PaintDeviceMetric metric) const override;

 private:
  class Engine;
  QSizeF size_;
  double scale_;
  QString title_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace kvscope::viz
