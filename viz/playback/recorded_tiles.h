// The tiles that a trace holds itself: of `focus.staging`, or of a kernel on the virtual GPU.
#pragma once

#include <vector>

#include "viz/playback/run.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_request.h"

namespace kvscope::viz {

struct RecordedTile {
  Position first, end;  // its events: [first, end)
  trace::TileOpened opened;
};

// In the order of the trace. Frames of the tape without a tile_opened are stepped over.
[[nodiscard]] std::vector<RecordedTile> recorded_tiles(const Run& run);

// Throws as fold_tile.
[[nodiscard]] Tile load_tile(const Run& run, const RecordedTile& recorded);
// The request that stages the same tile from the scenario of its run.
[[nodiscard]] TileRequest request_of(const Tile& tile);

}  // namespace kvscope::viz
