// What a tile is copied from and by what, beyond its events: the tensor map axis by axis with the rules that it breaks,
// the paths that could take the tile, the scales of its rows, and the types of a row's bytes. The simulator answers it
// for a tile that is asked for, also when no path can take the tile; all of it may be empty.
//
//   axis 2, rows: 1281 of them, 80 B apart, a box takes 16       fault: stride, "40 B is not a multiple of 16 B: ..."
//
// Example: heads of 20 bf16: the stride of heads is 40 B, which no tensor map can have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viz/playback/tile_request.h"

namespace kvscope::viz {

// A rule that the tile breaks on its path.
struct TileFault {
  std::optional<std::int64_t> axis;  // of the tensor map, 0 the fastest; none: the fault is not of one axis
  std::string place;                 // "stride", "box", "base address"; may be empty
  std::string message;               // value, legal values, next step
  friend bool operator==(const TileFault&, const TileFault&) = default;
};

struct TileMapAxis {
  std::string name;         // "columns", "heads", "rows"
  std::int64_t extent = 0;  // of the map
  std::int64_t stride = 0;  // [bytes] from one to the next
  std::int64_t box = 0;     // extent of a box
  friend bool operator==(const TileMapAxis&, const TileMapAxis&) = default;
};

// Also of a map that breaks rules.
struct TileMapPlan {
  std::vector<TileMapAxis> axes;  // the fastest first
  std::string swizzle;            // "128B swizzle"
  std::int64_t first_column = 0;  // coordinate of the tile's column 0
  friend bool operator==(const TileMapPlan&, const TileMapPlan&) = default;
};

// A path that the tile can be asked for by, other than its own.
struct TileOffer {
  TilePath path = TilePath::tma;
  std::int64_t copies = 0;  // instructions that it takes; 0: not counted
  std::string why_not;      // empty: the path can take the tile
  friend bool operator==(const TileOffer&, const TileOffer&) = default;
};

// A published kernel, and whether it would load this cache by TMA.
struct TileEngine {
  std::string kernel;
  bool takes = false;
  std::string why_not;  // the first condition that does not hold
  friend bool operator==(const TileEngine&, const TileEngine&) = default;
};

// The scales of a quantized cache, which are in a separate pool: one for `granularity` elements of a head.
struct TileScales {
  std::string dtype;
  std::int64_t bytes = 0;                // of one
  std::int64_t granularity = 1;          // [elements]
  std::int64_t first = 0, count = 0;     // those of the tile's columns: granules [first, first + count) of the head
  std::vector<std::int64_t> row, place;  // by row of the tile, rows with a token: its row in the scales' matrix, and
                                         // [bytes] of granule `first` from the start of the scales' pool
  friend bool operator==(const TileScales&, const TileScales&) = default;
};

// Values of one type in a row of one head.
struct TileRowPart {
  std::string name;                   // "content", "rope"
  std::string dtype;                  // "e4m3"
  std::int64_t first = 0, bytes = 0;  // [bytes] of the row
  std::int64_t value_bytes = 1;
  friend bool operator==(const TileRowPart&, const TileRowPart&) = default;
};

// The row of one head of one token, where its parts have different meanings (MLA).
struct TileRowBytes {
  std::vector<TileRowPart> parts;  // in order, without gaps; empty: the row has one part
  std::vector<std::int64_t>
      place;  // by row of the tile, rows with a token: [bytes] of its byte 0 from the pool's start
  [[nodiscard]] std::int64_t bytes() const { return parts.empty() ? 0 : parts.back().first + parts.back().bytes; }
  friend bool operator==(const TileRowBytes&, const TileRowBytes&) = default;
};

struct TileSource {
  std::optional<TilePath> path;  // none: nothing is known
  std::string dtype;             // of the tile's elements
  std::optional<TileMapPlan> map;
  std::vector<TileFault> faults;  // empty: the path takes the tile
  std::vector<TileOffer> offers;
  std::vector<TileEngine> engines;
  std::optional<TileScales> scales;
  TileRowBytes row;

  [[nodiscard]] bool broken(std::int64_t axis) const;
  friend bool operator==(const TileSource&, const TileSource&) = default;
};

// "by TMA", "through LDS", "by gather4", "rope values by TMA"
[[nodiscard]] std::string path_in_words(TilePath path);

// "Axis 2 of the tensor map, rows: 2064 of them, 256 B apart, a box takes 16" and its faults. An index past the last
// axis: the map as a whole, faults of no axis, and the kernels that would take it.
[[nodiscard]] std::string axis_in_words(const TileSource& source, std::int64_t axis);

// "Stage the tile by gather4: 4 instructions", "The tile cannot be staged through LDS: ..."
[[nodiscard]] std::string offer_in_words(const TileSource& source, TilePath path);

// "Scale 1 of row 6: elements 64 to 127 of the head, f32, byte 12344 of the scales' pool, row 582"
[[nodiscard]] std::string scale_in_words(const TileScales& scales, std::int64_t row, std::int64_t granule);

// The 16 bytes from `first` on: "Bytes 512 to 527 of row 6: rope values 0 to 7 in bf16, byte 45696 of the pool"
[[nodiscard]] std::string bytes_in_words(const TileRowBytes& bytes, std::int64_t row, std::int64_t first);

}  // namespace kvscope::viz
