// Parameters of one step of decode attention: one new query token per sequence against all keys of its cache. Used by
// paged_decode and continuous_decode; their plan (paged_decode/plan.h) computes the numbers.
//
//   scores[h, t] = scale * dot(q[h], k[t, h / group])       o[h] = sum_t softmax(scores)[t] * v[t, h / group]
//
// The entries for any head size (paged_decode/attend_any.cuh) also apply a soft cap, ALiBi and a first key:
//
//   scores[h, t] = cap * tanh(scale * dot / cap) + slope[h] * (t - position)       keys firsts[b] <= t < lengths[b]
//
// The keys of a sequence are divided into runs of keys_per_split. Each run produces an output and the logarithm of its
// sum, in base two; the combine kernel merges them. For a run without keys, the logarithm is -infinity and the output
// is not written.
//
// Preconditions. Host: 1. `k` and `v` have one table and one page size. 2. q's rows are 4-byte aligned (bf16, f16),
// 16-byte (f32 and the entries for any head size; e4m3 8-byte rows of K and V). 3. copies: the plan's rules. 4. scales:
// one per head, granularity >= head_size; the entries for any head size support every granularity. Allocator: table
// entries of a sequence's pages are blocks of the pool; an unassigned page reads as zeros. Entries after them are not
// read.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"
#include "gpu/kernels/common/tensor_map_slot.h"

namespace kvscope::gpu {

struct DecodeParams {
  TensorMapSlot k_map{}, v_map{};  // [block, slot, head, dim], innermost last; box: box_rows slots of one head
  PagedCache k, v;
  const void* q = nullptr;                 // [batch, query_heads, head_size] bf16 (caches of bf16 and e4m3), f16, f32
  const std::uint32_t* lengths = nullptr;  // [batch] keys, including the new token
  float* partial_o = nullptr;              // [splits, batch, query_heads, head_size]
  float* partial_lse = nullptr;            // [splits, batch, query_heads] base two
  void* o = nullptr;                       // [batch, query_heads, head_size] of the combine kernel's type
  float* lse = nullptr;                    // [batch, query_heads] natural; -infinity without a key
  float scale_log2 = 0;                    // factor of the scores, times log2(e)
  std::int32_t batch = 0;
  std::int32_t query_heads = 0;
  std::int32_t group = 0;                   // query heads that share a KV head
  std::int32_t row_tiles = 0;               // CTAs that share a KV head: ceil(group / rows per CTA)
  std::int32_t splits = 0;                  // runs of keys of the longest sequence
  std::int32_t keys_per_split = 0;          // a multiple of the tile
  std::int32_t stages = 0;                  // of the ring
  std::int32_t box_rows = 0;                // tensor copies: slots of a box, 16, 32 or 64; 0: cp.async
  std::int32_t copy_bytes = 0;              // cp.async: bytes of a copy, 16 or 4
  std::int32_t scales_at = 0;               // [bytes] in shared memory, after the ring: scales,
  std::int32_t barriers_at = 0;             // [bytes] then barriers (paged_decode/config.h)
  float cap_log2 = 0;                       // soft cap times log2(e); 0: none
  float cap_scale = 0;                      // scale / soft cap
  const std::uint32_t* firsts = nullptr;    // [batch] first visible key; null: 0
  const float* slopes_log2 = nullptr;       // [query_heads] ALiBi slopes times log2(e); null: none
  const std::int32_t* positions = nullptr;  // [batch] position of the query among the keys, where ALiBi starts
  const float* sinks_log2 = nullptr;        // [query_heads] sinks times log2(e), for the combine kernel; null: none
};

}  // namespace kvscope::gpu
