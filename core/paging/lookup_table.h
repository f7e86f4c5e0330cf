// The lookup table of one step, as its kernels read it: [batch, padded_lut_cols(pages of the longest)]. Every entry is
// first set to the null page N; then row b holds its block numbers from column 0 on.
//
// Why exactly N: a kernel multiplies every entry it reads, padding included, by the page stride. N gives the null page,
// which the pool allocates after its N real blocks; a larger number gives an address outside the pool.
//
// Example: N = 8, page 128, one row of 1 token in block 5 -> columns 24: {5, 8, 8, 8, ... 8}.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/layout/table_columns.h"

namespace kvscope {

struct LutRow {
  std::span<const std::uint32_t> blocks;  // [pages] block of each page; entries past `tokens` are allowed, not copied
  std::int64_t tokens = 0;                // [tokens] cached and new
  bool dummy = false;                     // a padding row of the batch: the null page in every column, `blocks` unused
};

struct LutLimits {
  std::int64_t blocks = 0;     // N
  std::int64_t page_size = 0;  // [tokens]
  std::int64_t max_batch = 0;  // rows that the table's storage has
};

struct Lut {
  std::vector<std::uint32_t> entries;  // [batch, columns]
  std::int64_t columns = 0;            // changes from step to step: the storage is reshaped, not reallocated
};

// `max_cache_length` [tokens]: when given, the table has at least the columns for it.
// Throws GeometryError with every fault: batch > max_batch; more pages than N; a row with fewer pages than it needs; a
// row with a block outside [0, N); max_cache_length < 1 or less than the longest row.
[[nodiscard]] Lut build_lookup_table(std::span<const LutRow> rows, const LutLimits& limits,
                                     std::optional<std::int64_t> max_cache_length = std::nullopt);

}  // namespace kvscope
