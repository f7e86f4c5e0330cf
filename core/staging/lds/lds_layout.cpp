#include "core/staging/lds/lds_layout.h"

#include "core/base/errors.h"
#include "core/staging/lds/lds_swizzle.h"

namespace kvscope {

std::int64_t LdsLayout::logical(StageIdx stage, KeyIdx key, DimIdx depth) const {
  const KVBufferConstants& c = config_->constants();
  check_index("LDS stage", stage.value, c.num_smem_stages, "num_smem_stages of the buffer");
  check_index("LDS key", key.value, c.BN, "BN keys of a tile");
  check_index("LDS depth", depth.value, c.smem_cols, "smem_cols of a stage");
  const std::int64_t block = stage.value * c.blocks_per_stage + depth.value / c.bk_smem;
  return (block * c.BN + key.value) * c.bk_smem + depth.value % c.bk_smem;
}

std::int64_t LdsLayout::physical(StageIdx stage, KeyIdx key, DimIdx depth) const {
  const std::int64_t SW = config_->constants().simd_width;
  const std::int64_t x = logical(stage, key, depth);
  return swizzled_vector(config_->params().swizzle, x / SW) * SW + x % SW;
}

std::int64_t LdsLayout::byte(StageIdx stage, KeyIdx key, DimIdx depth) const {
  return physical(stage, key, depth) * config_->constants().element_bytes;
}

LdsPlace LdsLayout::place_of(std::int64_t byte) const {
  const KVBufferConstants& c = config_->constants();
  check_index("LDS byte", byte, c.region_bytes, "bytes of the buffer's stages");
  // The swizzle is its own inverse.
  const std::int64_t x = swizzled_byte(config_->params().swizzle, byte) / c.element_bytes;
  const std::int64_t row = x / c.bk_smem;  // of all blocks, one below the other
  const std::int64_t block = row / c.BN;
  return {StageIdx{block / c.blocks_per_stage}, KeyIdx{row % c.BN},
          DimIdx{block % c.blocks_per_stage * c.bk_smem + x % c.bk_smem}};
}

LdsBlockTile LdsLayout::smem_block_tile(std::int64_t rows, std::int64_t tile_row, std::int64_t block_col) const {
  const KVBufferConstants& c = config_->constants();
  check_index("rows of an LDS block tile, less one,", rows - 1, c.BN, "1 to BN of them");
  check_index("LDS tile row", tile_row, c.BN / rows, "BN / rows tiles of a block");
  check_index("LDS block column", block_col, c.num_smem_stages * c.blocks_per_stage, "blocks of every stage");
  return {.offset = tile_row * rows * c.bk_smem + block_col * c.BN * c.bk_smem,
          .rows = rows,
          .cols = c.bk_smem,
          .row_stride = c.bk_smem};
}

std::int64_t LdsLayout::v_sub_tile(StripIdx bk, std::int64_t k, std::int64_t i) const {
  const KVBufferConstants& c = config_->constants();
  check_index("V strip", bk.value, c.num_k_tiles, "num_k_tiles of the buffer");
  check_index("V MMA_K step", k, c.num_k_mmas2, "num_k_mmas2 of a strip");
  check_index("V MMA column", i, c.num_mmas, "num_mmas along the depth");
  const std::int64_t per_block = c.bk_smem / c.MMA_M;  // MMA columns side by side
  return bk.value * c.BK * c.bk_smem + k * c.MMA_K * c.bk_smem + i / per_block * c.BN * c.bk_smem +
         i % per_block * c.MMA_M;
}

std::int64_t LdsLayout::slice_offset(WaveIdx wave) const {
  const KVBufferConstants& c = config_->constants();
  check_index("wave", wave.value, c.waves, "num_threads / 64 of the buffer");
  const std::int64_t slices = config_->params().depth_slices;
  if (slices == 1) return 0;
  const std::int64_t c0 = wave.value % slices * c.depth;
  return c0 / c.bk_smem * c.BN * c.bk_smem + c0 % c.bk_smem;
}

}  // namespace kvscope
