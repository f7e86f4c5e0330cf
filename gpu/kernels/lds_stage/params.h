// Parameters of lds_stage: tiles of K or V are copied by cp.async to two alternating stages. One CTA per sequence.
//
//   step   a tile of BN keys; if a stage holds one block of columns: a block of a tile
//
// Each output may be null; it is then not computed.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/paged_cache.h"

namespace kvscope::gpu {

// One copy of 16 bytes, as issued by its thread.
struct alignas(16) CopyRecord {
  std::int32_t lds_byte;   // in the region
  std::int32_t dram_byte;  // from the tile's first byte
  std::int32_t valid;      // 0: writes zeros
  std::int32_t order;      // index among the thread's copies of the step
};

struct LdsStageParams {
  PagedCache cache;                        // pages are whole tiles
  const std::uint32_t* lengths = nullptr;  // [sequences] valid keys; later ones are zeros
  std::int32_t head = 0;
  std::int32_t first_column = 0;                                       // in the head
  std::int32_t tiles = 0;                                              // per sequence, from its first token
  std::int32_t swizzle_bits = 0, swizzle_base = 0, swizzle_shift = 0;  // of 16-byte vectors; 0 bits: none
  unsigned char* image = nullptr;                                      // [sequences, both stages] after the last tile
  unsigned char* registers = nullptr;  // [sequences, tiles, waves, 64 lanes, rows, elements of a fragment]
  void* fragments = nullptr;           // [sequences, steps, pieces, 32 lanes, 16 bytes]
  CopyRecord* trace = nullptr;         // [sequences, steps, copies of a thread, threads]
};

}  // namespace kvscope::gpu
