// What a launch of mla_decode is told: one query token a sequence, up to 128 heads that share one latent cache.
//
//   a row of the cache   bf16   576 elements: 512 of content, 64 of rope           K is the row, V its first 512
//                        fp8    656 bytes: 512 e4m3 | 4 f32 scales of 128 each, powers of two | 64 bf16 of rope
//                        e4m3   576 elements, and one f32 scale a token in `scales`, of any value; null: 1
//
// The e4m3 cache has granularity 576 or more: scores and weights are multiplied by the scale, not the elements. The fp8 cache is told in bytes: head_size 656, strides likewise, and rows begin at multiples of 16. Either all tokens
// of a sequence are looked at, or those that `indices` names: block * page_size + slot, -1 or past the pool: none.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"

namespace kvscope::gpu {

struct MlaDecodeParams {
  PagedCache cache;                        // of one layer; heads 1
  const void* q = nullptr;                 // [batch, query_heads, 576] bf16
  const std::uint32_t* lengths = nullptr;  // [batch] keys; not read with indices
  const std::int32_t* indices = nullptr;   // [batch, topk], or null
  void* out = nullptr;                     // [batch, query_heads, 512] bf16
  float* lse = nullptr;                    // [batch, query_heads] natural; -inf and o = 0 without any key
  float* part = nullptr;                   // [batch, splits, query_heads, 512] scratch: outputs of the splits
  float* part_lse = nullptr;               // [batch, splits, query_heads] scratch, in base two
  std::int32_t topk = 0;
  std::int32_t query_heads = 0;
  std::int32_t splits = 1;  // grid.x
  float scale = 1;          // of the scores, above 0: of 576 or of the 192 before absorption is the caller's matter
};

}  // namespace kvscope::gpu
