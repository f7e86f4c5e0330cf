// A spotlight on the pinned object: everything else in the panels is slightly dimmed, so that an audience looks at the
// object. The links and outlines of the selection are drawn over it.
#pragma once

#include <QtGui/QPainter>

#include "viz/view/panel.h"

namespace kvscope::viz {

// Paints nothing without a pinned object, or where no panel shows it.
void paint_spotlight(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene);

}  // namespace kvscope::viz
