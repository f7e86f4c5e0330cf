#include "core/staging/lds/lds_staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/staging/lane_registers.h"
#include "core/staging/lds/kv_cache_iterator.h"
#include "core/staging/lds/lds_layout.h"

namespace kvscope {
namespace {

constexpr std::int64_t kRegisterWidth = 4;

// Every register element of one strip, in the order of a lane's register tile.
template <class Visit>
void for_each_slot(const KVBufferConstants& c, const Visit& visit) {
  for (std::int64_t k = 0; k < c.num_k_mmas2; ++k) {
    for (std::int64_t i = 0; i < c.num_mmas; ++i) {
      for (std::int64_t e = 0; e < c.input_frag_size; ++e) visit(k, i, e);
    }
  }
}

}  // namespace

LdsStaging::LdsStaging(const KVBufferParams& params, const StepCache& cache, const StagedTile& tile) : config_(params) {
  const KVBufferConstants& c = config_.constants();
  const KVCacheWalk walk{.tile_size = c.BN,
                         .kv_num_heads = params.kv_num_heads,
                         .depth = c.depth,
                         .cache_depth = c.cache_depth,
                         .head_dim_offset = params.head_dim_offset};
  KVCacheIterator iterator(cache, walk, TokIdx{tile.tokens}, tile.batch_row, tile.head);
  iterator.set_tile_start_row(tile.first_token);
  const AnyView<2> view = iterator.tile();
  if (registers() > kLaneRegisters) {
    throw GeometryError(fmt::format("{} strip{} take{} {} registers, and a lane has {}: use a smaller {}",
                                    c.register_strips, c.register_strips > 1 ? "s" : "",
                                    c.register_strips > 1 ? "" : "s", registers(), kLaneRegisters,
                                    c.register_strips > 1 ? "reg_chunk_depth"
                                    : params.transpose    ? "WN"
                                                          : "BK"));
  }
  if (!params.full_kv && !params.transpose && steps() > 1) {
    throw UnsupportedError(
        "V without full_kv is read block by block for all keys, which do not fit in registers "
        "together: use a smaller BN, or full_kv");
  }
  valid_rows_ = view.extents[0];
  row_stride_ = params.kv_num_heads * c.cache_depth;
  origin_ = view.data;
}

std::int64_t LdsStaging::lds_byte(KeyIdx key, DimIdx depth) const {
  const std::int64_t block = block_of(depth);
  const DimIdx of_block{depth.value - block * config_.constants().BK};
  return LdsLayout(config_).byte(stage_of(block), key, of_block);
}

LdsCopyPlace LdsStaging::copy_of(KeyIdx key, DimIdx depth) const {
  const KVBufferConstants& c = config_.constants();
  const std::int64_t byte = lds_byte(key, depth);
  const DramTile tile{valid_rows_, row_stride_, c.depth};
  for (WaveIdx wave{0}; wave.value < c.waves; ++wave) {
    const std::vector<CopyInstruction> instructions = copies(wave, block_of(depth), tile);
    for (std::size_t n = 0; n < instructions.size(); ++n) {
      for (int lane = 0; lane < kWaveLanes; ++lane) {
        const CopyVector& vector = instructions[n].lanes[static_cast<std::size_t>(lane)];
        if (byte < vector.lds_byte || byte >= vector.lds_byte + kLdsVectorBytes) continue;
        return {wave, static_cast<std::int64_t>(n), lane, vector.dram_byte, vector.zero};
      }
    }
  }
  KVSCOPE_ASSERT(false);  // the copies cover the stage: held by tests/core/staging/lds/dram_to_lds_test.cpp
}

std::vector<CopyInstruction> LdsStaging::copies(WaveIdx wave, std::int64_t block, const DramTile& tile) const {
  if (config_.params().full_kv) return copy_instructions(config_, wave, StageIdx{0}, tile);
  return copy_block_instructions(config_, wave, stage_of(block), block, tile);
}

std::vector<RegisterPlace> LdsStaging::registers_of(KeyIdx key, DimIdx depth) const {
  const KVBufferConstants& c = config_.constants();
  check_index("key", key.value, c.BN, "rows of the tile");
  check_index("depth", depth.value, c.depth, "columns of the tile");
  // Waves whose numbers differ by BN / WN hold the same keys of K; every wave holds V.
  const bool is_k = config_.params().transpose;
  const std::int64_t parts = is_k ? c.BN / c.WN : 1, part = is_k ? key.value / c.WN : 0;
  const StripIdx strip{(is_k ? depth.value : key.value) / c.BK};
  std::vector<RegisterPlace> places;
  for_each_slot(c, [&](std::int64_t k, std::int64_t i, std::int64_t e) {
    for (int lane = 0; lane < kWaveLanes; ++lane) {
      if (register_element(config_, WaveIdx{part}, {strip, k, i, lane, e}) != TileElement{key, depth}) continue;
      const std::int64_t byte = (register_row(c, strip, k, i) * c.input_frag_size + e) * c.element_bytes;
      for (std::int64_t wave = part; wave < c.waves; wave += parts) {
        places.push_back({WaveIdx{wave}, lane, byte / kRegisterWidth, static_cast<int>(byte % kRegisterWidth) * 8,
                          strip.value / c.register_strips});
      }
    }
  });
  return places;
}

TileElement LdsStaging::element_at_byte(std::int64_t lds_byte, std::int64_t block) const {
  const KVBufferConstants& c = config_.constants();
  check_index("k-step", block, blocks(), "blocks that are staged one after the other");
  const std::int64_t first = stage_of(block).value * c.stage_bytes;
  if (first == 0) {
    check_index("LDS byte", lds_byte, c.stage_bytes, "bytes of a stage");
  } else if (lds_byte < first || lds_byte >= first + c.stage_bytes) {
    throw IndexError(fmt::format("LDS byte {} is outside [{}, {}): bytes of stage {}, which holds block {}", lds_byte,
                                 first, first + c.stage_bytes, stage_of(block).value, block));
  }
  const LdsPlace place = LdsLayout(config_).place_of(lds_byte);
  return {place.key, DimIdx{block * c.BK + place.depth.value}};
}

std::int64_t LdsStaging::steps() const {
  return ceil_div(config_.constants().num_k_tiles, config_.constants().register_strips);
}

std::int64_t LdsStaging::blocks() const {
  return config_.params().full_kv ? 1 : config_.constants().depth_blocks;
}

std::int64_t LdsStaging::block_of(DimIdx depth) const {
  return config_.params().full_kv ? 0 : depth.value / config_.constants().BK;
}

StageIdx LdsStaging::stage_of(std::int64_t block) const {
  return StageIdx{block % config_.constants().num_smem_stages};
}

std::int64_t LdsStaging::registers() const {
  const KVBufferConstants& c = config_.constants();
  return c.mma_rows * c.mma_cols * c.element_bytes / kRegisterWidth;
}

std::vector<TileElement> LdsStaging::elements_at(WaveIdx wave, int lane, std::int64_t index, std::int64_t step) const {
  const KVBufferConstants& c = config_.constants();
  check_index("wave", wave.value, c.waves, "waves of the block");
  check_index("lane", lane, kWaveLanes, "lanes of a wave");
  check_index("register", index, registers(), "32-bit registers of the operand's register tile");
  check_index("k-step", step, steps(), "loads of the register tile");
  std::vector<TileElement> elements;
  const std::int64_t end = std::min((step + 1) * c.register_strips, c.num_k_tiles);
  for (StripIdx strip{step * c.register_strips}; strip.value < end; ++strip) {
    for_each_slot(c, [&](std::int64_t k, std::int64_t i, std::int64_t e) {
      const std::int64_t byte = (register_row(c, strip, k, i) * c.input_frag_size + e) * c.element_bytes;
      if (byte / kRegisterWidth != index) return;
      if (const auto element = register_element(config_, wave, {strip, k, i, lane, e})) elements.push_back(*element);
    });
  }
  return elements;
}

}  // namespace kvscope
