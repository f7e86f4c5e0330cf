// Selections that lead into the tile that is shown and out of it: what an object lights there, what it is in words, and
// the whole chain from its token to its register as one sentence.
//
//   token 70 -> row 6 -> chunks c0..c7 -> 32 registers of lanes 24..27          and the other way round
//
// Everything of a tile is its events' own: rows and tokens, pages and blocks as they were when it was staged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "viz/playback/facts.h"
#include "viz/playback/selection.h"
#include "viz/playback/state.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz {

// As resolve() of selection.h, with Lit::tile. Without a tile (null) objects of a tile light nothing. A selection
// inside the tile lights its token, page and block at `state` too, if it is one token, one page, one block.
[[nodiscard]] Lit resolve(const State& state, const Facts& facts, const Tile* tile, const Selection& selection);

// As describe() of selection.h:
//   "Row 6 of the tile: token 70"      "Chunk c3 of row 6: columns 24 to 31, shared byte 848, banks 20 to 23"
//   "Lane 26: 32 registers"            "Lane 26, register 0: token 70, columns 28 and 29"
//   "Scale 1 of row 6: ..."            "Bytes 512 to 527 of row 6: ..."      "Axis 2 of the tensor map, rows: ..."
// `instead`: without a tile, the known parts of the requested one.
[[nodiscard]] std::string describe(const State& state, const Facts& facts, const Tile* tile, const Selection& selection,
                                   const TileSource* instead = nullptr);

// Column of the tile that the byte of its row is in; nothing: the tile does not have the byte.
[[nodiscard]] std::optional<std::int64_t> column_of_byte(const Tile& tile, std::int64_t byte);

// The whole chain of what is lit, in words, at one event of the tile; how to get one when nothing is lit.
//   "Token 70 is row 6 of the tile: page 4 → block 9 → row 582. Box 0 copied it; its chunk c3 is stored at
//    3 XOR 6 = 5, shared byte 848, banks 20 to 23; lane 26 will hold dims 28 and 29 in register 0."
[[nodiscard]] std::string chain(const Tile& tile, const TileState& now, const LitTile& lit);

// Why no register holds the tile; empty: registers do, or the trace does not tell.
[[nodiscard]] std::string no_registers(const Tile& tile);

// "ldmatrix.x4", "ds_read_b64_tr_b16"; "mma.m16n8k16", "mfma 32x32x16"; empty: unknown.
[[nodiscard]] std::string read_name(const Tile& tile);
[[nodiscard]] std::string matrix_name(const Tile& tile);

// "K of sequence 3 · layer 0 · head 1 · tokens 64–95 · bf16 · by TMA, 128B swizzle"; the dtype by its bytes where only
// these are known.
[[nodiscard]] std::string title(const Tile& tile, const Facts& facts);

}  // namespace kvscope::viz
