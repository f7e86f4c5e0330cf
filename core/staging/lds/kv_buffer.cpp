#include "core/staging/lds/kv_buffer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/staging/lds/dram_to_lds.h"
#include "core/staging/lds/transposing_read.h"

namespace kvscope {

namespace {

KVCacheWalk walk_of(const KVBufferConfig& config) {
  const KVBufferConstants& c = config.constants();
  return {.tile_size = c.BN,
          .kv_num_heads = config.params().kv_num_heads,
          .depth = c.depth,
          .cache_depth = c.cache_depth,
          .head_dim_offset = config.params().head_dim_offset};
}

std::string object_named(const KVBufferConfig& config) {
  return fmt::format("KVBuffer ({})", config.params().transpose ? "K" : "V");
}

}  // namespace

KVBuffer::KVBuffer(const KVBufferConfig& config, const KVOperand& k_cache, SeqIdx batch_idx, HeadIdx head_idx,
                   const LdsRegion& smem_tile, TokIdx end, WaveIdx warp_id)
    : config_(config),
      layout_(config_),
      smem_tile_(smem_tile),
      iterator_(k_cache, walk_of(config), end, batch_idx, head_idx),
      warp_id_(warp_id),
      kv_mma_op_(config_) {
  const KVBufferConstants& c = config_.constants();
  KVSCOPE_ASSERT(smem_tile.pending != nullptr);
  std::vector<Fault> faults;
  if (iterator_.dtype() != config_.params().dtype) {
    faults.push_back({"k_cache", fmt::format("elements are {}, not {}: use a cache of the buffer's type",
                                             name(iterator_.dtype()), name(config_.params().dtype))});
  }
  if (warp_id.value < 0 || warp_id.value >= c.waves) {
    faults.push_back({"warp_id", fmt::format("{} is outside [0, {}): num_threads / 64 waves", warp_id.value, c.waves)});
  }
  const std::int64_t size = smem_tile.pending->image().size();
  if (smem_tile.base % kLdsVectorBytes != 0) {
    faults.push_back({"smem_tile", fmt::format("byte {} is not on a vector of 16: use {}", smem_tile.base,
                                               smem_tile.base / kLdsVectorBytes * kLdsVectorBytes)});
  }
  if (smem_tile.base < 0 || smem_tile.base > size - c.region_bytes) {
    faults.push_back({"smem_tile", fmt::format("{} B from byte {} on are not inside an image of {} B", c.region_bytes,
                                               smem_tile.base, size)});
  }
  if (!faults.empty()) throw GeometryError(object_named(config_), std::move(faults));
}

// --- DRAM to LDS -----------------------------------------------------------------------------------------------------

void KVBuffer::check_stage(StageIdx stage) const {
  const std::int64_t stages = config_.constants().num_smem_stages;
  if (stage.value >= 0 && stage.value < stages) return;
  throw GeometryError(fmt::format("{}: stage {} is outside [0, {}): num_smem_stages of the buffer",
                                  object_named(config_), stage.value, stages));
}

void KVBuffer::check_copies() const {
  if (config_.params().depth_slices == 1) return;
  throw UnsupportedError("KVBuffer (V) of one wave never copies: load through the buffer that covers all of V");
}

void KVBuffer::load_from_dram(StageIdx buffer) {
  check_stage(buffer);
  check_copies();
  const AnyView<2> tile = iterator_.tile();
  const DramTile records{.valid_rows = tile.dim(0), .row_stride = tile.stride(0), .depth = tile.dim(1)};
  issue(copy_instructions(config_, warp_id_, buffer, records), buffer, tile);
  iterator_.increment();
}

void KVBuffer::load_block(StageIdx stage, std::int64_t block) {
  check_stage(stage);
  check_copies();
  const AnyView<2> tile = iterator_.tile();
  const DramTile records{.valid_rows = tile.dim(0), .row_stride = tile.stride(0), .depth = tile.dim(1)};
  issue(copy_block_instructions(config_, warp_id_, stage, block, records), stage, tile);
  if (block == config_.constants().depth_blocks - 1) iterator_.increment();
}

void KVBuffer::issue(const std::vector<CopyInstruction>& instructions, StageIdx stage, const AnyView<2>& tile) {
  const CopyOrigin origin{.operand = config_.params().transpose ? KOrV::k : KOrV::v,
                          .tile_start = iterator_.tile_start_row(),
                          .stage = stage};
  for (const CopyInstruction& copy : instructions) smem_tile_.pending->issue(origin, copy, smem_tile_.base, tile.data);
}

// --- LDS to registers ------------------------------------------------------------------------------------------------

void KVBuffer::load_from_shared(StageIdx buffer) {
  check_stage(buffer);
  const KVBufferConstants& c = config_.constants();
  if (c.register_strips != c.num_k_tiles) {
    throw UnsupportedError(fmt::format("{}: registers hold {} strips, a tile has {}: load one strip at a time",
                                       object_named(config_), c.register_strips, c.num_k_tiles));
  }
  perform(all_reads(config_, warp_id_, buffer));
}

void KVBuffer::load_from_shared(StripIdx bk_tile, StageIdx buffer) {
  check_stage(buffer);
  const KVBufferConstants& c = config_.constants();
  if (!config_.params().transpose && c.element_bytes == 1 && c.MMA_M == 16) {
    throw UnsupportedError("KVBuffer (V): 8-bit V of 16x16x128 is not loaded strip by strip: load the whole stage");
  }
  perform(strip_reads(config_, warp_id_, buffer, bk_tile));
}

void KVBuffer::load_block_from_shared(StageIdx stage, std::int64_t block) {
  check_stage(stage);
  perform(block_reads(config_, warp_id_, stage, block));
}

void KVBuffer::perform(const std::vector<LdsReadInstruction>& reads) {
  sources_.clear();
  for (const LdsReadInstruction& read : reads) perform(read);
}

void KVBuffer::perform(const LdsReadInstruction& read) {
  if (read.kind == LdsReadKind::plain) {
    static constexpr std::array<std::byte, kLdsVectorBytes> kZeros{};
    for (int lane = 0; lane < kWaveLanes; ++lane) {
      kv_mma_op_.write(
          lane, read.targets,
          read.zero ? std::span(kZeros) : fetch(read.addresses[static_cast<std::size_t>(lane)], read.width));
    }
    return;
  }
  LanePieces pieces;
  for (std::size_t lane = 0; lane < pieces.size(); ++lane) {
    const std::span<const std::byte> bytes = fetch(read.addresses[lane], read.width);
    std::copy(bytes.begin(), bytes.end(), pieces[lane].begin());
  }
  pieces = read.kind == LdsReadKind::tr16 ? tr16_read(pieces) : tr8_read(pieces, config_.params().tr8_order);
  for (int lane = 0; lane < kWaveLanes; ++lane)
    kv_mma_op_.write(lane, read.targets, pieces[static_cast<std::size_t>(lane)]);
}

std::span<const std::byte> KVBuffer::fetch(std::int64_t byte, std::int64_t count) {
  const std::int64_t address = smem_tile_.base + byte;
  // A 16-byte vector has one writer, so every part of it that is read has the same one.
  const CopyIdx source = smem_tile_.pending->image().writer(address);
  if (std::find(sources_.begin(), sources_.end(), source) == sources_.end()) sources_.push_back(source);
  return smem_tile_.pending->read(warp_id_, address, count);
}

}  // namespace kvscope
