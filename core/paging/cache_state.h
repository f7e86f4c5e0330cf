// The input of a step's kernels on the host: the sequences in the batch, their lengths, and the blocks of their pages.
// The paging engine fills it; the cache collections are built over it. It holds no pointers.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/index.h"

namespace kvscope {

struct CacheState {
  StepIdx step;
  std::int64_t page_size = 0;  // [tokens]; 0: continuous cache, one block a sequence
  std::int64_t blocks = 0;     // N: real blocks; the null page is block N, and every unused table entry holds N

  std::vector<SeqIdx> batch;                 // [batch] the sequence of row b
  std::vector<std::uint32_t> cache_lengths;  // [batch] tokens cached before this step's forward pass
  std::vector<std::uint32_t> new_tokens;     // [batch] tokens this step computes: positions cache_length + i
  std::vector<std::uint32_t> lookup_table;   // [batch, table_columns] row-major; continuous: [batch, 1]
  std::int64_t table_columns = 0;            // padded_lut_cols(pages of the longest); the table's row stride

  std::uint32_t max_seq_length = 0;    // max over the batch of new tokens
  std::uint32_t max_cache_length = 0;  // max over the batch of cached + new

  friend bool operator==(const CacheState&, const CacheState&) = default;
};

}  // namespace kvscope
