// The read of a tile that a picture shows for the selection, and the use of its banks, in words.
//
//   auto shown = shown_read(tile, now, lit);        token 70, chunk c3: read 1, the lanes that ask for c3
//   taken_in_words(tile, *shown)                    "ldmatrix takes chunk c3 of 8 rows"
//   banks_in_words(tile, phase)                     "8 bank groups, 1 wavefront", "8 wavefronts, all in banks 12–15"
//   swizzle_formula(tile)                           "chunk c at c XOR (row mod 8)"
//
// Also the reads that come too early: the bytes of a read must be covered by a wait of the wave that copied it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viz/playback/selection.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_banks.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz {

struct ShownRead {
  std::int64_t read = 0;   // index into Tile::reads
  std::int64_t group = 0;  // index into Tile::phases: lanes that shared memory serves together
  friend bool operator==(const ShownRead&, const ShownRead&) = default;
};

// By index into Tile::reads: whether the read fills a register of `lit`.
[[nodiscard]] std::vector<bool> lit_reads(const Tile& tile, const LitTile& lit);

// The read that every panel shows: one that is under way; else, of those that fill what is lit, the last that has begun
// or else the first; else the last that has begun; else the first.
// Of the reads that fill registers. Nothing: none does.
[[nodiscard]] std::optional<std::int64_t> read_of_grid(const Tile& tile, const TileState& now, const LitTile& lit);
// Of the reads whose banks are known, with the group that takes the lit element. Nothing: the tile has no reads with
// lanes, banks and geometry.
[[nodiscard]] std::optional<ShownRead> shown_read(const Tile& tile, const TileState& now, const LitTile& lit);

// "0–7", "0–3, 12–15, 20–27". `numbers` ascending, each once.
[[nodiscard]] std::string ranges(const std::vector<std::int64_t>& numbers);
// Lanes of a group that ask for something in this read, ascending.
[[nodiscard]] std::vector<std::int64_t> lanes_of(const BankPhaseUse& group);

// "ldmatrix takes chunk c3 of 8 rows"; "ds_read_b128 takes chunks c0–c3 of 4 rows".
[[nodiscard]] std::string taken_in_words(const Tile& tile, const ShownRead& shown);
// One wavefront: "8 bank groups, 1 wavefront". More: "8 wavefronts, all in banks 12–15"; where other banks deliver
// less, "4 wavefronts, 4 words in each of banks 0–15". Banks apart from one another are counted: "16 of 64 banks".
[[nodiscard]] std::string banks_in_words(const Tile& tile, const BankPhaseUse& group);

// Where a chunk of a band is stored: "chunk c at c XOR (row mod 8)"; where the swizzle moves chunks out of their row
// "16-byte place n at n XOR (n / 16 mod 8)". Empty without geometry.
[[nodiscard]] std::string swizzle_formula(const Tile& tile);

// --- too early -------------------------------------------------------------------------------------------------------

// Copies that are issued at `event` and that no wait of their wave covers; indices into Tile::copies. TMA: none.
[[nodiscard]] std::vector<std::int64_t> uncovered_copies(const Tile& tile, std::int64_t event);

struct EarlyRead {
  std::int64_t read = 0;  // index into Tile::reads
  std::int64_t copy = 0;  // index into Tile::copies: the first that it should have waited for
};
// The first read at or after `event` that takes bytes of a copy that no wait covers then, or that is not issued yet.
[[nodiscard]] std::optional<EarlyRead> next_early_read(const Tile& tile, std::int64_t event);

}  // namespace kvscope::viz
