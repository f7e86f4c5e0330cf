// The operands through which an attention kernel reads K or V: one interface over a paged cache, a continuous cache,
// the scales of a cache, a plain tensor, and a ragged batch of rows.
//
//   operand                        memory                        row_idx(b, t)            pages
//   KVCacheMHAOperand<Cache>       the cache's                   the cache's              the cache's
//   KVCacheScalesMHAOperand<Cache> the scales, read as values    the scales' row          the cache's
//   LayoutTensorMHAOperand         [B, S, H, D], any strides     b * S + t                none
//   RaggedMHAOperand               [T, H, D] and offsets [B+1]   offsets[b] + t           none
//
// All are views, trivially copyable. Note the argument order: an operand's load_scale takes (token, head), the cache's
// (head, token); the index types prevent confusion.
// Example: tensor [2,5,2,4]: block_paged_ptr(1, 3, 1, 2) is element 70, row_idx(1, 3) == 8.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/index.h"
#include "core/cache/continuous_kv_cache.h"
#include "core/cache/paged_kv_cache.h"
#include "core/cache/paged_row_indices.h"
#include "core/layout/strided_view.h"
#include "core/tma/tile_sizes.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

// The layout of a tile's rows for the caller.
struct TileLayout {
  Shape<2> shape{};    // [token, element]
  Shape<2> strides{};  // [elements]
};

[[noreturn]] void throw_operand_unsupported(std::string_view operand, std::string_view method, std::string_view why);
// GeometryError unless the map's depth equals that of the rows.
void require_operand_depth(std::string_view object, std::int64_t depth, std::int64_t head_size);

// --- the cache itself ------------------------------------------------------------------------------------------------

template <class Cache>
class KVCacheMHAOperand {
 public:
  explicit KVCacheMHAOperand(const Cache& cache) : cache_(cache) {}

  [[nodiscard]] static constexpr std::string_view get_type_name() { return "KVCacheMHAOperand"; }
  [[nodiscard]] const Cache& cache() const { return cache_; }
  [[nodiscard]] DType dtype() const { return cache_.dtype(); }
  [[nodiscard]] std::optional<DType> scale_dtype() const { return cache_.scale_dtype(); }
  [[nodiscard]] std::int64_t page_size() const { return cache_.page_size(); }
  [[nodiscard]] bool quantization_enabled() const { return cache_.quantization_enabled(); }
  [[nodiscard]] std::int64_t quantization_granularity() const { return cache_.quantization_granularity(); }

  template <std::int64_t tile>
  [[nodiscard]] std::byte* block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const {
    return block_paged_ptr(tile, seq, tok, head, dim);
  }
  // The same for a tile size that is known only at run time.
  [[nodiscard]] std::byte* block_paged_ptr(std::int64_t tile, SeqIdx seq, TokIdx tok, HeadIdx head,
                                           DimIdx dim = DimIdx{0}) const {
    return cache_.block_paged_ptr(tile, seq, tok, head, dim);
  }
  template <std::int64_t tile>
  [[nodiscard]] AnyView<2> block_paged_tile(SeqIdx seq, TokIdx tok, HeadIdx head, const TileLayout& layout,
                                            DimIdx dim = DimIdx{0}) const {
    return {block_paged_ptr<tile>(seq, tok, head, dim), dtype(), layout.shape, layout.strides};
  }
  [[nodiscard]] std::byte* scales_block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const {
    return cache_.scales_block_paged_ptr(seq, tok, head, dim);
  }
  // Null when there are no scales; GeometryError when they are not f32, because the pointer's type would
  // misread them.
  [[nodiscard]] float* scales_raw_ptr() const {
    std::byte* base = cache_.scales_raw_ptr();
    if (base != nullptr) require_f32_scales(*scale_dtype());
    return reinterpret_cast<float*>(base);
  }
  template <std::size_t width, class Out = float>
  [[nodiscard]] std::array<Out, width> load_scale(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) const {
    return cache_.template load_scale<width, Out>(seq, head, tok, dim);
  }

