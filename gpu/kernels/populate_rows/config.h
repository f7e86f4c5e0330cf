// Compile-time constants of populate_rows, and the choice of its entry for a tile.
#pragma once

#include <cstdint>

namespace kvscope::gpu::populate_rows {

inline constexpr int kThreads = 64;

// Table entries per read: the largest of 8, 4, 2, 1 that divides the tile's pages, so that reads do not overlap, and
// the pages of the promise, so that every base is a whole number of reads from the row's beginning. 0: the promise is
// less than a page. Examples: 12 pages of 16 tokens with a promise of 64: 4. 4 pages with a promise of 48: 1. 16
// pages, 256: 8.
constexpr int read_width(std::int64_t pages, std::int64_t promise, std::int64_t page_size) {
  const std::int64_t promised = promise / page_size;
  if (promised == 0) return 0;
  int width = 8;
  while (pages % width != 0 || promised % width != 0) width /= 2;
  return width;
}

}  // namespace kvscope::gpu::populate_rows
