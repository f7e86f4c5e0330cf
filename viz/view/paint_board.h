// Paints the whole picture: surface, cards, titles, panels, and the links between the places of one object in several
// panels. The window, the export and `--render` all use these functions.
#pragma once

#include <QtCore/QSizeF>
#include <QtGui/QImage>
#include <QtGui/QPainter>

#include "viz/view/panel.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

// One panel of the base: card, title, body and footer.
void paint_place(QPainter& painter, const Place& place, const Panels& panels, const Scene& scene);

void paint_board_base(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene);
void paint_board_overlay(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene);

// Base and overlay together. `size` is in logical pixels; the image has size * scale pixels.
void paint_board(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene);
[[nodiscard]] QImage board_image(QSizeF size, double scale, const Panels& panels, const Scene& scene);

}  // namespace kvscope::viz
