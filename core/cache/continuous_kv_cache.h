// One layer's K (or V) of a continuous cache: every sequence has one block, as long as the maximum sequence length.
// A 4-D view [block, token, head, head_dim] of the 6-D pool; layer_view.h shows how.
//
//   element   blocks[lookup_table[b], t, h, d]
//   row       lookup_table[b] * stride() + t              stride() = 2 * L * S when packed
//
// The methods are those of PagedKVCache, so a kernel accepts either type; a continuous cache has no scales.
// Example: pool {3,2,2,5,2,4} (S 5, L 2), lookup_table {2,0}: row_idx(0, 3) == 43; V of layer 1 begins at element 120.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/base/index.h"
#include "core/cache/kv_cache_static_params.h"
#include "core/cache/layer_view.h"
#include "core/cache/paged_kv_cache.h"
#include "core/cache/paged_row_indices.h"
#include "core/layout/strided_view.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

struct ContinuousLayerTensors {
  AnyView<4> blocks{};                                 // [num_blocks, S, H, D], strides [any, H*D, D, 1]
  CacheLengths cache_lengths{};                        // [B] tokens cached before this step
  StridedView<const std::uint32_t, 1> lookup_table{};  // [B] sequence -> block
  std::uint32_t max_seq_length = 0;                    // maximum number of new tokens of a sequence
  std::uint32_t max_cache_length = 0;                  // max over sequences of cached + new
};

class ContinuousBatchingKVCache {
 public:
  // GeometryError unless the views have the extents and strides above; UnsupportedError for e2m1.
  ContinuousBatchingKVCache(const KVCacheStaticParams& kv_params, const ContinuousLayerTensors& tensors);

  // --- constants ---
  [[nodiscard]] static constexpr std::string_view get_type_name() { return "ContinuousBatchingKVCache"; }
  [[nodiscard]] DType dtype() const { return tensors_.blocks.dtype; }
  [[nodiscard]] const KVCacheStaticParams& kv_params() const { return kv_params_; }
  [[nodiscard]] static constexpr std::int64_t page_size() { return 0; }  // `page_size_`: no pages
  [[nodiscard]] static constexpr DType scale_dtype() { return DType::f32; }
  [[nodiscard]] static constexpr bool quantization_enabled() { return false; }
  [[nodiscard]] static constexpr std::int64_t quantization_granularity() { return 1; }
  [[nodiscard]] Shape<4> blocks_shape() const;   // [?, ?, H, D]
  [[nodiscard]] Shape<4> blocks_stride() const;  // [?, H*D, D, 1]

  // --- fields ---
  [[nodiscard]] const AnyView<4>& blocks() const { return tensors_.blocks; }
  [[nodiscard]] const CacheLengths& cache_lengths() const { return tensors_.cache_lengths; }
  [[nodiscard]] const StridedView<const std::uint32_t, 1>& lookup_table() const { return tensors_.lookup_table; }
  [[nodiscard]] std::uint32_t max_seq_length() const { return tensors_.max_seq_length; }
  [[nodiscard]] std::uint32_t max_cache_length() const { return tensors_.max_cache_length; }

  // --- lengths ---
  [[nodiscard]] const CacheLengths& cache_lengths_nd() const { return tensors_.cache_lengths; }
  [[nodiscard]] std::int64_t cache_length(SeqIdx seq) const;
  [[nodiscard]] bool empty_cache() const { return tensors_.max_cache_length == 0; }  // as in PagedKVCache
  [[nodiscard]] std::uint32_t max_prompt_length() const { return tensors_.max_seq_length; }
  [[nodiscard]] std::uint32_t max_context_length() const { return tensors_.max_cache_length; }
  [[nodiscard]] static constexpr std::int64_t max_tile_size() { return -1; }  // no limit

  // --- rows ---
  [[nodiscard]] std::int64_t stride() const { return rows_per_block_; }  // `_stride()`: rows from block to block
  [[nodiscard]] std::int64_t num_kv_rows() const;
  [[nodiscard]] RowIdx row_idx(SeqIdx seq, TokIdx tok) const;
  // Column of a head in the matrix [rows, H*D]. Example: D 4: col_idx(1) == 4.
  [[nodiscard]] std::int64_t col_idx(HeadIdx head) const;
  [[nodiscard]] static constexpr std::int32_t get_tma_row(std::int32_t encoded) {
    return encoded;
  }  // an index is a row
  // One entry, row_idx(seq, base): a sequence is one run of rows. The alignment guarantee is not used.
  [[nodiscard]] PagedRowIndices populate(const PopulateTile& tile, SeqIdx seq, TokIdx base) const {
    return populate_by_row_idx(*this, tile, page_size(), seq, base);
  }
  [[nodiscard]] PagedRowIndices populate(std::int64_t BN, SeqIdx seq, TokIdx base, bool pair_cta = false,
                                         bool is_leader = true) const {
    return populate(PopulateTile{.BN = BN, .pair_cta = pair_cta, .is_leader = is_leader}, seq, base);
  }

