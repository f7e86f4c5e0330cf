// A picture whose pixels are the surface's own, put on it one to one: whatever scale and offset the painter has.
#pragma once

#include <QtCore/QPoint>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QTransform>

namespace kvscope::viz {

// `at`: the surface's pixel under the picture's top left one. The picture's own scale is not looked at.
inline void draw_pixels(QPainter& painter, QPoint at, QImage& picture) {
  painter.save();
  // world * (what Qt adds for the surface) = deviceTransform(); this leaves the identity.
  painter.setWorldTransform(painter.deviceTransform().inverted() * painter.worldTransform());
  const double scale = picture.devicePixelRatio();
  picture.setDevicePixelRatio(1);
  painter.drawImage(at, picture);
  picture.setDevicePixelRatio(scale);
  painter.restore();
}

}  // namespace kvscope::viz
