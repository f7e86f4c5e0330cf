// Parameters of mla_decode: one query token per sequence, up to 128 heads that share one latent cache.
//
//   a row of the cache   bf16   576 elements: 512 of content, 64 of rope           K is the row, V its first 512
//                        fp8    656 bytes: 512 e4m3 | 4 f32 scales of 128 each, powers of two | 64 bf16 of rope
//                        e4m3   576 elements, and one f32 scale per token in `scales`, of any value; null: 1
//
// The e4m3 cache has granularity 576 or more; scores and weights are scaled, not the elements. The fp8 cache has units
// of bytes: head_size 656, strides in bytes, rows at multiples of 16.
// A query attends to all tokens of its sequence, or to those in `indices`: block * page_size + slot. An index of -1 or
// past the pool is ignored.
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
  float scale = 1;          // of the scores, above 0: the caller chooses between 576 and the 192 before absorption
};

}  // namespace kvscope::gpu
