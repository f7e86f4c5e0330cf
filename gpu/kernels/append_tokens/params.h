// Parameters of append_tokens: the new K and V of a step, to be written into the cache.
//
//   offsets        0 3 3 5        sequence 0 has new tokens 0 1 2, sequence 1 none, sequence 2 tokens 3 4
//   cache_lengths  9 4 0          token 1 of sequence 0 becomes its token 10
//
// Preconditions (caller): 16-byte alignment of `keys`, `values`, the pools and their strides; head_size and granularity
// in whole chunks of append_tokens/config.h, granules within its limit; less than 2^31 chunks a sequence; finite values
// if they are quantized (an infinity or NaN makes its granule NaN).
// Not an error: a token whose table entry is not a block of the pool, or whose page is past the table's row. Its K, V
// and scales are dropped and counted. The null page is a block of the pool: tokens assigned to it are written.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"

namespace kvscope::gpu {

struct AppendTokensParams {
  PagedCache key, value;
  const void* keys = nullptr;                    // [tokens, heads, head_size] of the entry's input type
  const void* values = nullptr;                  // [tokens, heads, head_size]
  const float* key_scales = nullptr;             // e4m3 in, e4m3 out: [tokens, heads, granules]; otherwise not read
  const float* value_scales = nullptr;           //
  const std::uint32_t* offsets = nullptr;        // [sequences + 1]
  const std::uint32_t* cache_lengths = nullptr;  // [sequences] tokens before this step
  std::uint32_t* drops = nullptr;  // [2] tokens of K, and of V, that were dropped: added to. Null: not counted
  std::int64_t key_stride = 0;     // [elements] from token to token; heads * head_size when packed
  std::int64_t value_stride = 0;   // [elements]
};

}  // namespace kvscope::gpu
