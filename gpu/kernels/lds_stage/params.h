// Tiles of K or V by cp.async into two stages in turn, and what registers are made of them. One block a sequence.
//
//   step   a tile of BN keys; where a stage holds one block of columns: a block of a tile
//
// Of the outputs any may be null: what is not asked for is not done.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"

namespace kvscope::gpu {

// One copy of 16 bytes, as its thread has asked for it.
struct alignas(16) CopyRecord {
  std::int32_t lds_byte;   // of the region
  std::int32_t dram_byte;  // from the tile's first
  std::int32_t valid;      // 0: zeros are written
  std::int32_t order;      // of the thread's copies of the step
};

struct LdsStageParams {
  PagedCache cache;                        // pages are whole tiles
  const std::uint32_t* lengths = nullptr;  // [sequences] keys that count; zeros stand for those behind them
  std::int32_t head = 0;
  std::int32_t first_column = 0;                                       // of the head
  std::int32_t tiles = 0;                                              // of a sequence, from its first token on
  std::int32_t swizzle_bits = 0, swizzle_base = 0, swizzle_shift = 0;  // of 16-byte vectors; 0 bits: none
  unsigned char* image = nullptr;                                      // [sequences, both stages] after the last tile
  unsigned char* registers = nullptr;  // [sequences, tiles, waves, 64 lanes, rows, elements of a fragment]
  void* fragments = nullptr;           // [sequences, steps, pieces, 32 lanes, 16 bytes]
  CopyRecord* trace = nullptr;         // [sequences, steps, copies of a thread, threads]
};

}  // namespace kvscope::gpu
