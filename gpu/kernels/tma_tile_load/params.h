// Tiles of K or V by tensor copies. One block stages one tile of one sequence, or its half of a tile that two blocks
// share, and writes the window of shared memory out as it then is.
//
//   grid   [blocks a tile (1 or 2), tiles of a sequence, sequences]      tile t: tokens t * BN .. of the sequence
//   shared window_bytes of kTileLoadPoison, the tile from byte tile_at on, and behind the window the barrier
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"
#include "gpu/kernels/common/tensor_map_slot.h"

namespace kvscope::gpu {

// What happens to pages of a tile that lie past the sequence's end.
enum class PastEnd : std::int32_t {
  copy = 0,  // whatever the table names is copied
  skip = 1,  // nothing: their rows keep what stood there
  fill = 2,  // a row that no map has is copied: zeros, and counted
};

struct TmaTileLoadParams {
  TensorMapSlot map;
  PagedCache cache;                        // of one layer's K or V; its scales are not looked at
  const std::uint32_t* lengths = nullptr;  // [sequences] tokens in the cache
  unsigned char* windows = nullptr;        // [sequences, tiles, blocks a tile, window_bytes]
  std::int32_t window_bytes = 0;           // a multiple of 16
  std::int32_t tile_at = 0;                // [bytes] a multiple of the swizzle's period
  std::int32_t is_value = 0;               // 0: K, whose tile two blocks may share; 1: V, which may come in parts
  std::int32_t head = 0;
  std::int32_t depth = 0;          // first column, whole chunks
  std::int32_t BN = 0;             // [rows] of a tile
  std::int32_t smem_rows = 0;      // K: rows from chunk to chunk in shared memory
  std::int32_t parts = 1;          // V: a tile comes in parts of BN / parts rows
  std::int32_t part = 0;           //    which
  std::int32_t chunks = 0;         // of columns, side by side in a tile
  std::int32_t chunk_columns = 0;  // that fill one swizzle row
  std::int32_t chunk_bytes = 0;    // 16 without a swizzle, else 32, 64 or 128
  PastEnd past_end = PastEnd::copy;
  std::int32_t box_rows = 0;  // matrix: rows of a box, BN or, of an MN-major tile, 8
};

}  // namespace kvscope::gpu
