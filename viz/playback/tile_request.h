// Which tile is asked for, as data and as one line of text: the viewer's menus, `kvscope-viewer --tile` and the session
// file use the same words.
//
//   seq 3 token 70 k layer 0 head 1 tma         the tile of K by TMA that holds token 70 of sequence 3
//   seq 3 v lds                                 token, layer, head and dim are 0 when they are left out; K
//   seq 3 token 70 gather4                      by TMA, four rows of any blocks for each instruction
//   seq 3 token 70 rope                         by TMA, the bf16 rope values of rope-aware rows (MLA, 8 bits)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/index.h"

namespace kvscope::viz {

enum class TilePath : std::uint8_t { tma, lds, gather4, rope };

struct TileRequest {
  SeqIdx seq{0};
  TokIdx token{0};  // any of the tile's
  KOrV kv = KOrV::k;
  LayerIdx layer{0};
  HeadIdx head{0};
  DimIdx dim{0};    // TMA: any column of the tile, whose width is tile.BK
  StepIdx step{0};  // whose cache; not part of the text
  TilePath path = TilePath::tma;
  friend bool operator==(const TileRequest&, const TileRequest&) = default;
};

// Words in any order, case and surplus blanks do not matter; `usual` is the path of a text without one.
// InputError("tile", ...): a word that is none of these, a name without its number, a number twice.
[[nodiscard]] TileRequest parse_tile_request(std::string_view text, TilePath usual = TilePath::tma);
// All words, in the order above; parse_tile_request() of it gives the request back, but for its step.
[[nodiscard]] std::string to_text(const TileRequest& request);

}  // namespace kvscope::viz
