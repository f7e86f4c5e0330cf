#include "rows.h"

std::uint32_t row_idx(const PagedCache& cache, std::int64_t sequence, std::int64_t token) {
  const std::int64_t page = token / cache.page_size;
  const std::int64_t slot = token % cache.page_size;
  const std::int64_t block = cache.table[sequence * cache.columns + page];
  const std::int64_t rows_per_block = cache.k_or_v * cache.layers * cache.page_size;
  return static_cast<std::uint32_t>(block * rows_per_block + slot);
}

void populate(const PagedCache& cache, std::int64_t sequence, std::int64_t base, std::int64_t tile,
              std::uint32_t* rows) {
  rows[0] = row_idx(cache, sequence, base);
  for (std::int64_t part = 1; part * cache.page_size < tile; ++part) {
    rows[part] = row_idx(cache, sequence, base + part * cache.page_size);
  }
}
