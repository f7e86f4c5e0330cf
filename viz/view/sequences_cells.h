// The tokens themselves, without a word about them: what sequences_paint.h puts labels, marks and an axis around.
#pragma once

#include <QtGui/QPainter>

#include "viz/geometry/sequences_layout.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

// Everything of the strip that is a cell, a box, a bar, a line of pixels, or a number in a cell. The strip is filled with
// the card's colour first.
void paint_tokens(QPainter& painter, const SequencesLayout& layout, const Scene& scene);

}  // namespace kvscope::viz
