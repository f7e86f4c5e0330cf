// Tiles of selected tokens: each sequence has a list of encoded indices, block * page_size + slot, in any order,
// possibly repeated; -1 where there is no token.
//
//   grid   [tiles of a list, sequences]      tile t: entries t * tile_rows ..
//   shared window_bytes of kGatherPoison, the tile from byte tile_at on, and after the window the barrier
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"
#include "gpu/kernels/common/tensor_map_slot.h"

namespace kvscope::gpu {

struct Gather4TileLoadParams {
  TensorMapSlot map;
  PagedCache cache;                       // its table is not used: an index contains the block
  const std::int32_t* indices = nullptr;  // [sequences, index_stride]
  const std::int32_t* counts = nullptr;   // [sequences] entries of the list; later entries are never read
  unsigned char* windows = nullptr;       // [sequences, tiles, window_bytes]
  std::int32_t index_stride = 0;
  std::int32_t window_bytes = 0;  // a multiple of 16
  std::int32_t tile_at = 0;       // [bytes] a multiple of the swizzle's period
  std::int32_t tile_rows = 0;     // a multiple of 4
  std::int32_t groups = 0;        // of columns
  std::int32_t box_columns = 0;   // of a group [elements of the map]
  std::int32_t box_bytes = 0;     // of a row of a group
};

}  // namespace kvscope::gpu