  [[nodiscard]] std::int64_t cache_length(SeqIdx seq) const { return cache_.cache_length(seq); }
  [[nodiscard]] std::int64_t max_context_length() const { return cache_.max_context_length(); }
  [[nodiscard]] std::int64_t num_kv_rows() const { return cache_.num_kv_rows(); }
  [[nodiscard]] RowIdx row_idx(SeqIdx seq, TokIdx tok) const { return cache_.row_idx(seq, tok); }
  [[nodiscard]] std::int32_t get_tma_row(std::int32_t encoded) const { return cache_.get_tma_row(encoded); }
  [[nodiscard]] PagedRowIndices populate(const PopulateTile& tile, SeqIdx seq, TokIdx base) const {
    return cache_.populate(tile, seq, base);
  }

  // `depth` only determines the default BK: the whole swizzle rows that hold it.
  [[nodiscard]] TmaTile create_tma_tile(std::int64_t depth, TileOptions options) const {
    if (!options.BK) options.BK = padded_depth(dtype(), options.mode, depth);
    return cache_.create_tma_tile(options);
  }
  [[nodiscard]] TmaTile create_ragged_tma_tile(std::int64_t depth, const TileOptions& options) const {
    require_operand_depth("KVCacheMHAOperand.create_ragged_tma_tile", depth, cache_.kv_params().head_size);
    return cache_.create_ragged_tma_tile(options);
  }
  [[nodiscard]] TmaTile create_rope_tma_tile(const RopeOptions& options) const {
    return cache_.create_rope_tma_tile(options);
  }
  [[nodiscard]] TmaTile create_gather4_tma_tile(const Gather4Options& options) const {
    return cache_.create_gather4_tma_tile(options);
  }
  [[nodiscard]] TmaTile create_rope_gather4_tma_tile(const RopeGather4Options& options) const {
    return cache_.create_rope_gather4_tma_tile(options);
  }
  // Both throw UnsupportedError: scales are read through KVCacheScalesMHAOperand.
  [[nodiscard]] TmaTile create_scale_tma_tile(std::int64_t) const { unsupported("create_scale_tma_tile"); }
  [[nodiscard]] TmaTile create_index_scale_tma_tile(std::int64_t) const { unsupported("create_index_scale_tma_tile"); }

 private:
  static void require_f32_scales(DType dtype) {
    if (dtype != DType::f32) {
      throw GeometryError("KVCacheMHAOperand.scales_raw_ptr: scales are " + std::string(name(dtype)) +
                          ", not the f32 of the pointer: use the cache's scales_raw_ptr");
    }
  }
  [[noreturn]] static void unsupported(std::string_view method) {
    throw_operand_unsupported(get_type_name(), method, "scales are read through a KVCacheScalesMHAOperand");
  }

  Cache cache_;
};

// --- the scales of a cache -------------------------------------------------------------------------------------------

template <class Cache>
class KVCacheScalesMHAOperand {
 public:
  explicit KVCacheScalesMHAOperand(const Cache& cache) : cache_(cache) {}

  [[nodiscard]] static constexpr std::string_view get_type_name() { return "KVCacheScalesMHAOperand"; }
  [[nodiscard]] const Cache& cache() const { return cache_; }
  [[nodiscard]] std::optional<DType> dtype() const { return cache_.scale_dtype(); }
  [[nodiscard]] static constexpr std::optional<DType> scale_dtype() { return std::nullopt; }  // scales have no scales
  [[nodiscard]] std::int64_t page_size() const { return cache_.page_size(); }
  [[nodiscard]] bool quantization_enabled() const { return cache_.quantization_enabled(); }
  [[nodiscard]] std::int64_t quantization_granularity() const { return cache_.quantization_granularity(); }

  // The scale's address; the tile size is ignored.
  template <std::int64_t tile>
  [[nodiscard]] std::byte* block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const {
    return cache_.scales_block_paged_ptr(seq, tok, head, dim);
  }
  [[nodiscard]] std::byte* block_paged_ptr(std::int64_t, SeqIdx seq, TokIdx tok, HeadIdx head,
                                           DimIdx dim = DimIdx{0}) const {
    return cache_.scales_block_paged_ptr(seq, tok, head, dim);
  }
  template <std::int64_t tile>
  [[nodiscard]] AnyView<2> block_paged_tile(SeqIdx seq, TokIdx tok, HeadIdx head, const TileLayout& layout,
                                            DimIdx dim = DimIdx{0}) const {
    return {block_paged_ptr<tile>(seq, tok, head, dim), dtype().value_or(cache_.dtype()), layout.shape, layout.strides};
  }
  [[nodiscard]] static constexpr std::byte* scales_block_paged_ptr(SeqIdx, TokIdx, HeadIdx, DimIdx = DimIdx{0}) {
    return nullptr;
  }
  [[nodiscard]] static constexpr std::byte* scales_raw_ptr() { return nullptr; }
  template <std::size_t width, class Out = float>
  [[nodiscard]] static std::array<Out, width> load_scale(SeqIdx, TokIdx, HeadIdx, DimIdx) {
    return {};
  }

