// Lanes and bars of a tile's events in words.
//
//   "warp 1"    "phase 0: 3200 of 4096 B have landed"    "8 × ldmatrix.x4, 4 wavefronts each"
#pragma once

#include <cstdint>
#include <span>

#include <QtCore/QString>

#include "viz/geometry/tile_events_layout.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz {

enum class BarWords : std::uint8_t { all, some, brief };  // as there is room

[[nodiscard]] QString lane_name(const Tile& tile, const TileEventLane& lane);
[[nodiscard]] QString bar_words(const Tile& tile, const TileState& now, const TileEventBar& bar, BarWords words);
// One label for neighbors of one kind that are too narrow for one label each; empty: their kind has none.
[[nodiscard]] QString run_words(const Tile& tile, std::span<const TileEventBar> run);
// A wait for a barrier whose phase is not complete: a read at this event would be a race.
[[nodiscard]] bool is_race(const Tile& tile, const TileState& now, const TileEventBar& bar);

}  // namespace kvscope::viz
