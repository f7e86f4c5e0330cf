// Indices of sparse attention, which selects tokens one by one. They come in three forms:
//
//   logical    token's position in its sequence                -1: no token
//   encoded    block * P + slot                                made by the remap, once for all layers
//   TMA row    block * stride + slot   (get_tma_row)           the coordinate of a gather
//
// Only the remap reads the table; from encoded to row is arithmetic. "No token" must survive it: a gather of a negative
// row fetches zeros, but get_tma_row(-1) is P - 1 - stride, not -1, so callers use the functions below, which keep -1.
// Engines treat "no token" in a list in two ways (SparseHoles): some keep the hole, so that entry i of the list stays
// entry i; others move later entries to the left, so that a list is a number of entries followed by padding.
// Example: P 16, lookup_table[1] = {0,5,7,8}, 8 blocks: of sequence 1, logical 31 -> 5*16 + 15 = 95 and 64 -> -1, past
// the table's columns.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/index.h"
#include "core/cache/paged_kv_cache.h"
#include "core/layout/strided_view.h"

namespace kvscope {

// One index. In this order: a negative index is unchanged; a sequence without a table row, a page past the table's
// columns and a page whose entry is `invalid` or more become -1. OverflowError when an encoded index does not fit 32
// bits. `invalid` is the first id that is not a page. With a null page in the pool that is N, not the pool's extent
// N + 1: with the latter, unused entries would pass and encode the null page.
[[nodiscard]] std::int32_t remap_sparse_index(std::int32_t logical, SeqIdx seq, const LookupTable& table,
                                              std::int64_t page_size, std::int64_t invalid);

// The treatment of "no token" in a row of encoded indices. Compacted: the row's entries in their order, then -1 up to
// the row's width; every negative index means "no token", -7 too.
// Example: 96 -1 -1 33 is unchanged when kept, and 96 33 -1 -1 when compacted.
enum class SparseHoles : std::uint8_t { kept, compacted_left };

// A ragged batch: row r of `logical` belongs to the sequence b with offsets[b] <= r < offsets[b + 1]. `out` is
// dense, row-major.
// GeometryError: `out` is not rows * columns long, offsets do not increase from 0, or a row belongs to no sequence (a
// kernel would use sequence 0). With an empty `logical` it does nothing.
struct SparseRemap {
  StridedView<const std::int32_t, 2> logical{};   // [rows, indices of a row], any strides
  StridedView<const std::uint32_t, 1> offsets{};  // [batch + 1]
  LookupTable lookup_table{};                     // [batch, columns]
  std::int64_t page_size = 0;                     // [tokens]
  std::int64_t invalid = 0;                       // first id that is not a page
  SparseHoles holes = SparseHoles::kept;
};
void remap_sparse_indices(const SparseRemap& remap, std::span<std::int32_t> out);

// Encoded index -> TMA row, as each consumer keeps "no token": prefill leaves every negative value unchanged, decode
// only -1.
[[nodiscard]] std::int32_t prefill_tma_row(const PagedKVCache& cache, std::int32_t encoded);
[[nodiscard]] std::int32_t decode_tma_row(const PagedKVCache& cache, std::int32_t encoded);

// Decode reads position `position` of a list of `topk`, clamped so that an empty list still reads its first entry.
// Example: topk 0 -> 0; topk 3, position 7 -> 2.
[[nodiscard]] std::int64_t decode_list_position(std::int64_t position, std::int64_t topk);

// Scale `granule` of the row of an encoded index, granules counted over all heads [0, H * G). 0 for an index that is
// negative or ends past the pool (NB * P). GeometryError unless scales and values have the same rows from block to
// block, which the row's reuse assumes; IndexError for a granule outside the row; otherwise as load_scale.
[[nodiscard]] double sparse_scale(const PagedKVCache& cache, std::int32_t encoded, std::int64_t granule);

}  // namespace kvscope
