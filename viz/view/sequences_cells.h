// Painting of the tokens without labels; sequences_paint.h adds labels, marks and an axis.
#pragma once

#include <QtGui/QPainter>

#include "viz/geometry/sequences_layout.h"
#include "viz/view/scene.h"
#include "viz/view/sequences_content.h"

namespace kvscope::viz {

// The color of a place in a band of rows, of which a share `held` holds a token there and a share `shared` holds one in
// a shared block: from the card's color over that of one row in very many to the full color.
[[nodiscard]] QColor density_color(const Theme& theme, double held, double shared);

// Paints all cells, boxes, bars, bands and numbers of the strip. Precondition (caller): the background of the
// strip has the card's color.
void paint_tokens(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene);

}  // namespace kvscope::viz
