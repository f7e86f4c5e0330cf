// The copy of a tile into a stage, wave by wave, instruction by instruction, lane by lane.
//
//   sub-tile  32 keys of one block; T of them, assigned to the waves in turn: n = t * waves + wave, row group n / CG,
//             block n % CG. smem_depth 64 with BN <= 64 and two blocks: one per wave, (wave / 2, wave % 2)
//   instruction m of a sub-tile: 64 lanes of 16 bytes
//      64-byte rows   16 keys x 4 vectors   2 instructions        128-byte rows   8 keys x 8 vectors   4 instructions
//
// LDS receives lane l's 16 bytes at 16 * l from a base common to the wave: the write cannot be permuted. Instead each
// lane fetches another vector: lane l of instruction m fetches logical vector S(l + 64 m), and vector v lands at S(v).
//
// Rows past the tile's valid ones are out of the buffer descriptor's range: LDS receives zeros and does not keep its
// old contents. Columns past `depth` of a valid row are in range and bring the bytes that follow, except in the last
// row.
// Example: bf16, BN 64, BK 32, (3,0,4): wave 0, t 0, m 0, lane 17 writes byte 272 with key 4, depth 0..7.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/index.h"
#include "core/staging/lds/kv_buffer_config.h"
#include "core/staging/lds/lds_index.h"

namespace kvscope {

// The tile in memory as the copy sees it: a raw buffer that starts at the tile's first byte.
struct DramTile {
  std::int64_t valid_rows = 0;
  std::int64_t row_stride = 0;  // [elements] kv_num_heads * cache_depth
  std::int64_t depth = 0;       // [columns]
};
// Bytes from here on read as zero: ((valid_rows - 1) * row_stride + depth) * size, 0 without rows.
// Example: 50 rows of 256 bf16, depth 128 -> 25344.
[[nodiscard]] std::int64_t num_records_bytes(const DramTile& tile, std::int64_t element_bytes);

struct CopyVector {
  std::int64_t lds_byte = 0;   // from the region's first byte
  KeyIdx key;                  // of the tile
  DimIdx depth;                // first of SW columns
  std::int64_t dram_byte = 0;  // from the tile's first byte
  bool zero = false;           // out of range: LDS receives zeros
  friend bool operator==(const CopyVector&, const CopyVector&) = default;
};

struct CopyInstruction {
  WaveIdx wave;
  std::int64_t t = 0;          // which of the wave's sub-tiles
  std::int64_t m = 0;          // which instruction of the sub-tile
  std::int64_t row_group = 0;  // r: keys 32 r ..
  std::int64_t block = 0;      // c: of the stage
  std::array<CopyVector, 64> lanes{};
};

// The instructions of `wave` for one load_from_dram into `stage`, in order.
[[nodiscard]] std::vector<CopyInstruction> copy_instructions(const KVBufferConfig& config, WaveIdx wave, StageIdx stage,
                                                             const DramTile& tile);
// The same for block `block` of the tile when a stage holds one block (full_kv false): columns block * BK and on.
// IndexError for a block past the depth; GeometryError when full_kv.
[[nodiscard]] std::vector<CopyInstruction> copy_block_instructions(const KVBufferConfig& config, WaveIdx wave,
                                                                   StageIdx stage, std::int64_t block,
                                                                   const DramTile& tile);

// Instructions that the wave issues per load, the value of vm_instrs_per_load; 0 for a per-wave V, which never copies.
[[nodiscard]] std::int64_t copies_per_load(const KVBufferConfig& config, WaveIdx wave);

}  // namespace kvscope
