// Which swizzles and which row paddings make a tile's reads free of bank conflicts, and why.
//
//   byte offset in the tile   ... | 9 8 7 | 6 5 4 | 3 2 1 0 |      64-byte rows: bits 6 and up are the row
//   bank (32 of them)                     | 6 5 4   3 2 |          address bits 2..6
//   Swizzle(2, 4, 3)              bits 7-8 XORed into 4-5          rows 2 apart now differ in the bank
//
// A tile is a number of rows at a pitch. A pattern is the set of reads of one instruction: for each access, the place
// that each lane reads. The search covers Swizzle(b, m, s) on byte offsets with s > 0 and m at least log2 of the chunk
// (the bytes that a copy writes as one piece stay together). It keeps only swizzles that map no byte outside the tile
// and whose source bits all vary within the tile. The tile must begin at a multiple of the swizzle's period, as on
// hardware.
//
// Example: 64 rows of 64 B read by ldmatrix.x4 take 16 cycles; the minimum is 4. Swizzle (2,4,3), which is TMA's 64B
// swizzle, reaches it, as do (3,4,3) and 16 bytes of padding per row.
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

// The place a lane reads: `byte` counts from the first byte of the row, before any swizzle.
struct RowByte {
  std::int64_t row = 0;
  std::int64_t byte = 0;
};

struct AccessPattern {
  std::string name;  // "K, ldmatrix.x4"
  BankProfile profile;
  int width = 16;                                             // [bytes] per lane
  std::vector<std::vector<std::optional<RowByte>>> accesses;  // [accesses][lanes]; a lane without a place is inactive
};

struct SolverBounds {
  int max_bits = 4;
  int max_base = 7;
  int max_shift = 7;
  std::int64_t chunk = 16;         // [bytes] that a copy writes as one piece: a power of two
  std::int64_t max_padding = 128;  // [bytes] per row
};

struct SwizzleSolution {
  Swizzle swizzle;                  // on byte offsets
  std::optional<SwizzleMode> mode;  // the TMA mode with this formula, if there is one
  bool tma_writes_it = false;       // and that mode's row pitch is `pitch`: a TMA box produces exactly this layout
  std::string why;
};

struct PaddingSolution {
  std::int64_t padding = 0;      // [bytes] per row; 0: unpadded
  std::int64_t pitch = 0;        // [bytes] with the padding
  std::int64_t extra_bytes = 0;  // [bytes] added to the tile
  std::string why;
};

struct LayoutSolutions {
  TileRows tile;
  int cycles = 0, ideal = 0;              // of the tile as given, over every access
  std::string current;                    // why it is conflict-free, or which lanes conflict and why
  std::vector<SwizzleSolution> swizzles;  // fewest bits first, TMA modes first; the identity when it is conflict-free
  std::vector<PaddingSolution> paddings;  // fewest bytes first
  std::string no_swizzle;                 // when no swizzle is conflict-free: the best one and its cycles
  [[nodiscard]] bool is_free() const { return cycles == ideal; }
};

// A solution must make every pattern conflict-free: a tile that two instructions read is solved for both.
// GeometryError: a place outside the tile, inconsistent bounds, a chunk narrower than an access, and the errors of
// bank_report.
[[nodiscard]] LayoutSolutions solve_layout(const TileRows& tile, std::span<const AccessPattern> patterns,
                                           const SolverBounds& bounds = {});

[[nodiscard]] std::string to_text(const LayoutSolutions& solutions);

}  // namespace kvscope
