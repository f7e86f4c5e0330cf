#include "core/staging/staged_image.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "core/base/errors.h"
#include "core/fragment/fp8_v.h"
#include "core/fragment/ldmatrix.h"
#include "core/staging/addressed_cache.h"
#include "core/staging/lds/kv_buffer.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/lds/lds_staging.h"
#include "core/staging/lds/pending_copies.h"
#include "core/staging/tma/kv_arrival.h"
#include "core/staging/tma/tma_staging.h"
#include "core/tma/arrival_barrier.h"
#include "core/tma/global_memory.h"

namespace kvscope {
namespace {

StepCache cache_over(const Scenario& scenario, const CacheState& state, LayerBytes layer, KOrV kv) {
  return step_cache(scenario, state, {layer.blocks.data(), layer.scales.data(), 1}, kv, LayerIdx{0});
}

// Four registers of every lane: one read, for fp8 V the two operands made of it.
void put_piece(const TmaStaging& staging, const TmaRead& read, StagedImage& staged) {
  const LdmatrixUse use = staging.use();
  const LdmatrixRegisters loaded = ldmatrix(staged.shared, read.addresses, ldmatrix_shape(use));
  for (std::size_t lane = 0; lane < loaded.size(); ++lane) {
    std::array<std::uint32_t, 4> registers = loaded[lane];
    if (use == LdmatrixUse::v_fp8) {
      const Fp8VOperands operands = fp8_v_operands(registers);
      registers = {operands.even[0], operands.even[1], operands.odd[0], operands.odd[1]};
    }
    const std::int64_t warp = (read.step * staged.waves + read.warp) * staged.lanes + static_cast<std::int64_t>(lane);
    const auto first = static_cast<std::size_t>(staged.registers * warp + read.first_register);
    std::memcpy(staged.register_bytes.data() + first * sizeof(std::uint32_t), registers.data(), sizeof registers);
  }
}

}  // namespace

StagedImage stage_by_tma(const Scenario& scenario, const CacheState& state, LayerBytes layer, const StagedTile& tile,
                         DimIdx depth_offset) {
  const StepCache cache = cache_over(scenario, state, layer, tile.kv);
  const TmaStaging staging(scenario, cache, tile, depth_offset);
  GlobalMemory memory;
  memory.add("one layer's pool", layer.blocks);
  StagedImage staged{SharedImage(staging.shared_bytes()), 1, 32, 0, {}, staging.no_fragments(), 1};
  ArrivalBarrier barrier(1);
  static_cast<void>(carry_out(staging.copy(), staging.map(), memory, staged.shared, 0, barrier, CopyIdx{0}));
  KVSCOPE_ASSERT(barrier.state().phase == 1 && barrier.diagnoses().empty());
  if (!staged.no_fragments.empty()) return staged;
  staged.registers = staging.registers();
  staged.steps = staging.steps();
  staged.waves = staging.warps();
  staged.register_bytes.resize(static_cast<std::size_t>(staged.steps * staged.waves * staged.lanes * staged.registers) *
                               sizeof(std::uint32_t));
  for (const TmaRead& read : staging.reads()) put_piece(staging, read, staged);
  return staged;
}

StagedImage stage_through_lds(const Scenario& scenario, const CacheState& state, LayerBytes layer,
                              const StagedTile& tile) {
  const StepCache cache = cache_over(scenario, state, layer, tile.kv);
  const LdsStaging staging(lds_params(scenario, tile.kv), cache, tile);
  const KVBufferConfig& config = staging.config();
  const KVBufferConstants& c = config.constants();
  StagedImage staged{SharedImage(c.region_bytes), c.waves, kWaveLanes, 0, {}, {}, 1};
  PendingCopies pending(staged.shared, c.waves);
  std::vector<std::unique_ptr<KVBuffer>> buffers;
  for (WaveIdx wave{0}; wave.value < c.waves; ++wave) {
    buffers.push_back(std::make_unique<KVBuffer>(config, cache, tile.batch_row, tile.head, LdsRegion{&pending, 0},
                                                 TokIdx{tile.tokens}, wave));
    buffers.back()->kv_cache_iter().set_tile_start_row(tile.first_token);
  }
  const auto all = [&](const auto& act) {
    for (const auto& buffer : buffers) act(*buffer);
  };
  const auto land = [&] {
    for (WaveIdx wave{0}; wave.value < c.waves; ++wave) pending.wait(wave, 0);
  };
  const auto keep = [&](const KVBuffer& buffer) {
    const std::span<const std::byte> registers = buffer.register_bytes();
    staged.register_bytes.insert(staged.register_bytes.end(), registers.begin(), registers.end());
  };
  if (config.params().full_kv) {
    all([](KVBuffer& buffer) { buffer.load_from_dram(StageIdx{0}); });
    land();
    for (std::int64_t step = 0; step < staging.steps(); ++step) {
      all([&](KVBuffer& buffer) {
        if (staging.steps() == 1) return buffer.load_from_shared(StageIdx{0});
        const std::int64_t end = std::min((step + 1) * c.register_strips, c.num_k_tiles);
        for (StripIdx strip{step * c.register_strips}; strip.value < end; ++strip) {
          buffer.load_from_shared(strip, StageIdx{0});
        }
      });
      all(keep);
    }
  } else {
    const bool is_k = config.params().transpose;
    for (std::int64_t block = 0; block < staging.blocks(); ++block) {
      const StageIdx stage = staging.stage_of(block);
      all([&](KVBuffer& buffer) { buffer.load_block(stage, block); });
      land();
      all([&](KVBuffer& buffer) { buffer.load_block_from_shared(stage, block); });
      const bool last = block == staging.blocks() - 1;
      if (last || (is_k && (block + 1) % c.register_strips == 0)) all(keep);
    }
  }
  KVSCOPE_ASSERT(pending.races().empty());
  staged.registers = staging.registers();
  staged.steps = staging.steps();
  return staged;
}

}  // namespace kvscope