  // --- elements ---
  // IndexError: any index, a vector past the row's end, a block outside the pool.
  template <std::size_t width, class Out = float>
  [[nodiscard]] std::array<Out, width> load(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim) const {
    std::array<Out, width> out;
    load_into(seq, head, tok, dim, width, dtype_of<Out>, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  template <std::size_t width, class In = float>
  void store(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, const std::array<In, width>& values) const {
    store_from(seq, head, tok, dim, width, dtype_of<In>, reinterpret_cast<const std::byte*>(values.data()));
  }
  // Not quantized: zeros without a read, and no write.
  template <std::size_t width, class Out = float>
  [[nodiscard]] static std::array<Out, width> load_scale(SeqIdx, HeadIdx, TokIdx, DimIdx) {
    return {};
  }
  template <std::size_t width, class Out = float>
  [[nodiscard]] static std::array<Out, width> load_quantized(SeqIdx, HeadIdx, TokIdx, DimIdx) {
    return {};
  }
  template <std::size_t width, class In = float>
  static void store_scale(SeqIdx, HeadIdx, TokIdx, DimIdx, const std::array<In, width>&) {}

  void load_into(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width, DType out_dtype,
                 std::byte* out) const;
  void store_from(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width, DType in_dtype,
                  const std::byte* in) const;

  // --- pointers ---
  // Address of [block, tok, head, dim], valid for `tile` tokens, each H*D elements further; GeometryError
  // when they pass the block's end.
  template <std::int64_t tile>
  [[nodiscard]] std::byte* block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const {
    return block_paged_ptr(tile, seq, tok, head, dim);
  }
  [[nodiscard]] std::byte* block_paged_ptr(std::int64_t tile, SeqIdx seq, TokIdx tok, HeadIdx head,
                                           DimIdx dim = DimIdx{0}) const;
  [[nodiscard]] static constexpr std::byte* scales_block_paged_ptr(SeqIdx, TokIdx, HeadIdx, DimIdx = DimIdx{0}) {
    return nullptr;
  }
  [[nodiscard]] static constexpr std::byte* scales_raw_ptr() { return nullptr; }

  // --- tensor maps --- (tma_tile.h)
  [[nodiscard]] TmaTile create_tma_tile(const TileOptions& options) const;
  // The older, 2-D form over [rows, H*D]: `tile_m` rows by `tile_n` columns. MN-major:
  // the shared tile is the transpose.
  [[nodiscard]] TmaTile create_tma_tile(std::int64_t tile_m, std::int64_t tile_n, SwizzleMode mode,
                                        bool is_k_major = true) const;
  [[nodiscard]] TmaTile create_ragged_tma_tile(const TileOptions& options) const;
  [[nodiscard]] TmaTile create_gather4_tma_tile(const Gather4Options& options) const;

  // All throw UnsupportedError: a continuous cache has no rope-aware rows, scales or pages.
  [[nodiscard]] TmaTile create_paged_tma_tile(const TileOptions& options) const;
  [[nodiscard]] TmaTile create_rope_tma_tile(const RopeOptions& options) const;
  [[nodiscard]] TmaTile create_rope_gather4_tma_tile(const RopeGather4Options& options) const;
  [[nodiscard]] TmaTile create_index_scale_tma_tile(std::int64_t tile) const;
  [[nodiscard]] PageCoords kv_tma_coords(SeqIdx seq, TokIdx tok) const;
  [[nodiscard]] std::int64_t scale_stride() const;
  [[nodiscard]] RowIdx scale_row_idx(SeqIdx seq, TokIdx tok) const;
  [[nodiscard]] PageCoords scale_tma_coords(SeqIdx seq, TokIdx tok) const;
  [[nodiscard]] std::int64_t num_scale_rows() const;

 private:
  [[nodiscard]] std::int64_t block_of(SeqIdx seq, TokIdx tok) const;
  [[nodiscard]] std::byte* element(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width) const;
  [[nodiscard]] TmaRows tma_rows(std::string_view object) const;

  KVCacheStaticParams kv_params_;
  ContinuousLayerTensors tensors_;
  std::int64_t rows_per_block_ = 0;
};
static_assert(std::is_trivially_copyable_v<ContinuousBatchingKVCache> &&
              std::is_trivially_copy_constructible_v<ContinuousBatchingKVCache> &&
              std::is_trivially_move_constructible_v<ContinuousBatchingKVCache> &&
              std::is_trivially_destructible_v<ContinuousBatchingKVCache>);

}  // namespace kvscope
