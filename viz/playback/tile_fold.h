// The events of a tile, read into its copies, chunks, reads and registers.
//
//   for (const TileSpan& span : tiles_in(events)) ...   a run's events of two tiles of 1,559: [0, 1559), [1559, 3118)
//   Tile tile = fold_tile(events_of_one);               64 x 128 bf16 by TMA over pages of 16: 8 copies, 1024 chunks
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/trace/events.h"
#include "viz/playback/tile.h"

namespace kvscope::viz {

inline constexpr std::int64_t kMostTileElements = std::int64_t{1} << 22;
// The largest number of an event, and the largest below 0: more than any address, and sums of them do not overflow.
inline constexpr std::int64_t kMostTileNumber = std::int64_t{1} << 48;

// The events of one tile: `events` begins with its tile_opened and ends before the next one or the run's end.
// InputError("trace", "tile ...") when they contradict one another: a chunk before its copy, a register outside the
// tile, more than kMostTileElements elements, a number beyond kMostTileNumber.
[[nodiscard]] Tile fold_tile(std::span<const trace::Event> events);

// Where each tile of a list of events begins and ends: [first, end).
struct TileSpan {
  std::int64_t first = 0, end = 0;
};
[[nodiscard]] std::vector<TileSpan> tiles_in(std::span<const trace::Event> events);

}  // namespace kvscope::viz