  [[nodiscard]] std::int64_t cache_length(SeqIdx seq) const { return cache_.cache_length(seq); }
  [[nodiscard]] std::int64_t max_context_length() const { return cache_.max_context_length(); }
  [[nodiscard]] std::int64_t num_kv_rows() const { return cache_.num_kv_rows(); }
  [[nodiscard]] std::int32_t get_tma_row(std::int32_t encoded) const { return cache_.get_tma_row(encoded); }
  // Rows in the scales' pool, through the scales' table; equal to the values' rows only while both agree.
  [[nodiscard]] RowIdx row_idx(SeqIdx seq, TokIdx tok) const { return cache_.scale_row_idx(seq, tok); }
  [[nodiscard]] PagedRowIndices populate(const PopulateTile& tile, SeqIdx seq, TokIdx base) const {
    return populate_by_row_idx(*this, tile, page_size(), seq, base);
  }
  [[nodiscard]] TmaTile create_index_scale_tma_tile(std::int64_t tile) const {
    return cache_.create_index_scale_tma_tile(tile);
  }

  // All throw UnsupportedError.
  [[nodiscard]] TmaTile create_tma_tile(std::int64_t, const TileOptions&) const { unsupported("create_tma_tile"); }
  [[nodiscard]] TmaTile create_ragged_tma_tile(std::int64_t, const TileOptions&) const {
    unsupported("create_ragged_tma_tile");
  }
  [[nodiscard]] TmaTile create_scale_tma_tile(std::int64_t) const { unsupported("create_scale_tma_tile"); }
  [[nodiscard]] TmaTile create_rope_tma_tile(const RopeOptions&) const { unsupported("create_rope_tma_tile"); }
  [[nodiscard]] TmaTile create_gather4_tma_tile(const Gather4Options&) const { unsupported("create_gather4_tma_tile"); }
  [[nodiscard]] TmaTile create_rope_gather4_tma_tile(const RopeGather4Options&) const {
    unsupported("create_rope_gather4_tma_tile");
  }

 private:
  [[noreturn]] static void unsupported(std::string_view method) {
    throw_operand_unsupported(get_type_name(), method,
                              "scales are read by pointer, or through create_index_scale_tma_tile");
  }

  Cache cache_;
};

// --- a plain tensor --------------------------------------------------------------------------------------------------

class LayoutTensorMHAOperand {
 public:
  // buffer [B, S, H, D], any strides; scales [B, S, H, scales of a head], any strides. GeometryError: extents < 1, or
  // scales with other numbers of sequences, tokens or heads. UnsupportedError: e2m1.
  explicit LayoutTensorMHAOperand(const AnyView<4>& buffer, const std::optional<AnyView<4>>& scales = std::nullopt);

  [[nodiscard]] static constexpr std::string_view get_type_name() { return "LayoutTensorMHAOperand"; }
  [[nodiscard]] const AnyView<4>& buffer() const { return buffer_; }
  [[nodiscard]] const std::optional<AnyView<4>>& scale_buffer() const { return scales_; }
  [[nodiscard]] DType dtype() const { return buffer_.dtype; }
  [[nodiscard]] DType scale_dtype() const { return scales_ ? scales_->dtype : DType::f32; }
  [[nodiscard]] static constexpr std::int64_t page_size() { return 0; }
  [[nodiscard]] bool quantization_enabled() const { return scales_.has_value(); }
  // ceil(D / scales of a head); D without scales. Example: D 128 with 2 scales -> 64.
  [[nodiscard]] std::int64_t quantization_granularity() const;

