// Rows of the cache, chosen one by one, for a packed output. What an index means:
//
//   logical   token of a sequence                      through the lookup table      -1: nothing chosen
//   encoded   block * page_size + slot                 what the remap makes of it, once for all layers
//   row       block * rows of a block + slot           what a tensor copy takes: rows of other layers lie between
//
// Example: page_size 16, table row 0 5 7, 2 layers of K and V, so 64 rows a block: token 31 -> 5 * 16 + 15 = 95 -> 335.
//
// Who owes what. Caller: 16-byte alignment of pool and output; head_size and granularity in whole chunks of
// gather_rows/config.h; offsets that rise from 0 to the number of lists; for `row` of a quantized cache as many rows of
// scales from block to block as of elements.
// No error, a row of zeros: a negative index; a logical one whose page is past the table's row or whose block is
// `invalid` or more; an encoded or row index past the pool.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"

namespace kvscope::gpu {

enum class IndexKind : std::int32_t { logical = 0, encoded = 1, row = 2 };

struct GatherRowsParams {
  PagedCache cache;                       // `scales` null: elements as they are stored, whatever their scale
  const std::int32_t* indices = nullptr;  // lists of `list_length`, one behind the other unless strided
  const std::uint32_t* offsets =
      nullptr;                    // [sequences + 1] list r is of the sequence b, offsets[b] <= r < offsets[b + 1]
  void* out = nullptr;            // gather: [lists * list_length, heads, head_size]; scales: [.., heads, granules];
                                  // remap, tma_row, compact: i32, as many as indices, packed
  std::int64_t list_stride = 0;   // [indices] from list to list
  std::int64_t index_stride = 1;  // [indices] from index to index of a list
  std::int32_t lists = 0;
  std::int32_t list_length = 0;
  std::int32_t sequences = 0;
  std::int32_t invalid = 0;  // first id that is no page: blocks, or blocks - 1 to leave the null page out
  IndexKind kind = IndexKind::logical;
  std::int32_t keep_only_minus_one = 0;  // tma_row: 1: -1 stays -1, other negatives go through the formula (decode);
                                         // 0: every negative stays (prefill)
};

}  // namespace kvscope::gpu
