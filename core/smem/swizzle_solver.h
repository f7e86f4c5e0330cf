// Which swizzles and which row paddings make a tile's reads free of bank conflicts, and why.
//
//   byte offset in the tile   ... | 9 8 7 | 6 5 4 | 3 2 1 0 |      64-byte rows: bits 6 and up are the row
//   bank (32 of them)                     | 6 5 4   3 2 |          address bits 2..6
//   Swizzle(2, 4, 3)              bits 7-8 XORed into 4-5          rows 2 apart now differ in the bank
//
// A tile is rows at a pitch. A pattern is what one instruction reads of it: for each access, the place of each lane.
// The search is over Swizzle(b, m, s) on byte offsets with s > 0, m no lower than a chunk (what a copy writes in one
// piece stays in one piece), and only those that leave no byte outside the tile and whose every bit varies within it.
// The tile's first byte is at a multiple of the swizzle's period, as it must be on hardware.
//
// Example: 64 rows of 64 B read by ldmatrix.x4: 16 cycles where 4 would do; (2,4,3), which is TMA's 64B swizzle, frees
// them, (3,4,3) does, and so do 16 bytes of padding a row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/layout/swizzle.h"
#include "core/smem/banks.h"

namespace kvscope {

struct TileRows {
  std::int64_t rows = 0;
  std::int64_t pitch = 0;  // [bytes] from row to row
};

// Where a lane reads: `byte` counts from the first byte of the row, before any swizzle.
struct RowByte {
  std::int64_t row = 0;
  std::int64_t byte = 0;
};

struct AccessPattern {
  std::string name;  // "K, ldmatrix.x4"
  BankProfile profile;
  int width = 16;                                             // [bytes] a lane
  std::vector<std::vector<std::optional<RowByte>>> accesses;  // [accesses][lanes]; a lane without a place takes no part
};

struct SolverBounds {
  int max_bits = 4;
  int max_base = 7;
  int max_shift = 7;
  std::int64_t chunk = 16;         // [bytes] a copy writes in one piece: a power of two
  std::int64_t max_padding = 128;  // [bytes] a row
};

struct SwizzleSolution {
  Swizzle swizzle;                  // on byte offsets
  std::optional<SwizzleMode> mode;  // TMA's, when the formula is one of its modes
  bool tma_writes_it = false;       // and its rows are `pitch` apart under that mode: a box fills this very layout
  std::string why;
};

struct PaddingSolution {
  std::int64_t padding = 0;      // [bytes] a row; 0: as it is
  std::int64_t pitch = 0;        // [bytes] then
  std::int64_t extra_bytes = 0;  // [bytes] of the tile
  std::string why;
};

struct LayoutSolutions {
  TileRows tile;
  int cycles = 0, ideal = 0;              // of the tile as given, over every access
  std::string current;                    // why it is free, or which lanes collide and why
  std::vector<SwizzleSolution> swizzles;  // fewest bits first, TMA's modes before others; the identity when it is free
  std::vector<PaddingSolution> paddings;  // fewest bytes first
  std::string no_swizzle;                 // when there is none: the best of the family and what it costs
  [[nodiscard]] bool is_free() const { return cycles == ideal; }
};

// Every pattern must be free at once: a tile that two instructions read is solved for both.
// GeometryError: a place outside the tile, bounds that make no sense, a chunk narrower than an access, and what
// bank_report refuses.
[[nodiscard]] LayoutSolutions solve_layout(const TileRows& tile, std::span<const AccessPattern> patterns,
                                           const SolverBounds& bounds = {});

[[nodiscard]] std::string to_text(const LayoutSolutions& solutions);

}  // namespace kvscope
