// What a link in a scenario's notes asks the window to show, checked against the run.
#pragma once

#include "core/scenario/notes.h"
#include "viz/playback/facts.h"
#include "viz/window/open_wish.h"

namespace kvscope::viz {

// InputError("notes", all faults of the link): an unknown view, a step that the run does not have, an object that Find
// does not take, a tile outside the model or the run. Whether the tile holds the object depends on the state at the
// step and is not checked here.
[[nodiscard]] OpenWish wish_of(const NotePart& link, const Facts& facts);  // precondition (caller): link.link

}  // namespace kvscope::viz
