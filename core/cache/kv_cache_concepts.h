// The interfaces that kernels are written against: any cache, any collection, any operand. A cache that is not
// quantized returns quantization_enabled() == false and a granularity of 1.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/base/index.h"
#include "core/cache/collections.h"
#include "core/cache/mha_operands.h"
#include "core/cache/paged_row_indices.h"

namespace kvscope {

// Passed to kernels by value: copying and moving only copies bytes, destruction does nothing.
template <class View>
concept DeviceView = std::is_trivially_copyable_v<View> && std::is_trivially_destructible_v<View>;

// Common to caches and operands: the row of a token.
template <class Rows>
concept RowSource = DeviceView<Rows> && requires(const Rows rows, SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) {
  { rows.get_type_name() } -> std::convertible_to<std::string_view>;
  { rows.page_size() } -> std::same_as<std::int64_t>;
  { rows.quantization_enabled() } -> std::same_as<bool>;
  { rows.quantization_granularity() } -> std::same_as<std::int64_t>;
  { rows.cache_length(seq) } -> std::same_as<std::int64_t>;
  { rows.max_context_length() } -> std::convertible_to<std::int64_t>;
  { rows.num_kv_rows() } -> std::same_as<std::int64_t>;
  { rows.row_idx(seq, tok) } -> std::same_as<RowIdx>;
  { rows.get_tma_row(std::int32_t{}) } -> std::same_as<std::int32_t>;
  { rows.populate(PopulateTile{}, seq, tok) } -> std::same_as<PagedRowIndices>;
  { rows.template block_paged_ptr<1>(seq, tok, head, dim) } -> std::same_as<std::byte*>;
  { rows.scales_block_paged_ptr(seq, tok, head, dim) } -> std::same_as<std::byte*>;
  { rows.create_gather4_tma_tile(Gather4Options{}) } -> std::same_as<TmaTile>;
  { rows.create_rope_tma_tile(RopeOptions{}) } -> std::same_as<TmaTile>;
  { rows.create_rope_gather4_tma_tile(RopeGather4Options{}) } -> std::same_as<TmaTile>;
  { rows.create_index_scale_tma_tile(std::int64_t{}) } -> std::same_as<TmaTile>;
};

// One layer's K or V.
template <class Cache>
concept KVCacheT = RowSource<Cache> && requires(const Cache cache, SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim) {
  cache.cache_lengths_nd();
  { cache.max_tile_size() } -> std::same_as<std::int64_t>;
  { cache.empty_cache() } -> std::same_as<bool>;
  { cache.max_prompt_length() } -> std::same_as<std::uint32_t>;
  cache.template load<1>(seq, head, tok, dim);
  cache.template load_quantized<1>(seq, head, tok, dim);
  cache.template load_scale<1>(seq, head, tok, dim);
  cache.template store<1>(seq, head, tok, dim, std::array<float, 1>{});
  cache.template store_scale<1>(seq, head, tok, dim, std::array<float, 1>{});
  { cache.scale_row_idx(seq, tok) } -> std::same_as<RowIdx>;
  { cache.create_tma_tile(TileOptions{}) } -> std::same_as<TmaTile>;
};

// All layers.
template <class Collection>
concept KVCollectionT = DeviceView<Collection> && KVCacheT<typename Collection::CacheType> &&
    requires(const Collection collection, LayerIdx layer, SeqIdx seq) {
  { collection.get_key_cache(layer) } -> std::same_as<typename Collection::CacheType>;
  { collection.get_value_cache(layer) } -> std::same_as<typename Collection::CacheType>;
  { collection.cache_length(seq) } -> std::same_as<std::int64_t>;
  { Collection::name_str } -> std::convertible_to<std::string_view>;
};

// The source an attention kernel reads from. load_scale takes (token, head), the reverse order of a cache's.
template <class Operand>
concept MHAOperand = RowSource<Operand> &&
    requires(const Operand operand, SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) {
  operand.template load_scale<1>(seq, tok, head, dim);
  { operand.block_paged_ptr(std::int64_t{}, seq, tok, head, dim) } -> std::same_as<std::byte*>;
  operand.template block_paged_tile<1>(seq, tok, head, TileLayout{}, dim);
  operand.scales_raw_ptr();
  { operand.create_tma_tile(std::int64_t{}, TileOptions{}) } -> std::same_as<TmaTile>;
  { operand.create_ragged_tma_tile(std::int64_t{}, TileOptions{}) } -> std::same_as<TmaTile>;
  { operand.create_scale_tma_tile(std::int64_t{}) } -> std::same_as<TmaTile>;
};

static_assert(KVCacheT<PagedKVCache> && KVCacheT<ContinuousBatchingKVCache>);
static_assert(KVCollectionT<PagedKVCacheCollection> && KVCollectionT<ContinuousBatchingKVCacheCollection>);
static_assert(MHAOperand<KVCacheMHAOperand<PagedKVCache>> && MHAOperand<KVCacheMHAOperand<ContinuousBatchingKVCache>> &&
              MHAOperand<KVCacheScalesMHAOperand<PagedKVCache>> &&
              MHAOperand<KVCacheScalesMHAOperand<ContinuousBatchingKVCache>> && MHAOperand<LayoutTensorMHAOperand> &&
              MHAOperand<RaggedMHAOperand>);

}  // namespace kvscope
