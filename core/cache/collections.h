// All layers of a cache at once: the 6-D pool, the batch's lengths and table. A kernel asks for one layer's K or V and
// gets a 4-D view of the same memory (layer_view.h).
//
//   pool    paged       [NB, kv, L, P, H, D]          kv = 2, or 1 for MLA, whose one slot serves as K and V
//           continuous  [num_blocks, 2, L, S, H, D]
//   scales  paged       [NB, kv, L, P, H, G]          G = ceil(D / granularity)
//
// Example: pool {5,2,3,4,2,8} with granularity 4: K of layer 1 begins at element 64 and its scales at scale 16.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/base/index.h"
#include "core/cache/continuous_kv_cache.h"
#include "core/cache/layer_view.h"
#include "core/cache/paged_kv_cache.h"
#include "core/layout/strided_view.h"

namespace kvscope {

struct PagedTensors {
  AnyView<6> blocks{};                               // [NB, kv, L, P, H, D], row-major
  CacheLengths cache_lengths{};                      // [B] tokens cached before this step
  LookupTable lookup_table{};                        // [B, columns], strides [any, 1]
  std::uint32_t max_seq_length = 0;                  // maximum number of new tokens of a sequence
  std::uint32_t max_cache_length = 0;                // max over sequences of cached + new
  std::optional<AnyView<6>> scales{};                // [NB, kv, L, P, H, G], row-major
  std::optional<LookupTable> scales_lookup_table{};  // default: lookup_table
  std::int64_t page_stride = kUnknownValue;          // [elements] from block to block of a view; -1: packed
  std::int64_t scales_page_stride = kUnknownValue;   // [scales]
  StoreDrops* drops = nullptr;
};

class PagedKVCacheCollection {
 public:
  using CacheType = PagedKVCache;
  static constexpr std::string_view name_str = "paged";

  // GeometryError, all faults at once: extents that differ from the parameters, a pool that is not row-major, scales of
  // another dtype, a page stride that is not whole rows or makes pages overlap. UnsupportedError: e2m1.
  PagedKVCacheCollection(const PagedCacheParams& params, const PagedTensors& tensors);

  // --- constants ---
  [[nodiscard]] const PagedCacheParams& params() const { return params_; }
  [[nodiscard]] DType dtype() const { return params_.dtype; }
  [[nodiscard]] const KVCacheStaticParams& kv_params() const { return params_.kv_params; }
  [[nodiscard]] std::int64_t page_size() const { return params_.page_size; }
  [[nodiscard]] std::optional<DType> scale_dtype() const { return params_.scale_dtype; }
  [[nodiscard]] std::int64_t head_dim_granularity() const { return params_.head_dim_granularity(); }
  [[nodiscard]] std::int64_t kv() const { return params_.kv_params.is_mla ? 1 : 2; }
  [[nodiscard]] Shape<6> blocks_shape() const;   // [?, kv, ?, P, H, D]
  [[nodiscard]] Shape<6> blocks_layout() const;  // its row-major strides, kUnknownValue where unknown
  [[nodiscard]] Shape<6> scales_shape() const;   // [?, kv, ?, P, H, G]
  [[nodiscard]] Shape<6> scales_layout() const;

  // --- fields ---
  [[nodiscard]] const std::optional<AnyView<6>>& scales() const { return tensors_.scales; }
  [[nodiscard]] const Shape<4>& kv_cache_scales_dynamic_shape() const { return scales_view_.shape; }  // zeros without
  [[nodiscard]] const Shape<4>& kv_cache_scales_dynamic_strides() const { return scales_view_.strides; }
  [[nodiscard]] const AnyView<6>& blocks() const { return tensors_.blocks; }
  [[nodiscard]] const CacheLengths& cache_lengths() const { return tensors_.cache_lengths; }
  [[nodiscard]] const LookupTable& lookup_table() const { return tensors_.lookup_table; }
  [[nodiscard]] const LookupTable& scales_lookup_table() const { return *tensors_.scales_lookup_table; }
  [[nodiscard]] std::uint32_t max_seq_length() const { return tensors_.max_seq_length; }
  [[nodiscard]] std::uint32_t max_cache_length() const { return tensors_.max_cache_length; }
  [[nodiscard]] const Shape<4>& kv_cache_dynamic_shape() const { return view_.shape; }
  [[nodiscard]] const Shape<4>& kv_cache_dynamic_strides() const { return view_.strides; }
  [[nodiscard]] std::int64_t layers() const { return tensors_.blocks.dim(2); }

