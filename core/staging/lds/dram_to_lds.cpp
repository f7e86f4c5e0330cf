#include "core/staging/lds/dram_to_lds.h"

#include "core/base/errors.h"
#include "core/staging/lds/lds_swizzle.h"

namespace kvscope {

namespace {

struct SubTile {
  std::int64_t t = 0;
  std::int64_t row_group = 0;
  std::int64_t block = 0;  // of the stage
};

std::vector<SubTile> sub_tiles_of(const KVBufferConfig& config, WaveIdx wave) {
  const KVBufferConstants& c = config.constants();
  check_index("wave", wave.value, c.waves, "num_threads / 64 of the buffer");
  std::vector<SubTile> mine;
  if (config.params().depth_slices > 1) return mine;
  if (config.params().full_kv && c.smem_depth == 64 && c.BN <= 64 && c.blocks_per_stage >= 2) {
    mine.push_back({0, wave.value / 2, wave.value % 2});
    return mine;
  }
  for (std::int64_t t = 0; t < c.tiles_per_wave; ++t) {
    const std::int64_t n = t * c.waves + wave.value;
    if (n < c.sub_tiles) mine.push_back({t, n / c.blocks_per_stage, n % c.blocks_per_stage});
  }
  return mine;
}

// `first_column` of the tile is column 0 of the stage.
std::vector<CopyInstruction> instructions(const KVBufferConfig& config, WaveIdx wave, StageIdx stage,
                                          std::int64_t first_column, const DramTile& tile) {
  const KVBufferConstants& c = config.constants();
  check_index("LDS stage", stage.value, c.num_smem_stages, "num_smem_stages of the buffer");
  const std::int64_t row_vectors = kWaveLanes / c.copy_rows;  // of the lane grid: 4 or 8
  const std::int64_t end = num_records_bytes(tile, c.element_bytes);
  std::vector<CopyInstruction> list;
  for (const SubTile& sub : sub_tiles_of(config, wave)) {
    for (std::int64_t m = 0; m < c.copies_per_sub_tile; ++m) {
      CopyInstruction copy{
          .wave = wave, .t = sub.t, .m = m, .row_group = sub.row_group, .block = sub.block, .lanes = {}};
      const std::int64_t first_key = c.warp_tile_rows * sub.row_group + m * c.copy_rows;
      const std::int64_t block = stage.value * c.blocks_per_stage + sub.block;
      const std::int64_t base = (block * c.BN + first_key) * c.row_bytes();
      for (std::int64_t lane = 0; lane < kWaveLanes; ++lane) {
        const std::int64_t q = swizzled_vector(config.params().swizzle, lane + kWaveLanes * m) % kWaveLanes;
        const std::int64_t key = first_key + q / row_vectors;
        const std::int64_t depth = first_column + sub.block * c.bk_smem + q % row_vectors * c.simd_width;
        const std::int64_t dram = (key * tile.row_stride + depth) * c.element_bytes;
        copy.lanes[static_cast<std::size_t>(lane)] = {.lds_byte = base + kLdsVectorBytes * lane,
                                                      .key = KeyIdx{key},
                                                      .depth = DimIdx{depth},
                                                      .dram_byte = dram,
                                                      .zero = dram >= end};
      }
      list.push_back(copy);
    }
  }
  return list;
}

}  // namespace

std::int64_t num_records_bytes(const DramTile& tile, std::int64_t element_bytes) {
  if (tile.valid_rows <= 0) return 0;
  return ((tile.valid_rows - 1) * tile.row_stride + tile.depth) * element_bytes;
}

std::vector<CopyInstruction> copy_instructions(const KVBufferConfig& config, WaveIdx wave, StageIdx stage,
                                               const DramTile& tile) {
  return instructions(config, wave, stage, 0, tile);
}

std::vector<CopyInstruction> copy_block_instructions(const KVBufferConfig& config, WaveIdx wave, StageIdx stage,
                                                     std::int64_t block, const DramTile& tile) {
  if (config.params().full_kv) {
    throw GeometryError("copy of one block: with full_kv a stage holds them all: copy the tile");
  }
  check_index("block of the depth", block, config.constants().depth_blocks, "ceil(depth / BK) blocks");
  return instructions(config, wave, stage, block * config.constants().BK, tile);
}

std::int64_t copies_per_load(const KVBufferConfig& config, WaveIdx wave) {
  return static_cast<std::int64_t>(sub_tiles_of(config, wave).size()) * config.constants().copies_per_sub_tile;
}

}  // namespace kvscope
