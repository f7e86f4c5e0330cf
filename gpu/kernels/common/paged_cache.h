// One layer's K or V in a kernel's parameters: memory, lookup table and strides. The address arithmetic is in
// paged_cache.cuh for kernels and in core/cache for the model; these share no code.
//
//   element (block, slot, head, dim)   data + block * block_stride + slot * token_stride + head * head_size + dim
//   token t of sequence b              slot t % page_size of block table[b * table_stride + t / page_size]
//   its scale of granule g             scales + block * scale_block_stride + slot * heads * granules + head * granules + g
//
// Layers, and K and V, share the pool: block_stride is the distance between two blocks of the pool, and `data` is the
// layer's first element. A table entry of `blocks` or more denotes an unassigned page: it must be neither read nor
// written. A continuous cache is the same with one page per sequence: page_size is the length of the longest
// sequence, table_stride 1.
#pragma once

#include <cstdint>

namespace kvscope::gpu {

struct PagedCache {
  void* data = nullptr;                  // of the cache's element type
  const std::uint32_t* table = nullptr;  // [batch, table_stride]
  float* scales = nullptr;               // null: not quantized
  std::int64_t block_stride = 0;         // [elements]
  std::int64_t token_stride = 0;         // [elements]; heads * head_size when packed
  std::int64_t scale_block_stride = 0;   // [scales]
  std::int32_t table_stride = 0;         // [entries]
  std::int32_t blocks = 0;               // extent of the pool
  std::int32_t page_size = 0;            // [tokens]
  std::int32_t heads = 0;                // of K and V
  std::int32_t head_size = 0;            // [elements]
  std::int32_t granularity = 0;          // elements of a head that share a scale
};

}  // namespace kvscope::gpu
