// The whole picture: surface, cards, titles, panels, and the links that join one object across them. What the window
// shows, what is exported and what `--render` writes is painted here.
#pragma once

#include <QtCore/QSizeF>
#include <QtGui/QImage>
#include <QtGui/QPainter>

#include "viz/view/panel.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

void paint_board_base(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene);
void paint_board_overlay(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene);

// Both, for pictures. `size` is in logical pixels; the image is size * scale.
void paint_board(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene);
[[nodiscard]] QImage board_image(QSizeF size, double scale, const Panels& panels, const Scene& scene);

}  // namespace kvscope::viz