  // IndexError outside [0, L): a kernel would read V instead of K, or the next block.
  [[nodiscard]] PagedKVCache get_key_cache(LayerIdx layer) const { return get_cache(KOrV::k, layer); }
  // UnsupportedError for MLA: its values are the first elements of the key rows.
  [[nodiscard]] PagedKVCache get_value_cache(LayerIdx layer) const { return get_cache(KOrV::v, layer); }
  [[nodiscard]] PagedKVCache get_cache(KOrV k_or_v, LayerIdx layer) const;
  [[nodiscard]] std::int64_t cache_length(SeqIdx seq) const;

 private:
  PagedCacheParams params_;
  PagedTensors tensors_;  // scales_lookup_table always set
  LayerViewLayout view_;
  LayerViewLayout scales_view_;
};
static_assert(std::is_trivially_copyable_v<PagedKVCacheCollection> &&
              std::is_trivially_copy_constructible_v<PagedKVCacheCollection> &&
              std::is_trivially_move_constructible_v<PagedKVCacheCollection> &&
              std::is_trivially_destructible_v<PagedKVCacheCollection>);

struct ContinuousTensors {
  AnyView<6> blocks{};                                 // [num_blocks, 2, L, S, H, D], row-major
  CacheLengths cache_lengths{};                        // [B] tokens cached before this step
  StridedView<const std::uint32_t, 1> lookup_table{};  // [B] sequence -> block
  std::uint32_t max_seq_length = 0;
  std::uint32_t max_cache_length = 0;
};

class ContinuousBatchingKVCacheCollection {
 public:
  using CacheType = ContinuousBatchingKVCache;
  static constexpr std::string_view name_str = "continuous_batching";

  // GeometryError: heads or elements that differ from the parameters, a pool that is not
  // row-major. UnsupportedError: e2m1.
  ContinuousBatchingKVCacheCollection(const KVCacheStaticParams& kv_params, const ContinuousTensors& tensors);

  [[nodiscard]] DType dtype() const { return tensors_.blocks.dtype; }
  [[nodiscard]] const KVCacheStaticParams& kv_params() const { return kv_params_; }
  [[nodiscard]] Shape<6> blocks_shape() const;  // [?, ?, ?, ?, H, D]
  [[nodiscard]] const AnyView<6>& blocks() const { return tensors_.blocks; }
  [[nodiscard]] const CacheLengths& cache_lengths() const { return tensors_.cache_lengths; }
  [[nodiscard]] const StridedView<const std::uint32_t, 1>& lookup_table() const { return tensors_.lookup_table; }
  [[nodiscard]] std::uint32_t max_seq_length() const { return tensors_.max_seq_length; }
  [[nodiscard]] std::uint32_t max_cache_length() const { return tensors_.max_cache_length; }
  [[nodiscard]] const Shape<4>& kv_cache_dynamic_shape() const { return view_.shape; }
  [[nodiscard]] const Shape<4>& kv_cache_dynamic_strides() const { return view_.strides; }
  [[nodiscard]] std::int64_t layers() const { return tensors_.blocks.dim(2); }

  // IndexError outside [0, L).
  [[nodiscard]] ContinuousBatchingKVCache get_key_cache(LayerIdx layer) const { return get_cache(KOrV::k, layer); }
  // UnsupportedError when the pool has one slot.
  [[nodiscard]] ContinuousBatchingKVCache get_value_cache(LayerIdx layer) const { return get_cache(KOrV::v, layer); }
  [[nodiscard]] ContinuousBatchingKVCache get_cache(KOrV k_or_v, LayerIdx layer) const;
  [[nodiscard]] std::int64_t cache_length(SeqIdx seq) const;

 private:
  KVCacheStaticParams kv_params_;
  ContinuousTensors tensors_;
  LayerViewLayout view_;
};
static_assert(std::is_trivially_copyable_v<ContinuousBatchingKVCacheCollection> &&
              std::is_trivially_copy_constructible_v<ContinuousBatchingKVCacheCollection> &&
              std::is_trivially_move_constructible_v<ContinuousBatchingKVCacheCollection> &&
              std::is_trivially_destructible_v<ContinuousBatchingKVCacheCollection>);

}  // namespace kvscope
