// The lookup table that the kernels of a step read: its rows, and the number of its columns with padding. Entries past
// a sequence's pages hold the number of the null page, facts.blocks.
//
// Example: 5 running sequences, the longest with 5 pages: 5 rows of 24 columns; 9 pages: 32 columns.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/playback/state.h"

namespace kvscope::viz {

struct KernelTable {
  std::vector<SeqIdx> rows;  // ascending; waiting and preempted sequences have none: no kernel is launched for them
  std::int64_t pages = 0;    // of the longest row
  std::int64_t columns = 1;  // at most widest_table()
};

// A continuous cache has one column. A trace without a scenario does not tell how its table is padded: the columns are
// those of the run's longest sequence. A trace of detail `steps` has no rows.
[[nodiscard]] KernelTable kernel_table(const State& state, const Facts& facts);
[[nodiscard]] std::int64_t widest_table(const Facts& facts);  // columns of the widest table of the run
[[nodiscard]] bool is_padded(const Facts& facts);             // whether the columns are those of a kernel's table

}  // namespace kvscope::viz
