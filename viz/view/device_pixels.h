// Draws an image pixel by pixel on the surface, independent of the painter's scale and offset.
#pragma once

#include <QtCore/QPoint>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QTransform>

namespace kvscope::viz {

// `at`: the device pixel of the image's top left pixel. The image's devicePixelRatio is ignored.
inline void draw_pixels(QPainter& painter, QPoint at, QImage& picture) {
  painter.save();
  // deviceTransform() = world transform * transform of the surface. With this world transform it is the identity.
  painter.setWorldTransform(painter.deviceTransform().inverted() * painter.worldTransform());
  const double scale = picture.devicePixelRatio();
  picture.setDevicePixelRatio(1);
  painter.drawImage(at, picture);
  picture.setDevicePixelRatio(scale);
  painter.restore();
}

}  // namespace kvscope::viz
