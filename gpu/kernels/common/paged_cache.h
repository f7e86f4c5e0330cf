// One layer's K or V as a kernel is told of it: memory, lookup table and strides, with no word on how an address is
// made of them (paged_cache.cuh does that for kernels, core/cache for the model; they share nothing).
//
//   element (block, slot, head, dim)   data + block * block_stride + slot * token_stride + head * head_size + dim
//   token t of sequence b              slot t % page_size of block table[b * table_stride + t / page_size]
//   its scale of granule g             scales + block * scale_block_stride + slot * heads * granules + head * granules + g
//
// Several layers and both of K and V share the pool, so block_stride is what lies between two blocks of the pool, and
// `data` the layer's first element. A table entry that is `blocks` or more stands for a page that was never assigned:
// nothing is read there, and nothing written. Continuous caches are the same with one page a sequence: page_size is the
// longest sequence, table_stride 1.
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
