// What just happened, in one line: the changes of the step that has ended, or the last event inside a step; of a tile
// the last of its actions.
//
//   "Sequence 4 admitted: 5 pages, 4 found in the cache, block 10 taken; sequence 1 finished"
//   "Sequence 5 preempted: 9 tokens lost"
//   "Box 1 landed: 2048 B"        "Read 3: 4 wavefronts, registers 12 to 15 filled"
#pragma once

#include <string>

#include "viz/playback/cursor.h"
#include "viz/playback/selection.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz {

// Empty before the first event, and for a step that changed nothing. Numbers of a sequence's pages and blocks are those
// at the cursor.
[[nodiscard]] std::string what_happened(const Cursor& cursor);

// Empty before the tile's first action has begun.
[[nodiscard]] std::string what_happened(const Tile& tile, const TileState& now);

// The object that an event is about: its block, else its sequence, else its step; none for other events.
[[nodiscard]] Selection object_of(const trace::Event& event);

}  // namespace kvscope::viz
