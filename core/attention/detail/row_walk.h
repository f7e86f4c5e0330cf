// The order in which the passes over K and V read their rows: blocks of keys, and all KV heads of a block before the
// next block, so that pages are walked once and in order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/attention/detail/reference_kernels.h"
#include "core/attention/detail/row_reader.h"
#include "core/attention/mask.h"
#include "core/base/interruption.h"

namespace kvscope::attention {

struct RowWalk {
  std::int64_t sequence = 0;
  KeyRange needed;
  std::int64_t origin = 0;  // at or before the first needed key: blocks start at multiples of most_keys from it
  std::int64_t heads = 1;
  std::int64_t most_keys = 1;  // of a block
};

// Calls per_run(first_key, last_key, kv_head, ahead) with the rows of that head in `run`, for all needed rows. `ahead`
// is this head's share of the next block. `next` holds rows of the next block.
template <class F>
void each_row_run(const RowReader& reader, const RowWalk& walk, RowRun& run, RowRun& next, const F& per_run) {
  const bool neighbors = reader.heads_are_neighbors();
  const std::int64_t last_key = walk.needed.last;
  for (std::int64_t block = walk.needed.first, end = block; block < last_key; block = end) {
    interruption_point();
    end = std::min(walk.origin + ((block - walk.origin) / walk.most_keys + 1) * walk.most_keys, last_key);
    const std::int64_t keys = std::min(walk.most_keys, last_key - end);  // of the next block
    reader.locate(walk.sequence, block, end, 0, run);
    reader.locate(walk.sequence, end, end + keys, 0, next);
    for (std::int64_t kv_head = 0; kv_head < walk.heads; ++kv_head) {
      if (kv_head > 0) reader.move_to_next_head(run);
      if (kv_head > 0 && !neighbors) reader.move_to_next_head(next);
      // In the order of addresses: memory delivers neighbors sooner than rows of one head, which are apart.
      const std::int64_t first = neighbors ? keys * kv_head / walk.heads : 0;
      const std::int64_t last = neighbors ? keys * (kv_head + 1) / walk.heads : keys;
      per_run(block, end, kv_head,
              Ahead{next.elements.data() + first, last - first, neighbors ? reader.token_bytes() : reader.row_bytes()});
    }
  }
}

// Keys of a block whose heads are about `bytes` together: 8 to `most`, a power of two, so that larger blocks are a
// number of them. `most` if the heads of a token are not neighbors. Example: 21 heads of 256 bytes, 128 KiB: 16 keys.
inline std::int64_t keys_of_all_heads(const RowReader& reader, std::int64_t bytes, std::int64_t most) {
  constexpr std::int64_t kFewest = 8;
  if (!reader.heads_are_neighbors()) return most;
  const auto keys = static_cast<std::uint64_t>(bytes / reader.token_bytes());
  return std::clamp(static_cast<std::int64_t>(std::bit_floor(keys)), kFewest, most);
}

}  // namespace kvscope::attention
