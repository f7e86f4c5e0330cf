// One layer's K (or V) of a paged cache: a 4-D view [block, page_row, head, head_dim] of the 6-D pool, and a table that
// maps (sequence, page) to a block. All layers, and both K and V, share the pool; layer_view.h shows how.
//
//   token t of sequence b:   page t / P, slot t % P          lookup_table[b][page] = block
//   element                  blocks[block, slot, head, dim]
//   row                      block * stride() + slot         stride() = kv * L * P when packed
//
// Copies are shallow: the cache is a view over tensors that the caller owns, passed to kernels by value.
//
// Preconditions. Caller: indices in range (checked here in every build; kernels do not check). Allocator of the table:
// every unused entry holds the null page, rows are padded to a multiple of 8 plus 16, the last row included. Allocator
// of the pool: one page more than it hands out (the null page).
// Example: pool {5,2,3,4,2,8} (P 4, L 3), lookup_table[0] = {3,0,1}: K of layer 1: row_idx(0, 2) == 74, token 5 of head
// 1 begins at element 88 of the pool.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/index.h"
#include "core/cache/kv_cache_static_params.h"
#include "core/cache/layer_view.h"
#include "core/cache/paged_row_indices.h"
#include "core/cache/store_drops.h"
#include "core/layout/strided_view.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

using LookupTable = StridedView<const std::uint32_t, 2>;   // [batch, columns], columns contiguous
using CacheLengths = StridedView<const std::uint32_t, 1>;  // [batch]

// Fixed at compile time in the Mojo kernels, at construction in this model.
struct PagedCacheParams {
  DType dtype = DType::f32;
  KVCacheStaticParams kv_params{};
  std::int64_t page_size = 0;                 // P [tokens]
  std::optional<DType> scale_dtype{};         // empty: not quantized; quantization_enabled() tests only this
  std::int64_t quantization_granularity = 1;  // elements of a head that share a scale

  [[nodiscard]] bool quantization_enabled() const { return scale_dtype.has_value(); }
  // G: scales of a head. Example: D 576, granularity 128 -> 5.
  [[nodiscard]] std::int64_t head_dim_granularity() const {
    return ceil_div(kv_params.head_size, quantization_granularity);
  }
  friend bool operator==(const PagedCacheParams&, const PagedCacheParams&) = default;
};

// GeometryError, all faults at once: sizes that are not positive, a scale dtype that is not a float. UnsupportedError:
// e2m1, because its elements have no address.
void check_params(std::string_view object, const PagedCacheParams& params);

struct PagedLayerTensors {
  AnyView<4> blocks{};                               // [NB, P, H, D], strides [any, H*D, D, 1]
  CacheLengths cache_lengths{};                      // [B] tokens cached before this step
  LookupTable lookup_table{};                        // [B, columns], strides [any, 1]
  std::uint32_t max_seq_length = 0;                  // maximum number of new tokens of a sequence
  std::uint32_t max_cache_length = 0;                // max over sequences of cached + new
  std::optional<AnyView<4>> scales{};                // [NB, P, H, G], strides [any, H*G, G, 1]
  std::optional<LookupTable> scales_lookup_table{};  // default: lookup_table
  StoreDrops* drops = nullptr;
};

class PagedKVCache {
 public:
  // GeometryError unless the views have the extents and strides above. Nothing is copied.
  PagedKVCache(const PagedCacheParams& params, const PagedLayerTensors& tensors);

  // --- constants ---
  [[nodiscard]] static constexpr std::string_view get_type_name() { return "PagedKVCache"; }
  [[nodiscard]] const PagedCacheParams& params() const { return params_; }
  [[nodiscard]] DType dtype() const { return params_.dtype; }
  [[nodiscard]] const KVCacheStaticParams& kv_params() const { return params_.kv_params; }
  [[nodiscard]] std::int64_t page_size() const { return params_.page_size; }  // `page_size_` of the kernels
  [[nodiscard]] std::optional<DType> scale_dtype() const { return params_.scale_dtype; }
  [[nodiscard]] bool quantization_enabled() const { return params_.quantization_enabled(); }
  [[nodiscard]] std::int64_t quantization_granularity() const { return params_.quantization_granularity; }
  [[nodiscard]] std::int64_t head_dim_granularity() const { return params_.head_dim_granularity(); }
  [[nodiscard]] Shape<4> blocks_shape() const;    // [?, P, H, D]
  [[nodiscard]] Shape<4> blocks_strides() const;  // [?, H*D, D, 1]

  // --- fields ---
  [[nodiscard]] const AnyView<4>& blocks() const { return tensors_.blocks; }
  [[nodiscard]] const CacheLengths& cache_lengths() const { return tensors_.cache_lengths; }
  [[nodiscard]] const LookupTable& lookup_table() const { return tensors_.lookup_table; }
  [[nodiscard]] std::uint32_t max_seq_length() const { return tensors_.max_seq_length; }
  [[nodiscard]] std::uint32_t max_cache_length() const { return tensors_.max_cache_length; }
  [[nodiscard]] const std::optional<AnyView<4>>& scales() const { return tensors_.scales; }
  [[nodiscard]] const LookupTable& scales_lookup_table() const { return *tensors_.scales_lookup_table; }

