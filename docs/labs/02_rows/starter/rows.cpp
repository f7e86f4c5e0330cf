#include "rows.h"

std::uint32_t row_idx(const PagedCache& cache, std::int64_t sequence, std::int64_t token) {
  // Write this function: page, block, rows of a block, slot.
  return 0;
}

void populate(const PagedCache& cache, std::int64_t sequence, std::int64_t base, std::int64_t tile,
              std::uint32_t* rows) {
  // Write this function.
}
