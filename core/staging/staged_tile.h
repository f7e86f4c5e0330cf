// The tile of the cache that is staged, as a parameter of every stage after the lookup table.
#pragma once

#include <cstdint>

#include "core/base/index.h"
#include "core/paging/cache_state.h"
#include "core/scenario/scenario.h"

namespace kvscope {

// What one TMA instruction brings of a tile. All of them fill the same bytes of shared memory.
enum class TmaBoxes : std::uint8_t {
  pages,    // the rows of one page: create_tma_tile
  gather4,  // four rows of any blocks: create_gather4_tma_tile, from sm_100 on
  rope,     // the bf16 rope values of rope-aware rows of one page: create_rope_tma_tile
};

struct StagedTile {
  SeqIdx batch_row;  // not the sequence's number
  LayerIdx layer;
  HeadIdx head;  // of K and V
  KOrV kv = KOrV::k;
  TokIdx first_token;       // of row 0
  std::int64_t tokens = 0;  // of the sequence, in the cache: rows past them hold no token
};

// The tile of BN tokens that holds `token`. Example: BN 64, token 150 -> first_token 128.
[[nodiscard]] inline TokIdx tile_start(TokIdx token, std::int64_t BN) {
  return TokIdx{token.value - token.value % BN};
}

// Tokens of a batch row: cached and new.
[[nodiscard]] inline std::int64_t tokens_of(const CacheState& state, SeqIdx batch_row) {
  const auto b = static_cast<std::size_t>(batch_row.value);
  return std::int64_t{state.cache_lengths[b]} + state.new_tokens[b];
}

}  // namespace kvscope
