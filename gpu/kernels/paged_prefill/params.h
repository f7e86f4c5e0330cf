// Parameters of paged_prefill: queries of a ragged batch, the paged K and V of one layer, masks, and the output
// arrays. The queries' own tokens are already in the cache: they are the last tokens of each sequence.
//
//   sequence of 100 keys, 30 of them of this step       query i is at key position 70 + i
//   fewer keys than queries (3 and 5)                   queries 0 and 1 are before the first key
//
// Tensor maps, innermost first, all with 128-byte swizzle:
//   queries         {head_size, query_heads, total queries}             box {64, 1, 128}
//   keys, values    {head_size, kv_heads, page_size, blocks}            box {64, 1, min(page_size, 128), 1}
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"
#include "gpu/kernels/common/tensor_map_slot.h"

namespace kvscope::gpu {

struct PagedPrefillParams {
  TensorMapSlot queries, keys, values;
  PagedCache cache;                             // K's or V's view: only table, page size and extent are used
  const std::uint32_t* lengths = nullptr;       // [batch] keys of a sequence, including this step's
  const std::int32_t* query_offsets = nullptr;  // [batch + 1] queries of sequence b: rows offsets[b] .. offsets[b + 1]
  void* out = nullptr;                          // [total queries, query_heads, head_size] of the queries' type
  float* lse = nullptr;                         // [total queries, query_heads] natural; -inf and o = 0 without any key
  std::int32_t query_heads = 0;                 // a multiple of the cache's heads
  std::int32_t causal = 1;                      // 1: keys up to the query's position; 0: all
  std::int32_t window_left = -1;                // visible keys before the query's position; -1: no limit
  float scale = 1;                              // of the scores, above 0
  float soft_cap = 0;                           // score -> cap * tanh(score / cap); 0: none
};

}  // namespace kvscope::gpu
