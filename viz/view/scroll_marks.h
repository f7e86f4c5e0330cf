// Bars beside and under the body of a panel whose content does not fit: how much is shown of it, and where.
#pragma once

#include "viz/view/panel.h"

namespace kvscope::viz {

// Nothing is painted if all content is visible. The bars are outside the body, in the margins of the card.
void paint_scroll_marks(QPainter& painter, const Place& place, const Panel& panel, const Scene& scene);

}  // namespace kvscope::viz