  template <std::int64_t tile>
  [[nodiscard]] std::byte* block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const {
    return block_paged_ptr(seq, tok, head, dim);
  }
  [[nodiscard]] std::byte* block_paged_ptr(std::int64_t, SeqIdx seq, TokIdx tok, HeadIdx head,
                                           DimIdx dim = DimIdx{0}) const {
    return block_paged_ptr(seq, tok, head, dim);
  }
  [[nodiscard]] std::byte* block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const;
  template <std::int64_t tile>
  [[nodiscard]] AnyView<2> block_paged_tile(SeqIdx seq, TokIdx tok, HeadIdx head, const TileLayout& layout,
                                            DimIdx dim = DimIdx{0}) const {
    return {block_paged_ptr(seq, tok, head, dim), dtype(), layout.shape, layout.strides};
  }
  // Null without scales.
  [[nodiscard]] std::byte* scales_block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const;
  [[nodiscard]] static constexpr std::byte* scales_raw_ptr() { return nullptr; }  // even with scales
  // UnsupportedError without scales; IndexError past the scales of a head.
  template <std::size_t width, class Out = float>
  [[nodiscard]] std::array<Out, width> load_scale(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) const {
    std::array<Out, width> out;
    load_scale_into(seq, tok, head, dim, width, dtype_of<Out>, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  void load_scale_into(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim, std::int64_t width, DType out_dtype,
                       std::byte* out) const;

  [[nodiscard]] std::int64_t cache_length(SeqIdx seq) const;  // S, for every sequence
  [[nodiscard]] std::int64_t max_context_length() const { return buffer_.dim(1); }
  [[nodiscard]] std::int64_t num_kv_rows() const { return checked_mul(buffer_.dim(0), buffer_.dim(1), "rows"); }
  [[nodiscard]] RowIdx row_idx(SeqIdx seq, TokIdx tok) const;
  [[nodiscard]] std::int64_t col_idx(HeadIdx head) const;
  [[nodiscard]] static constexpr std::int32_t get_tma_row(std::int32_t encoded) { return encoded; }
  [[nodiscard]] PagedRowIndices populate(const PopulateTile& tile, SeqIdx seq, TokIdx base) const {
    return populate_by_row_idx(*this, tile, page_size(), seq, base);
  }

  // Rows are assumed packed: dims [B*S, H, depth].
  [[nodiscard]] TmaTile create_tma_tile(std::int64_t depth, const TileOptions& options) const;
  [[nodiscard]] TmaTile create_ragged_tma_tile(std::int64_t depth, const TileOptions& options) const;
  [[nodiscard]] TmaTile create_gather4_tma_tile(const Gather4Options& options) const;
  // All scales in one line. UnsupportedError without scales; GeometryError unless they are packed.
  [[nodiscard]] TmaTile create_scale_tma_tile(std::int64_t BMN) const;
  // All throw UnsupportedError.
  [[nodiscard]] TmaTile create_rope_tma_tile(const RopeOptions& options) const;
  [[nodiscard]] TmaTile create_rope_gather4_tma_tile(const RopeGather4Options& options) const;
  [[nodiscard]] TmaTile create_index_scale_tma_tile(std::int64_t tile) const;

 private:
  void check_place(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) const;

  AnyView<4> buffer_;
  std::optional<AnyView<4>> scales_;
};

// --- ragged rows -----------------------------------------------------------------------------------------------------

// A tensor whose rank is known only at run time.
struct RankedTensor {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::span<const std::int64_t> extents{};  // row-major, packed
};

class RaggedMHAOperand {
 public:
  // buffer [T, H, D], any strides; offsets [B + 1]: sequence b has rows [offsets[b], offsets[b + 1]). GeometryError:
  // another rank, offsets that decrease or end past T.
  RaggedMHAOperand(const AnyView<3>& buffer, const StridedView<const std::uint32_t, 1>& cache_row_offsets);
  // Scales of rank 2 ([T, n], one line) or 3 (a line for each index of the first extent). No tensor map exists for
  // scales of another rank.
  RaggedMHAOperand(const AnyView<3>& buffer, const RankedTensor& scales,
                   const StridedView<const std::uint32_t, 1>& cache_row_offsets);

  [[nodiscard]] static constexpr std::string_view get_type_name() { return "RaggedMHAOperand"; }
  [[nodiscard]] const AnyView<3>& buffer() const { return buffer_; }
  [[nodiscard]] const StridedView<const std::uint32_t, 1>& cache_row_offsets() const { return offsets_; }
  [[nodiscard]] DType dtype() const { return buffer_.dtype; }
  [[nodiscard]] DType scale_dtype() const { return has_scales_ ? scales_dtype_ : DType::f32; }
  [[nodiscard]] static constexpr std::int64_t page_size() { return 0; }
  [[nodiscard]] static constexpr bool quantization_enabled() { return false; }
  [[nodiscard]] static constexpr std::int64_t quantization_granularity() { return 0; }

  template <std::int64_t tile>
  [[nodiscard]] std::byte* block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const {
    return block_paged_ptr(seq, tok, head, dim);
  }
  [[nodiscard]] std::byte* block_paged_ptr(std::int64_t, SeqIdx seq, TokIdx tok, HeadIdx head,
                                           DimIdx dim = DimIdx{0}) const {
    return block_paged_ptr(seq, tok, head, dim);
  }
  [[nodiscard]] std::byte* block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const;
  template <std::int64_t tile>
  [[nodiscard]] AnyView<2> block_paged_tile(SeqIdx seq, TokIdx tok, HeadIdx head, const TileLayout& layout,
                                            DimIdx dim = DimIdx{0}) const {
    return {block_paged_ptr(seq, tok, head, dim), dtype(), layout.shape, layout.strides};
  }
  [[nodiscard]] static constexpr std::byte* scales_block_paged_ptr(SeqIdx, TokIdx, HeadIdx, DimIdx = DimIdx{0}) {
    return nullptr;
  }
  [[nodiscard]] static constexpr std::byte* scales_raw_ptr() { return nullptr; }
  template <std::size_t width, class Out = float>
  [[nodiscard]] static std::array<Out, width> load_scale(SeqIdx, TokIdx, HeadIdx, DimIdx) {
    return {};
  }

  [[nodiscard]] std::int64_t cache_length(SeqIdx seq) const;
  [[nodiscard]] std::int64_t max_context_length() const;  // UnsupportedError: kernels do not have it for this operand
  [[nodiscard]] std::int64_t num_kv_rows() const { return buffer_.dim(0); }
  [[nodiscard]] RowIdx row_idx(SeqIdx seq, TokIdx tok) const;
  [[nodiscard]] static constexpr std::int32_t get_tma_row(std::int32_t encoded) { return encoded; }
  [[nodiscard]] PagedRowIndices populate(const PopulateTile& tile, SeqIdx seq, TokIdx base) const {
    return populate_by_row_idx(*this, tile, page_size(), seq, base);
  }

  // Rows are assumed packed: dims [T, H, depth].
  [[nodiscard]] TmaTile create_tma_tile(std::int64_t depth, const TileOptions& options) const;
  [[nodiscard]] TmaTile create_ragged_tma_tile(std::int64_t depth, const TileOptions& options) const;
  [[nodiscard]] TmaTile create_gather4_tma_tile(const Gather4Options& options) const;
  // Rank 2: [1, total], total % 4 == 0. Rank 3: [extent 0, extent 1], third extent 1. UnsupportedError otherwise.
  [[nodiscard]] TmaTile create_scale_tma_tile(std::int64_t BMN) const;
  // For a buffer that holds one scale per token: H * D == 1 (GeometryError).
  [[nodiscard]] TmaTile create_index_scale_tma_tile(std::int64_t tile) const;
  // Both throw UnsupportedError.
  [[nodiscard]] TmaTile create_rope_tma_tile(const RopeOptions& options) const;
  [[nodiscard]] TmaTile create_rope_gather4_tma_tile(const RopeGather4Options& options) const;

 private:
  [[nodiscard]] std::int64_t token_row(SeqIdx seq, TokIdx tok) const;
  void check_buffer() const;

  AnyView<3> buffer_;
  StridedView<const std::uint32_t, 1> offsets_;
  bool has_scales_ = false;
  std::byte* scales_ = nullptr;
  DType scales_dtype_ = DType::f32;
  int scales_rank_ = 0;
  Shape<3> scales_extents_{};  // the first scales_rank_, at most 3
};

template <class Operand>
inline constexpr bool kIsPlainView =
    std::is_trivially_copyable_v<Operand>&& std::is_trivially_copy_constructible_v<Operand>&&
        std::is_trivially_move_constructible_v<Operand>&& std::is_trivially_destructible_v<Operand>;
static_assert(kIsPlainView<KVCacheMHAOperand<PagedKVCache>> && kIsPlainView<KVCacheScalesMHAOperand<PagedKVCache>> &&
              kIsPlainView<KVCacheMHAOperand<ContinuousBatchingKVCache>> && kIsPlainView<LayoutTensorMHAOperand> &&
              kIsPlainView<RaggedMHAOperand>);

}  // namespace kvscope
