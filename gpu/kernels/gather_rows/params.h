// Copies individually selected rows of the cache to a packed output. The kinds of index:
//
//   logical   token of a sequence                      through the lookup table      -1: no token
//   encoded   block * page_size + slot                 the result of the remap, once for all layers
//   row       block * rows of a block + slot           the row for a tensor copy; rows of other layers are in between
//
// Example: page_size 16, table row 0 5 7, 2 layers of K and V, so 64 rows a block: token 31 -> 5 * 16 + 15 = 95 -> 335.
//
// Preconditions (caller): 16-byte alignment of pool and output; head_size and granularity in whole chunks of
// gather_rows/config.h; offsets that ascend from 0 to the number of lists; for `row` of a quantized cache, as many rows
// of scales between blocks as of elements. Not an error, but a row of zeros: a negative index; a logical one whose page
// is past the table's row or whose block is `invalid` or more; an encoded or row index past the pool.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"

namespace kvscope::gpu {

enum class IndexKind : std::int32_t { logical = 0, encoded = 1, row = 2 };

struct GatherRowsParams {
  PagedCache cache;                       // `scales` null: elements as stored, without scaling
  const std::int32_t* indices = nullptr;  // lists of `list_length`, consecutive unless strided
  const std::uint32_t* offsets =
      nullptr;                    // [sequences + 1] list r belongs to sequence b if offsets[b] <= r < offsets[b + 1]
  void* out = nullptr;            // gather: [lists * list_length, heads, head_size]; scales: [.., heads, granules];
                                  // remap, tma_row, compact: i32, as many as indices, packed
  std::int64_t list_stride = 0;   // [indices] from list to list
  std::int64_t index_stride = 1;  // [indices] from index to index of a list
  std::int32_t lists = 0;
  std::int32_t list_length = 0;
  std::int32_t sequences = 0;
  std::int32_t invalid = 0;  // first id that is not a page: blocks, or blocks - 1 to exclude the null page
  IndexKind kind = IndexKind::logical;
  std::int32_t keep_only_minus_one = 0;  // tma_row: 1: -1 stays -1, other negatives use the formula (decode);
                                         // 0: every negative stays (prefill)
};

}  // namespace kvscope::gpu
