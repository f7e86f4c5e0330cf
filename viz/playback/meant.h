// The token or sequence that a view of a single one shows: that of the selection, else the longest running sequence;
// and the path of its tile. The tile view and the attention view choose by it, in the window and in `--render`.
//
// Example: pages of 16, block 9 is page 2 of sequence 3: the selection "block 9" means token 32 of sequence 3.
#pragma once

#include <optional>
#include <vector>

#include "core/base/index.h"
#include "viz/playback/facts.h"
#include "viz/playback/recorded_tiles.h"
#include "viz/playback/selection.h"
#include "viz/playback/state.h"
#include "viz/playback/tile_request.h"

namespace kvscope::viz {

// A token of a sequence.
struct TokenMeant {
  SeqIdx seq;
  TokIdx token;
  friend bool operator==(const TokenMeant&, const TokenMeant&) = default;
};

// The selection's own token, the first token of its page, of the first page in its block, of its sequence. `lit` is
// resolve() of the selection. Nothing: no selection, a step, or an object of a tile.
[[nodiscard]] std::optional<TokenMeant> token_meant(const Selection& selection, const Lit& lit, const Facts& facts);

// The selection's sequence, or the first one in its block.
[[nodiscard]] std::optional<SeqIdx> sequence_meant(const Selection& selection, const Lit& lit);

// The running sequence with the most tokens, the first of several; sequence 0 if none runs.
[[nodiscard]] SeqIdx longest_running(const State& state);

// The path of a tile that is not chosen by name: the one of the first tile that the scenario's notes link to. Without
// such a link: LDS if the scenario changes its `lds` section, else TMA. Example: tile_through_lds.json: LDS.
[[nodiscard]] TilePath path_meant(const Facts& facts);

// Of the tiles that a trace holds, the first one; if path_meant() is LDS, the first one that is not by TMA. Nothing: it
// holds none.
[[nodiscard]] std::optional<std::size_t> recorded_meant(const std::vector<RecordedTile>& tiles, const Facts& facts);

}  // namespace kvscope::viz
