// The tokens themselves, without a word about them: what sequences_paint.h puts labels, marks and an axis around.
#pragma once

#include <QtGui/QPainter>

#include "viz/geometry/sequences_layout.h"
#include "viz/view/scene.h"
#include "viz/view/sequences_content.h"

namespace kvscope::viz {

// Everything of the strip that is a cell, a box, a bar, a line of pixels, or a number in a cell. Precondition (caller):
// what is behind the strip has the card's colour.
void paint_tokens(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene);

}  // namespace kvscope::viz
