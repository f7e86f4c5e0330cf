// Parameters of tma_tile_load. One block stages one tile of one sequence, or its half of a tile that two blocks share,
// and writes the window of shared memory to global memory.
//
//   grid   [blocks per tile (1 or 2), tiles per sequence, sequences]     tile t: tokens t * BN .. of the sequence
//   shared window_bytes of kTileLoadPoison, the tile from byte tile_at on, and after the window the barrier
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"
#include "gpu/kernels/common/tensor_map_slot.h"

namespace kvscope::gpu {

// The treatment of pages of a tile that are past the sequence's end.
enum class PastEnd : std::int32_t {
  copy = 0,  // the block in the table is copied, whatever it is
  skip = 1,  // nothing is copied: their rows keep the poison
  fill = 2,  // a row outside the map is copied: zeros, and counted
};

struct TmaTileLoadParams {
  TensorMapSlot map;
  PagedCache cache;                        // of one layer's K or V; its scales are not used
  const std::uint32_t* lengths = nullptr;  // [sequences] tokens in the cache
  unsigned char* windows = nullptr;        // [sequences, tiles, blocks a tile, window_bytes]
  std::int32_t window_bytes = 0;           // a multiple of 16
  std::int32_t tile_at = 0;                // [bytes] a multiple of the swizzle's period
  std::int32_t is_value = 0;               // 0: K, whose tile two blocks may share; 1: V, which may be loaded in parts
  std::int32_t head = 0;
  std::int32_t depth = 0;          // first column, whole chunks
  std::int32_t BN = 0;             // [rows] of a tile
  std::int32_t smem_rows = 0;      // K: rows between chunks in shared memory
  std::int32_t parts = 1;          // V: a tile is loaded in parts of BN / parts rows
  std::int32_t part = 0;           // V: the index of the part
  std::int32_t chunks = 0;         // of columns, adjacent in a tile
  std::int32_t chunk_columns = 0;  // that fill one swizzle row
  std::int32_t chunk_bytes = 0;    // 16 without a swizzle, else 32, 64 or 128
  PastEnd past_end = PastEnd::copy;
  std::int32_t box_rows = 0;  // matrix: rows of a box, BN or, for an MN-major tile, 8
};

}  // namespace kvscope::gpu
