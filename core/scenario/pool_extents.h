// The extents of a scenario's block pool:
//
//   [block, k_or_v, layer, page_row, head, last]
//
//   block      paged: cache.blocks and, after them, the null page; continuous: cache.blocks, one per sequence
//   k_or_v     2, or 1 for MLA
//   page_row   paged: page_size; continuous: max_tokens
//   last       head_size for elements; scales of a head for scales
#pragma once

#include <cstdint>

#include "core/layout/strided_view.h"
#include "core/scenario/scenario.h"

namespace kvscope {

// Example: 32 blocks of 16 tokens, 2 KV heads of 8: pool_extents(scenario, 2, 8) == {33, 2, 2, 16, 2, 8}.
[[nodiscard]] constexpr Shape<6> pool_extents(const Scenario& scenario, std::int64_t layers, std::int64_t last) {
  const CacheConfig& cache = scenario.cache;
  const bool paged = cache.kind == CacheKind::paged;
  return {paged ? cache.blocks + 1 : cache.blocks,    scenario.model.is_mla ? 1 : 2, layers,
          paged ? cache.page_size : cache.max_tokens, scenario.model.kv_heads,       last};
}

}  // namespace kvscope
