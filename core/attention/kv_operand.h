// One layer's cache as the rows that attention reads: connects core/cache and core/attention. Copies nothing; the
// cache's tensors must outlive the rows.
//
//   PagedKVCache                blocks [NB, P, H, D], its lookup table, its scales and their table
//   ContinuousBatchingKVCache   one page of max_seq_len tokens per sequence
//   an MLA cache                K unchanged; V is the first `value_size` elements of the same rows
//
// Example: pool {5,2,3,4,2,8}, K of layer 1: block_stride 384, token_stride 16, head_stride 8, 5 blocks, 4 slots.
// A quantized element is element * scale in double here; PagedKVCache::load multiplies in the scale's type, which
// rounds when that is narrow.
#pragma once

#include <cstdint>

#include "core/attention/problem.h"
#include "core/cache/continuous_kv_cache.h"
#include "core/cache/layer_view.h"
#include "core/cache/paged_kv_cache.h"

namespace kvscope::attention {

// GeometryError for a quantized cache without scales, whose elements have no value without them.
[[nodiscard]] PagedRows rows_of(const PagedKVCache& cache);
[[nodiscard]] PagedRows rows_of(const ContinuousBatchingKVCache& cache);

// One layer's K or V of a packed pool [block, k_or_v, layer, page_row, head, head_dim] that begins at `data`. The
// caller sets the table and, for a quantized pool, the scales with the next function.
// Example: pool {5,2,3,4,2,8}, V of layer 1: first element 256, strides as above.
[[nodiscard]] PagedRows rows_of_pool(const std::byte* data, DType dtype, const Shape<6>& pool, KOrV k_or_v,
                                     LayerIdx layer);

// The scales of the same blocks: a packed pool [block, k_or_v, layer, page_row, head, ceil(head_dim / granularity)].
void set_scales(PagedRows& rows, const std::byte* data, DType dtype, const Shape<6>& pool, KOrV k_or_v, LayerIdx layer,
                std::int64_t granularity);

}  // namespace kvscope::attention
