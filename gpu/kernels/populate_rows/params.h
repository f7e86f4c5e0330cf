// Tiles whose rows are wanted, and where they go.
//
//   rows[tile * sub_tiles + i] = table[sequence][base / page_size + i] * rows of a block + base % page_size
//
// in 32 bits that wrap; the last term only where a tile lies inside one page.
// Who owes what. Caller: the entry's width as config.h gives it for the promise that every base keeps; table rows of
// whole reads that reach past the last one's end; a base on a page's beginning where the tile has several pages.
// No error: entries past a sequence's pages, which give rows of the null page.
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
  std::int32_t sub_tiles = 0;  // of a tile: its pages, 1 when it lies inside one
};

}  // namespace kvscope::gpu
