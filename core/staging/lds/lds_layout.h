// The offset of each element of a tile in LDS. Offsets count from the first byte of the buffer's region.
//
//   stage 0                              stage 1                       a stage: blocks_per_stage blocks
//   +---------+---------+-...-+--------+ +---------+-...               a block: BN x bk_smem, row-major
//   | block 0 | block 1 |     |        | | block 0 |
//   +---------+---------+-...-+--------+ +---------+-...
//
//   L(stage, key, depth) = ((stage * blocks_per_stage + depth / bk_smem) * BN + key) * bk_smem + depth % bk_smem
//   P                    = the vector index L / SW swizzled; the offset inside the vector is unchanged
//
// The XOR is applied to the region's vector index. Kernels apply it inside a 32-row sub-tile (writer) or an M-row one
// (reader). The rule `swizzle_closure` makes every base a multiple of the period, so all three give the same result.
// Example: BN 64, bk_smem 32, depth 128, bf16, (3,0,4): stage 1, key 20, depth 77 -> L 12941, byte 25930.
#pragma once

#include <cstdint>

#include "core/base/index.h"
#include "core/staging/lds/kv_buffer_config.h"
#include "core/staging/lds/lds_index.h"

namespace kvscope {

struct LdsPlace {
  StageIdx stage;
  KeyIdx key;
  DimIdx depth;
  friend bool operator==(const LdsPlace&, const LdsPlace&) = default;
};

// smem_block_tile: a plain row-major view of rows of one block.
struct LdsBlockTile {
  std::int64_t offset = 0;  // [elements] from the region's first
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_stride = 0;  // [elements]
  friend bool operator==(const LdsBlockTile&, const LdsBlockTile&) = default;
};

class LdsLayout {
 public:
  explicit LdsLayout(const KVBufferConfig& config) : config_(&config) {}  // `config` must outlive the layout

  // [elements], before and after the swizzle. IndexError outside the region; `depth` ends at smem_cols.
  [[nodiscard]] std::int64_t logical(StageIdx stage, KeyIdx key, DimIdx depth) const;
  [[nodiscard]] std::int64_t physical(StageIdx stage, KeyIdx key, DimIdx depth) const;
  [[nodiscard]] std::int64_t byte(StageIdx stage, KeyIdx key, DimIdx depth) const;  // physical * element_bytes
  // The element that a byte belongs to; IndexError outside the region.
  [[nodiscard]] LdsPlace place_of(std::int64_t byte) const;

  // Rows tile_row * rows .. of block column `block_col`, counted over all stages. IndexError outside the view.
  // Example: BN 64, bk_smem 32, 4 blocks a stage: smem_block_tile(32, 1, 6) begins at 13312: stage 1, block 2, key 32.
  [[nodiscard]] LdsBlockTile smem_block_tile(std::int64_t rows, std::int64_t tile_row, std::int64_t block_col) const;

  // [elements] from the stage's first to V's sub-tile of strip `bk`, MMA_K step `k`, MMA column `i`; rows are bk_smem
  // elements apart. Example: BN 64, BK 32, 32x32x16: (1, 1, 3) -> 7680, key 48, depth 96.
  [[nodiscard]] std::int64_t v_sub_tile(StripIdx bk, std::int64_t k, std::int64_t i) const;

  // [elements] by which a per-wave V is shifted: the wave's first column of the whole V, as an offset in its image.
  // Example: depth 16, bk_smem 32, BN 128, 4 slices: waves 0 to 3: 0, 16, 4096, 4112.
  [[nodiscard]] std::int64_t slice_offset(WaveIdx wave) const;

 private:
  const KVBufferConfig* config_;
};

}  // namespace kvscope
