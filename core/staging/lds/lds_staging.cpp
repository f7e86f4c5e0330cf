#include "core/staging/lds/lds_staging.h"

#include <algorithm>
#include <optional>

#include "core/base/errors.h"
#include "core/staging/lds/dram_to_lds.h"
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
  valid_rows_ = view.extents[0];
  row_stride_ = params.kv_num_heads * c.cache_depth;
  origin_ = view.data;
}

std::int64_t LdsStaging::lds_byte(KeyIdx key, DimIdx depth) const {
  return LdsLayout(config_).byte(StageIdx{0}, key, depth);
}

LdsCopyPlace LdsStaging::copy_of(KeyIdx key, DimIdx depth) const {
  const KVBufferConstants& c = config_.constants();
  const std::int64_t byte = lds_byte(key, depth);
  const DramTile tile{valid_rows_, row_stride_, c.depth};
  for (WaveIdx wave{0}; wave.value < c.waves; ++wave) {
    const std::vector<CopyInstruction> instructions = copy_instructions(config_, wave, StageIdx{0}, tile);
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

std::vector<RegisterPlace> LdsStaging::registers_of(KeyIdx key, DimIdx depth) const {
  const KVBufferConstants& c = config_.constants();
  check_index("key", key.value, c.BN, "rows of the tile");
  check_index("depth", depth.value, c.depth, "columns of the tile");
  // A wave of K holds its own keys, and so do all waves a whole tile further; V is in every wave.
  const bool is_k = config_.params().transpose;
  const std::int64_t parts = is_k ? c.BN / c.WN : 1, part = is_k ? key.value / c.WN : 0;
  const StripIdx strip{(is_k ? depth.value : key.value) / c.BK};
  std::vector<RegisterPlace> places;
  for_each_slot(c, [&](std::int64_t k, std::int64_t i, std::int64_t e) {
    for (int lane = 0; lane < kWaveLanes; ++lane) {
      if (register_element(config_, WaveIdx{part}, {strip, k, i, lane, e}) != TileElement{key, depth}) continue;
      const std::int64_t byte = (register_row(c, strip, k, i) * c.input_frag_size + e) * c.element_bytes;
      for (std::int64_t wave = part; wave < c.waves; wave += parts) {
        places.push_back({WaveIdx{wave}, lane, byte / kRegisterWidth, static_cast<int>(byte % kRegisterWidth) * 8});
      }
    }
  });
  return places;
}

TileElement LdsStaging::element_at_byte(std::int64_t lds_byte) const {
  check_index("LDS byte", lds_byte, config_.constants().stage_bytes, "bytes of a stage");
  const LdsPlace place = LdsLayout(config_).place_of(lds_byte);
  return {place.key, place.depth};
}

std::int64_t LdsStaging::registers() const {
  const KVBufferConstants& c = config_.constants();
  return c.mma_rows * c.mma_cols * c.element_bytes / kRegisterWidth;
}

std::vector<TileElement> LdsStaging::elements_at(WaveIdx wave, int lane, std::int64_t index) const {
  const KVBufferConstants& c = config_.constants();
  check_index("wave", wave.value, c.waves, "waves of the block");
  check_index("lane", lane, kWaveLanes, "lanes of a wave");
  check_index("register", index, registers(), "32-bit registers of the operand's register tile");
  std::vector<TileElement> elements;
  for (StripIdx strip{0}; strip.value < c.num_k_tiles; ++strip) {
    for_each_slot(c, [&](std::int64_t k, std::int64_t i, std::int64_t e) {
      const std::int64_t byte = (register_row(c, strip, k, i) * c.input_frag_size + e) * c.element_bytes;
      if (byte / kRegisterWidth != index) return;
      if (const auto element = register_element(config_, wave, {strip, k, i, lane, e})) elements.push_back(*element);
    });
  }
  return elements;
}

}  // namespace kvscope
