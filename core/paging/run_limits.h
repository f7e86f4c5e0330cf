// The limits of a run of the paging engine, so that a scenario of a few bytes cannot fill the host's memory.
#pragma once

#include <cstdint>

namespace kvscope {

struct RunLimits {
  // A report keeps 104 bytes for each step, and about 600 more while it becomes JSON. --max-steps of `kvscope run`.
  std::int64_t steps = 2'000'000;
  // Blocks that hold a token at least once, about 60 bytes each in the pool, the lists and the prefix index.
  std::int64_t blocks = std::int64_t{1} << 24;
};

}  // namespace kvscope