  // --- lengths ---
  [[nodiscard]] const CacheLengths& cache_lengths_nd() const { return tensors_.cache_lengths; }
  // Tokens cached before this step: the step's token i has position cache_length + i.
  [[nodiscard]] std::int64_t cache_length(SeqIdx seq) const;
  // Compares the number given at construction, which includes new tokens, with 0: a first prefill step is not "empty",
  // though all cached lengths are 0.
  [[nodiscard]] bool empty_cache() const { return tensors_.max_cache_length == 0; }
  [[nodiscard]] std::uint32_t max_prompt_length() const { return tensors_.max_seq_length; }     // new tokens only
  [[nodiscard]] std::uint32_t max_context_length() const { return tensors_.max_cache_length; }  // cached + new
  [[nodiscard]] std::int64_t max_tile_size() const { return params_.page_size; }

  // --- rows ---
  [[nodiscard]] std::int64_t stride() const { return rows_per_block_; }  // `_stride()`: rows from block to block
  // Rows of the matrix that spans all blocks of the view, including the rows of other layers between them.
  [[nodiscard]] std::int64_t num_kv_rows() const;
  // lookup_table[seq][tok / P] * stride() + tok % P, in 32 bits that wrap as a kernel's do. Consecutive tokens are
  // adjacent in memory only within a page. A sentinel entry gives a row of the null page.
  // Example: lookup_table[0] = {3,0,1}, P 4, stride 24: row_idx(0, 5) == 1.
  [[nodiscard]] RowIdx row_idx(SeqIdx seq, TokIdx tok) const;
  // An encoded sparse index, block * P + slot, as a row. Pure arithmetic with floor division: -1 becomes
  // P - 1 - stride(). Callers that use -1 for "no token" must test for it before (sparse_remap.h).
  // Example: P 4, stride 24: 14 -> 74, -1 -> -21.
  [[nodiscard]] std::int32_t get_tma_row(std::int32_t encoded) const;
  // The same row as two coordinates; row + block * stride() == row_idx. Example: token 5 -> row 1 of block 0.
  [[nodiscard]] PageCoords kv_tma_coords(SeqIdx seq, TokIdx tok) const;
  // Rows of a whole V tile: rows[i] = lookup_table[seq][base / P + i] * stride(). Faults, as one GeometryError:
  //   1. the alignment guarantee is less than a page   2. base is not on a page boundary
  //   3. the table's row stride is not whole reads     4. base / P is not on a read boundary
  //   5. the tile ends past the table's row stride     6. base violates the alignment guarantee
  // One page or less (P >= BN): the in-page offset is kept unless the guarantee covers whole pages, and the tile
  // must end in the page.
  // Example: P 16, 64 rows a block, lookup_table[0] = {5,9,2,7,1,0,3,8}: BN 64, base 64 -> {64,0,192,512}.
  [[nodiscard]] PagedRowIndices populate(const PopulateTile& tile, SeqIdx seq, TokIdx base) const;
  // The older entry point, without an alignment guarantee; see PopulateTile::base_alignment.
  [[nodiscard]] PagedRowIndices populate(std::int64_t BN, SeqIdx seq, TokIdx base, bool pair_cta = false,
                                         bool is_leader = true) const {
    return populate(PopulateTile{.BN = BN, .pair_cta = pair_cta, .is_leader = is_leader}, seq, base);
  }

