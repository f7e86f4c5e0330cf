// KVBuffer: one wave's side of staging K or V. Every wave of the block has one for K and one for V; they share the LDS
// region, and each copies its part of every tile.
//
//   load_from_dram<stage>()      takes the next tile, issues the wave's copies, returns without waiting
//   wait, barrier                the schedule's (schedule.h, pending_copies.h)
//   load_from_shared(stage)      fills the wave's registers with all strips; load_from_shared<bk>(stage) with one
//   get_mma_tile<k, bk>()        the operand of one step of the matrix instruction
//
// Registers of a wave: kv_mma_op.h. Example: bf16 K, 32x32x16, BN 64, WN 32, BK 32, depth 128: wave 1, lane 63, row 7,
// element 7 is key 63, depth 127.
// Neither copyable nor movable: kv_mma_op refers to the buffer's configuration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index.h"
#include "core/layout/strided_view.h"
#include "core/smem/shared_image.h"
#include "core/staging/lds/kv_buffer_config.h"
#include "core/staging/lds/kv_cache_iterator.h"
#include "core/staging/lds/kv_mma_op.h"
#include "core/staging/lds/lds_index.h"
#include "core/staging/lds/lds_layout.h"
#include "core/staging/lds/lds_to_registers.h"
#include "core/staging/lds/pending_copies.h"

namespace kvscope {

// smem_tile: the view of every LDS stage. A buffer does not own it.
struct LdsRegion {
  PendingCopies* pending = nullptr;  // over the image that contains the region
  std::int64_t base = 0;             // [bytes] of the image: the region's first, on a multiple of 16
};

class KVBuffer {
 public:
  // Moves no data; the iterator begins at token 0. `k_cache`: any MHA operand, or a cache. `end`: number of valid keys,
  // at most cache_length of the sequence. GeometryError, all faults at once: an operand of another element type, a wave
  // outside the block, a region that is unaligned or leaves the image, and the faults of KVCacheIterator.
  KVBuffer(const KVBufferConfig& config, const KVOperand& k_cache, SeqIdx batch_idx, HeadIdx head_idx,
           const LdsRegion& smem_tile, TokIdx end, WaveIdx warp_id);
  KVBuffer(const KVBuffer&) = delete;
  KVBuffer(KVBuffer&&) = delete;
  KVBuffer& operator=(const KVBuffer&) = delete;
  KVBuffer& operator=(KVBuffer&&) = delete;
  ~KVBuffer() = default;

  // --- DRAM to LDS ---  GeometryError for a missing stage; UnsupportedError for a per-wave V, which never copies.
  template <std::int64_t buffer_idx>
  void load_from_dram() {
    load_from_dram(StageIdx{buffer_idx});
  }
  void load_from_dram(StageIdx buffer);
  // full_kv false: block `block` of the tile at the cursor, which advances after the last block.
  void load_block(StageIdx stage, std::int64_t block);

  // --- LDS to registers ---  GeometryError for a missing stage, and the errors of strip_reads.
  // UnsupportedError unless the register tile holds every strip.
  void load_from_shared(StageIdx buffer);
  // One strip, into slot bk % register_strips. UnsupportedError for fp8 V of 16x16x128, whose form in Mojo takes the
  // code path of another shape.
  template <std::int64_t bk_tile>
  void load_from_shared(StageIdx buffer) {
    load_from_shared(StripIdx{bk_tile}, buffer);
  }
  void load_from_shared(StripIdx bk_tile, StageIdx buffer);
  void load_block_from_shared(StageIdx stage, std::int64_t block);

  // --- views ---
  template <std::int64_t rows>
  [[nodiscard]] LdsBlockTile smem_block_tile(std::int64_t tile_row, std::int64_t block_col) const {
    return layout_.smem_block_tile(rows, tile_row, block_col);
  }
  // KVMmaOp::get_mma_tile.
  template <std::int64_t k_mma_tile_idx, std::int64_t bk_tile_idx>
  [[nodiscard]] AnyView<3> get_mma_tile() {
    return get_mma_tile(k_mma_tile_idx, StripIdx{bk_tile_idx});
  }
  [[nodiscard]] AnyView<3> get_mma_tile(std::int64_t k_mma_tile_idx, StripIdx bk_tile_idx) {
    return kv_mma_op_.get_mma_tile(k_mma_tile_idx, bk_tile_idx);
  }
  template <std::int64_t k_mma_tile_idx, std::int64_t bk_tile_idx>
  [[nodiscard]] AnyView<3> mma_subtile() {
    return get_mma_tile(k_mma_tile_idx, StripIdx{bk_tile_idx});
  }
  [[nodiscard]] AnyView<3> registers() { return kv_mma_op_.registers(); }  // [lane, row, element]
  [[nodiscard]] std::span<const std::byte> register_bytes() const { return kv_mma_op_.register_bytes(); }
  // The register tile and its product with Q or P.
  [[nodiscard]] KVMmaOp& kv_mma_op() { return kv_mma_op_; }

  [[nodiscard]] KVCacheIterator& kv_cache_iter() { return iterator_; }
  [[nodiscard]] const KVBufferConfig& config() const { return config_; }
  [[nodiscard]] const LdsLayout& layout() const { return layout_; }
  [[nodiscard]] WaveIdx warp_id() const { return warp_id_; }
  // The copies that wrote the bytes of the last load from LDS, each once; SharedImage::kNoCopy means poison was read.
  [[nodiscard]] const std::vector<CopyIdx>& last_sources() const { return sources_; }

 private:
  void check_stage(StageIdx stage) const;
  void check_copies() const;
  void issue(const std::vector<CopyInstruction>& instructions, StageIdx stage, const AnyView<2>& tile);
  void perform(const std::vector<LdsReadInstruction>& reads);
  void perform(const LdsReadInstruction& read);
  [[nodiscard]] std::span<const std::byte> fetch(std::int64_t byte, std::int64_t count);

  KVBufferConfig config_;
  LdsLayout layout_;
  LdsRegion smem_tile_;
  KVCacheIterator iterator_;
  WaveIdx warp_id_;
  KVMmaOp kv_mma_op_;
  std::vector<CopyIdx> sources_;
};

}  // namespace kvscope
