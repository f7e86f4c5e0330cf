// Address arithmetic of a paged cache for kernels. The model in core/cache has a separate implementation; they share no
// code, so that comparing their results is a real check (enforced by tests/layering).
//
//   token 37 of sequence 2, page_size 16        page 37 / 16 = 2, slot 37 % 16 = 5
//   table row 2: 7 3 [9] 11                     block 9
//   head 1, dim 24, 2 heads of 128              element 9 * block_stride + 5 * 256 + 1 * 128 + 24
//   granularity 64: granule 24 / 64 = 0         scale   9 * scale_block_stride + 5 * 4 + 1 * 2 + 0
//
// Units are elements, not bytes. Offsets are 64 bits wide: a pool of 2^31 elements is only 4 GB of bf16.
//
// Preconditions (caller): sequence, head and dim in range, and a column of the table for every token. An unassigned
// block is not an error: is_assigned returns false, and the caller must not read or write there.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"
#include "gpu/kernels/common/paged_cache.h"

namespace kvscope::gpu {

// Column of the table. A continuous cache has one page per sequence, so column 0.
DEVICE uint32_t page_of(const PagedCache& cache, uint32_t token) {
  return token / static_cast<uint32_t>(cache.page_size);
}
// Slot of the token in its block.
DEVICE uint32_t slot_of(const PagedCache& cache, uint32_t token) {
  return token % static_cast<uint32_t>(cache.page_size);
}
// One table entry: one read of global memory.
DEVICE uint32_t block_of_page(const PagedCache& cache, uint32_t sequence, uint32_t page) {
  return cache.table[static_cast<int64_t>(sequence) * cache.table_stride + page];
}
DEVICE uint32_t block_of(const PagedCache& cache, uint32_t sequence, uint32_t token) {
  return block_of_page(cache, sequence, page_of(cache, token));
}
DEVICE bool is_assigned(const PagedCache& cache, uint32_t block) {
  return block < static_cast<uint32_t>(cache.blocks);
}

// First element of a token: its heads are contiguous.
DEVICE int64_t row_offset(const PagedCache& cache, uint32_t block, uint32_t slot) {
  return static_cast<int64_t>(block) * cache.block_stride + static_cast<int64_t>(slot) * cache.token_stride;
}
DEVICE int64_t element_offset(const PagedCache& cache, uint32_t block, uint32_t slot, uint32_t head, uint32_t dim = 0) {
  return row_offset(cache, block, slot) + static_cast<int64_t>(head) * cache.head_size + dim;
}

// Scales per head: the last granule may be short. Example: head_size 576, granularity 128 -> 5.
DEVICE uint32_t granules_of(const PagedCache& cache) {
  return (static_cast<uint32_t>(cache.head_size) + static_cast<uint32_t>(cache.granularity) - 1) /
         static_cast<uint32_t>(cache.granularity);
}
DEVICE int64_t scale_row_offset(const PagedCache& cache, uint32_t block, uint32_t slot) {
  return static_cast<int64_t>(block) * cache.scale_block_stride +
         static_cast<int64_t>(slot) * cache.heads * granules_of(cache);
}
DEVICE int64_t scale_offset(const PagedCache& cache, uint32_t block, uint32_t slot, uint32_t head, uint32_t dim = 0) {
  return scale_row_offset(cache, block, slot) + static_cast<int64_t>(head) * granules_of(cache) +
         dim / static_cast<uint32_t>(cache.granularity);
}

}  // namespace kvscope::gpu
