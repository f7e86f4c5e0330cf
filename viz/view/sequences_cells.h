// Painting of the tokens without labels; sequences_paint.h adds labels, marks and an axis.
#pragma once

#include <QtGui/QPainter>

#include "viz/geometry/sequences_layout.h"
#include "viz/view/scene.h"
#include "viz/view/sequences_content.h"

namespace kvscope::viz {

// Paints all cells, boxes, bars, lines of pixels and numbers of the strip. Precondition (caller): the background of the
// strip has the card's color.
void paint_tokens(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene);

}  // namespace kvscope::viz
