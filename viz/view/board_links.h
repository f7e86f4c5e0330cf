// The links between the panels of a board: from an object in one panel to the same object in the others.
#pragma once

#include <vector>

#include "viz/geometry/link_route.h"
#include "viz/view/panel.h"

namespace kvscope::viz {

// From the tokens to their block and to their entry of the lookup table; if the tokens are not visible, from the block
// to the entry. In the tile view, the way of one row from its token to its register. Empty for objects without one
// place.
[[nodiscard]] std::vector<Link> board_links(QSizeF size, const Panels& panels, const Scene& scene, const Lit& lit);

}  // namespace kvscope::viz
