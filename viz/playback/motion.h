// What moves between two still pictures, and when: the blocks and pages of a run between two states, the chunks and
// registers of a tile between two of its events. A motion is a function of (before, after, t) with t in [0, 1]: at 0
// nothing has moved, at 1 everything has arrived. So it can be paused, reversed, exported and tested. Pixels are not
// known here: see viz/view/motion.h.
//
//   for (const BlockMove& move : moves_between(before, after, 400)) local(move.when, 0.5)      0.5: half of its way
//   flights_between(tile, now, next, 600)       a box: its chunks, row by row; a read: its registers
//   event_at(tile, now, next, 0.5)              the event whose state the panels show in the middle
//   flow_between(flow, 2, 3, 0.5)               m, l and o of the attention while its tile 2 is added
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "viz/playback/attention.h"
#include "viz/playback/state.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz {

// The part of a motion in which one object moves.
struct MotionSpan {
  double start = 0, end = 1;  // of t; start < end
  friend bool operator==(const MotionSpan&, const MotionSpan&) = default;
};

// 0 before the span, 1 after it, between them slow at both ends: 3u^2 - 2u^3.
[[nodiscard]] double local(const MotionSpan& span, double t);

// One page of one sequence that gets a block, loses it, or gets another one.
struct BlockMove {
  enum class Kind : std::uint8_t {
    taken,      // a free block becomes the page: from the pool to the sequence
    found,      // a cached block has the page's tokens already: likewise
    shared,     // another sequence holds the block too: likewise
    copied,     // the page moves to a new block before a write: from block to block
    released,   // the page is given back: from the sequence to the pool
    preempted,  // likewise, because its sequence was preempted
    evicted,    // the content of a cached block is dropped: inside the pool
  };
  Kind kind = Kind::taken;
  SeqIdx seq;  // evicted: the last sequence that held the block
  PageIdx page;
  BlockIdx block;  // the one in the pool where the way begins or ends; copied: where it ends
  BlockIdx from;   // copied: the block that is copied; else `block`
  MotionSpan when;
  friend bool operator==(const BlockMove&, const BlockMove&) = default;
};

// In this order: released and preempted, evicted, copied, found, shared, taken; each by sequence and page, and started
// one after the other. More than `most`: evenly spaced ones of each kind; the rest changes without moving.
// A page that has a block in both states and the same one does not move. Both states are of one run.
[[nodiscard]] std::vector<BlockMove> moves_between(const State& before, const State& after, std::size_t most);

// One chunk on its way from the pool through its copy into shared memory, or one register on its way out of it.
struct TileFlight {
  bool fill = false;       // false: a chunk
  std::int64_t index = 0;  // of Tile::fills or Tile::chunks
  MotionSpan when;
  friend bool operator==(const TileFlight&, const TileFlight&) = default;
};

// The share of a motion that one chunk's flight takes: the first one begins at 0, the last one ends at 1. Before
// registers are filled, their read's wavefronts take kWavefronts of the motion; the rest is divided likewise.
inline constexpr double kFlight = 0.55, kWavefronts = 0.35;

// In the order of their events. With `before` after `after` in time: none. More than `most`: evenly spaced ones.
[[nodiscard]] std::vector<TileFlight> flights_between(const Tile& tile, const TileState& before, const TileState& after,
                                                      std::size_t most);

// One wavefront of a read: the chunks that shared memory delivers together.
struct BankLight {
  std::vector<std::int64_t> chunks;  // indices into Tile::chunks, ascending, each once
  MotionSpan when;
  friend bool operator==(const BankLight&, const BankLight&) = default;
};

// The wavefronts of the reads that begin between the two events, one after the other in [0, kWavefronts]. None without
// geometry of banks.
[[nodiscard]] std::vector<BankLight> lights_between(const Tile& tile, const TileState& before, const TileState& after);

// The number of events that have happened at t: those whose flights have ended, and at first those that lead to the
// flights. At 0 it is before.event, at 1 after.event; it never decreases.
[[nodiscard]] std::int64_t event_at(const Tile& tile, const TileState& before, const TileState& after, double t);

// The tiled flow while one tile is added, in the two parts in which a kernel does it. First m rises to the tile's
// maximum, and l and o are multiplied by c; then the tile's sum is added to l, and its weighted values to o.
//
//   t  0 ----------- kFlowRescale ----------- 1
//      m_before .... m ..................... m
//      l ........... c * l ................. c * l + tile_sum
struct FlowBetween {
  std::int64_t tile = 0;  // of AttentionFlow::tiles
  double t = 0;           // of the motion, in (0, 1)
  double rescaled = 0;    // share of the first part that has happened
  double added = 0;       // share of the second part
  double largest = 0;     // m
  double rescale = 1;     // the factor that l and o have been multiplied by so far: from 1 to c
  double tile_sum = 0;    // what of the tile's sum has been added to l
  double sum = 0;         // l
  std::vector<double> o;  // [dim] o / l
  friend bool operator==(const FlowBetween&, const FlowBetween&) = default;
};
inline constexpr double kFlowRescale = 0.45;

// Between `before` and `after` tiles added, which differ by one; nothing at t <= 0 and t >= 1. The first tile raises m
// from -infinity: its m is the tile's from the beginning, and its l grows from 0.
// Example: l = 2, c = 1/2, tile_sum = 3: l is 1 at kFlowRescale and 4 at the end.
[[nodiscard]] std::optional<FlowBetween> flow_between(const AttentionFlow& flow, std::int64_t before,
                                                      std::int64_t after, double t);

}  // namespace kvscope::viz
