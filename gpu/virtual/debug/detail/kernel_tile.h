// A tile of a kernel as TileTrace keeps it until it is recorded: tile_trace.cpp fills it, tile_trace_record.cpp writes
// its events.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gpu/virtual/debug/tile_geometry.h"
#include "gpu/virtual/debug/tile_trace.h"
#include "gpu/virtual/machine/copies/copy_map.h"

namespace kvscope::ptx {

inline constexpr std::int64_t kNotKnown = -1;

// 16 bytes that landed: source as a byte offset in its allocation, and destination.
struct LandedChunk {
  std::int64_t row = kNotKnown, column = kNotKnown;  // of the copy
  std::int64_t pool = kNotKnown;
  std::int64_t shared = 0;  // offset in the window
  std::int64_t map_row = kNotKnown;
};

struct LandedBox {
  trace::BoxCopied event;  // `shared` is an offset in the window
  std::int64_t window = 0, rows = 0, width = 0;
  std::int64_t head = kNotKnown;
  std::vector<LandedChunk> chunks;
};

struct TileReader {
  std::int32_t warp = 0;
  std::int64_t registers = 0, cycles = 0, conflicts = 0;
  ReadForm form;
  std::vector<std::pair<int, std::int64_t>> lanes;  // lane, offset in the window
  // Of wgmma; `start` and `shared` are offsets in the window.
  std::optional<trace::OperandRead> operand;
  std::vector<trace::OperandChunk> chunks;
};

// The axis of the map that counts rows.
[[nodiscard]] inline std::size_t row_axis_of(const CopyMap& map, const TileNote& note) {
  const std::int64_t last = map.rank - 1;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(note.row_axis.value_or(last), 0, last));
}
[[nodiscard]] inline std::optional<std::size_t> head_axis_of(const CopyMap& map, const TileNote& note) {
  const std::int64_t last = map.rank - 1;
  if (!note.head_axis && last < 2) return std::nullopt;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(note.head_axis.value_or(1), 0, last));
}

// One cp.async of a warp.
struct TileTrace::WarpCopy {
  std::uint64_t step = 0;  // of the instruction
  std::int64_t tile = 0;
  LaneMask lanes = 0;
  std::array<std::uint64_t, kLanes> numbers{};
};

struct TileTrace::Tile {
  struct Copy {
    std::uint64_t step = 0;
    std::int64_t zero_lanes = 0;
    std::vector<LandedChunk> chunks;
  };

  std::int64_t number = 0;
  std::int64_t place = -1;  // in the trace; -1: no copy yet
  bool tma = false;
  std::vector<std::int64_t> expects;
  std::vector<LandedBox> boxes;
  std::optional<CopyMap> map;  // of the first tensor copy
  bool gather = false;         // it takes four rows
  bool completed = false;
  std::optional<Phase> phase;                                    // of cp.async: the barrier that counts it
  std::map<std::int32_t, std::vector<Copy>> copies;              // cp.async, by warp
  std::map<std::int32_t, std::vector<trace::WaveWaited>> waits;  // by warp
  std::vector<TileReader> reads;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), end = 0;  // range of offsets that copies write
  std::int64_t owned = 0;                                                  // chunks that still belong to the tile
  std::set<std::int64_t> took;                                             // tiles that owned some of its chunks before

  [[nodiscard]] bool empty() const { return boxes.empty() && copies.empty(); }
};

}  // namespace kvscope::ptx
