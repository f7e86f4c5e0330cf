// How much of a tile has happened at one event.
//
// Example: 64 x 128 bf16 by TMA over pages of 16, 8 boxes of 128 chunks. After the events of 3 boxes and of 10 chunks
// of the third: issued 3, landed 266, arrived 266 * 16 = 4,256 bytes; boxes 0 and 1 are there, box 2 is moving.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/playback/tile.h"

namespace kvscope::viz {

struct TileState {
  std::int64_t event = 0;     // of tile.events have happened
  std::int64_t action = 0;    // of tile.actions are complete
  std::int64_t issued = 0;    // copies
  std::int64_t landed = 0;    // chunks
  std::int64_t expected = 0;  // [bytes] that the barrier was told
  std::int64_t arrived = 0;   // [bytes] that have landed, fill included
  bool complete = false;      // the barrier's phase; LDS: every wave has waited
  std::int64_t waits = 0;
  std::int64_t reads = 0;       // begun
  std::int64_t lane_reads = 0;  // requests of lanes
  std::int64_t fills = 0;
  std::int64_t operand_chunks = 0;
  std::vector<std::int64_t> outstanding;  // [waves] LDS: copies that no wait has covered yet
  friend bool operator==(const TileState&, const TileState&) = default;
};

// The event after which everything is in shared memory and nothing has been read; of a tile without copies the end.
[[nodiscard]] std::int64_t event_of_landed(const Tile& tile);

// IndexError outside [0, tile.events].
[[nodiscard]] TileState tile_state(const Tile& tile, std::int64_t event);

// How far one object has come.
enum class Arrival : std::uint8_t { outlined, moving, there };
[[nodiscard]] Arrival arrival_of_copy(const Tile& tile, const TileState& now, std::int64_t copy);
[[nodiscard]] Arrival arrival_of_chunk(const Tile& tile, const TileState& now, std::int64_t chunk);
[[nodiscard]] Arrival arrival_of_read(const Tile& tile, const TileState& now, std::int64_t read);
[[nodiscard]] Arrival arrival_of_fill(const Tile& tile, const TileState& now, std::int64_t fill);

}  // namespace kvscope::viz
