// Parameters of populate_rows: the tiles whose rows are computed, and the output.
//
//   rows[tile * sub_tiles + i] = table[sequence][base / page_size + i] * rows of a block + base % page_size
//
// in 32 bits that wrap; the last term only if a tile is inside one page.
// Preconditions (caller): the entry's width is that of config.h for the promise that every base meets; table rows are
// padded to whole reads, also the last row; a base is at the beginning of a page if the tile has several pages.
// Not an error: entries past a sequence's pages, which give rows of the null page.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"

namespace kvscope::gpu {

struct PopulateRowsParams {
  PagedCache cache;
  const std::uint32_t* sequences = nullptr;  // [tiles]
  const std::uint32_t* bases = nullptr;      // [tiles] first token
  std::uint32_t* rows = nullptr;             // [tiles, sub_tiles]
  std::int32_t tiles = 0;
  std::int32_t sub_tiles = 0;  // per tile: its pages, or 1 if it is inside one page
};

}  // namespace kvscope::gpu