  // --- elements ---
  // `width` consecutive elements of one row as Out, one rounding. Quantized: one scale, of the first element's granule,
  // is applied in the scale's type before the last conversion; GeometryError when the vector crosses a granule or Out
  // is the cache's element type. IndexError: any index, a vector past the row's end, a page that was never assigned.
  template <std::size_t width, class Out = float>
  [[nodiscard]] std::array<Out, width> load(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim) const {
    std::array<Out, width> out;
    load_into(seq, head, tok, dim, width, dtype_of<Out>, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  // Stored elements, without applying a scale. UnsupportedError unless quantized.
  template <std::size_t width, class Out = float>
  [[nodiscard]] std::array<Out, width> load_quantized(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim) const {
    std::array<Out, width> out;
    load_quantized_into(seq, head, tok, dim, width, dtype_of<Out>, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  // `width` consecutive scales from the granule of `dim` on. UnsupportedError unless quantized,
  // GeometryError without scales.
  template <std::size_t width, class Out = float>
  [[nodiscard]] std::array<Out, width> load_scale(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim) const {
    std::array<Out, width> out;
    load_scale_into(seq, head, tok, dim, width, dtype_of<Out>, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  // Stores convert values to the cache's type with one rounding. A store to a page that was never assigned (block >=
  // NB) is not an error: it is dropped and counted. The null page is part of the pool: a store there is performed.
  template <std::size_t width, class In = float>
  void store(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, const std::array<In, width>& values) const {
    store_from(seq, head, tok, dim, width, dtype_of<In>, reinterpret_cast<const std::byte*>(values.data()));
  }
  // In must be the scale's type (GeometryError).
  template <std::size_t width, class In = float>
  void store_scale(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, const std::array<In, width>& values) const {
    store_scale_from(seq, head, tok, dim, width, dtype_of<In>, reinterpret_cast<const std::byte*>(values.data()));
  }

  // The same with run-time width and type; `out` and `in` hold `width` elements of that type.
  void load_into(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width, DType out_dtype,
                 std::byte* out) const;
  void load_quantized_into(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width, DType out_dtype,
                           std::byte* out) const;
  void load_scale_into(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width, DType out_dtype,
                       std::byte* out) const;
  void store_from(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width, DType in_dtype,
                  const std::byte* in) const;
  void store_scale_from(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width, DType in_dtype,
                        const std::byte* in) const;

  // --- pointers ---
  // Address of [block, slot, head, dim], valid for `tile` tokens, each H*D elements further. GeometryError unless
  // P % tile == 0 and tok % P + tile <= P: past the page's end the rows belong to another layer. tok need not be a
  // multiple of tile. Example: P 16, tile 8: tokens 0 to 8 of a page are accepted, 9 to 15 are rejected.
  template <std::int64_t tile>
  [[nodiscard]] std::byte* block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const {
    return block_paged_ptr(tile, seq, tok, head, dim);
  }
  [[nodiscard]] std::byte* block_paged_ptr(std::int64_t tile, SeqIdx seq, TokIdx tok, HeadIdx head,
                                           DimIdx dim = DimIdx{0}) const;
  // Address of the scale of [seq, tok, head, dim]. UnsupportedError unless quantized, GeometryError without scales.
  [[nodiscard]] std::byte* scales_block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim = DimIdx{0}) const;
  // Base of the scales view; null when there is none.
  [[nodiscard]] std::byte* scales_raw_ptr() const;

  // --- rows of the scales ---  UnsupportedError unless quantized, GeometryError without scales
  [[nodiscard]] std::int64_t scale_stride() const;  // `_scale_stride()`
  [[nodiscard]] RowIdx scale_row_idx(SeqIdx seq, TokIdx tok) const;
  // The slot rounded down to whole 16-byte chunks of scales. Example: f32: token 2 of block 3 -> row 0 of block 3.
  [[nodiscard]] PageCoords scale_tma_coords(SeqIdx seq, TokIdx tok) const;
  [[nodiscard]] std::int64_t num_scale_rows() const;

  // --- tensor maps --- (tma_tile.h)
  [[nodiscard]] TmaTile create_tma_tile(const TileOptions& options) const;
  [[nodiscard]] TmaTile create_paged_tma_tile(const TileOptions& options) const;
  [[nodiscard]] TmaTile create_ragged_tma_tile(const TileOptions& options) const;
  [[nodiscard]] TmaTile create_gather4_tma_tile(const Gather4Options& options) const;
  [[nodiscard]] TmaTile create_rope_tma_tile(const RopeOptions& options) const;
  [[nodiscard]] TmaTile create_rope_gather4_tma_tile(const RopeGather4Options& options) const;
  // One scale a token: [NB, P], coordinates scale_tma_coords.
  [[nodiscard]] TmaTile create_index_scale_tma_tile(std::int64_t tile) const;

 private:
  struct Place {
    std::int64_t block = 0;
    std::int64_t slot = 0;
  };
  [[nodiscard]] Place locate(const LookupTable& table, SeqIdx seq, TokIdx tok) const;
  void check_element(HeadIdx head, DimIdx dim, std::int64_t width) const;
  void check_granules(DimIdx dim, std::int64_t width) const;
  [[nodiscard]] std::byte* element(Place place, HeadIdx head, DimIdx dim) const;
  [[nodiscard]] std::byte* scale_element(Place place, HeadIdx head, DimIdx dim) const;
  [[nodiscard]] std::byte* assigned_element(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width) const;
  [[nodiscard]] std::byte* assigned_scale(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width) const;
  const AnyView<4>& scales_or_throw(std::string_view method) const;
  void drop(const char* pool, const char* table, Place place, std::int64_t blocks, SeqIdx seq, TokIdx tok) const;
  [[nodiscard]] TmaRows tma_rows(std::string_view object) const;

  PagedCacheParams params_;
  PagedLayerTensors tensors_;  // scales_lookup_table always set
  std::int64_t rows_per_block_ = 0;
};
static_assert(std::is_trivially_copyable_v<PagedKVCache> && std::is_trivially_copy_constructible_v<PagedKVCache> &&
              std::is_trivially_move_constructible_v<PagedKVCache> && std::is_trivially_destructible_v<PagedKVCache>);

}  // namespace kvscope
