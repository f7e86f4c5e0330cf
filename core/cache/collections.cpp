#include "core/cache/collections.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/base/errors.h"

namespace kvscope {

namespace {

std::string bracketed(const Shape<6>& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) {
    if (text.size() > 1) text += ", ";
    text += extent == kUnknownValue ? "any" : std::to_string(extent);
  }
  return text + "]";
}

// The pool's known extents, its dtype, and that it is packed.
void require_pool(std::vector<Fault>& faults, const char* what, const AnyView<6>& pool, DType dtype,
                  const Shape<6>& want) {
  if (pool.dtype != dtype) {
    faults.push_back(
        {what, fmt::format("dtype is {}, and the collection was made for {}", name(pool.dtype), name(dtype))});
  }
  bool positive = true;
  bool agrees = true;
  for (std::size_t axis = 0; axis < want.size(); ++axis) {
    positive = positive && pool.extents[axis] > 0;
    agrees = agrees && (want[axis] == kUnknownValue || want[axis] == pool.extents[axis]);
  }
  if (!positive || !agrees) {
    faults.push_back({what, fmt::format("extents are {}, not {}: build the pool with the collection's parameters",
                                        bracketed(pool.extents), bracketed(want))});
  } else if (pool.strides != row_major<6>(pool.extents)) {
    faults.push_back(
        {what, fmt::format("strides are {}, not the row-major {}: give padding between blocks as a page stride",
                           bracketed(pool.strides), bracketed(row_major<6>(pool.extents)))});
  }
}

}  // namespace

// --- paged -----------------------------------------------------------------------------------------------------------

PagedKVCacheCollection::PagedKVCacheCollection(const PagedCacheParams& params, const PagedTensors& tensors)
    : params_(params), tensors_(tensors) {
  check_params("PagedKVCacheCollection", params);
  if (!tensors_.scales_lookup_table) tensors_.scales_lookup_table = tensors_.lookup_table;

  std::vector<Fault> faults;
  require_pool(faults, "blocks", tensors.blocks, params.dtype, blocks_shape());
  if (tensors.scales) {
    if (!params.scale_dtype) {
      faults.push_back({"scales", "given to a collection without a scale dtype: say which, or leave the scales out"});
    } else {
      Shape<6> want = scales_shape();
      want[2] = tensors.blocks.dim(2);  // as many layers as the values
      require_pool(faults, "scales", *tensors.scales, *params.scale_dtype, want);
    }
  }
  if (!faults.empty()) throw GeometryError("PagedKVCacheCollection", std::move(faults));

  view_ = layer_view_layout("PagedKVCacheCollection blocks", tensors.blocks.extents, tensors.page_stride);
  if (tensors.scales) {
    scales_view_ =
        layer_view_layout("PagedKVCacheCollection scales", tensors.scales->extents, tensors.scales_page_stride);
  }
  // Checks of a layer (tables, lengths) run at construction, not at the first kernel launch.
  static_cast<void>(get_key_cache(LayerIdx{0}));
}

Shape<6> PagedKVCacheCollection::blocks_shape() const {
  return {kUnknownValue, kv(), kUnknownValue, page_size(), kv_params().num_heads, kv_params().head_size};
}
Shape<6> PagedKVCacheCollection::blocks_layout() const {
  return static_row_major<6>(blocks_shape());
}

Shape<6> PagedKVCacheCollection::scales_shape() const {
  return {kUnknownValue, kv(), kUnknownValue, page_size(), kv_params().num_heads, head_dim_granularity()};
}
Shape<6> PagedKVCacheCollection::scales_layout() const {
  return static_row_major<6>(scales_shape());
}

PagedKVCache PagedKVCacheCollection::get_cache(KOrV k_or_v, LayerIdx layer) const {
  if (k_or_v == KOrV::v && kv() == 1) {
    throw UnsupportedError(
        "PagedKVCacheCollection.get_value_cache: an MLA pool has one slot, and values are the first "
        "elements of the key rows: use get_key_cache");
  }
  check_index("PagedKVCacheCollection: layer", layer.value, layers(), "the pool has that many layers");
  PagedLayerTensors view{.blocks = layer_view(tensors_.blocks, view_, k_or_v, layer),
                         .cache_lengths = tensors_.cache_lengths,
                         .lookup_table = tensors_.lookup_table,
                         .max_seq_length = tensors_.max_seq_length,
                         .max_cache_length = tensors_.max_cache_length,
                         .scales_lookup_table = tensors_.scales_lookup_table,
                         .drops = tensors_.drops};
  if (tensors_.scales) view.scales = layer_view(*tensors_.scales, scales_view_, k_or_v, layer);
  return {params_, view};
}

std::int64_t PagedKVCacheCollection::cache_length(SeqIdx seq) const {
  check_index("PagedKVCacheCollection: sequence", seq.value, cache_lengths().dim(0), "the batch has that many rows");
  return cache_lengths().unchecked(seq.value);
}

// --- continuous ------------------------------------------------------------------------------------------------------

ContinuousBatchingKVCacheCollection::ContinuousBatchingKVCacheCollection(const KVCacheStaticParams& kv_params,
                                                                         const ContinuousTensors& tensors)
    : kv_params_(kv_params), tensors_(tensors) {
  if (tensors.blocks.dtype == DType::e2m1) {
    throw UnsupportedError(
        "ContinuousBatchingKVCacheCollection: e2m1 elements have no address: use a type of 8 "
        "bits or more");
  }
  std::vector<Fault> faults;
  require_pool(faults, "blocks", tensors.blocks, tensors.blocks.dtype, blocks_shape());
  if (tensors.blocks.dim(1) > 2) {
    faults.push_back({"blocks", fmt::format("{} slots: a pool has K and V, or K alone", tensors.blocks.dim(1))});
  }
  if (!faults.empty()) throw GeometryError("ContinuousBatchingKVCacheCollection", std::move(faults));
  view_ = compute_kv_cache_dynamic_shape_strides(tensors.blocks.extents);
  static_cast<void>(get_key_cache(LayerIdx{0}));
}

Shape<6> ContinuousBatchingKVCacheCollection::blocks_shape() const {
  return {kUnknownValue, kUnknownValue, kUnknownValue, kUnknownValue, kv_params_.num_heads, kv_params_.head_size};
}

ContinuousBatchingKVCache ContinuousBatchingKVCacheCollection::get_cache(KOrV k_or_v, LayerIdx layer) const {
  if (k_or_v == KOrV::v && blocks().dim(1) < 2) {
    throw UnsupportedError(
        "ContinuousBatchingKVCacheCollection.get_value_cache: the pool has one slot: use get_key_cache");
  }
  check_index("ContinuousBatchingKVCacheCollection: layer", layer.value, layers(), "the pool has that many layers");
  return {kv_params_, ContinuousLayerTensors{.blocks = layer_view(tensors_.blocks, view_, k_or_v, layer),
                                             .cache_lengths = tensors_.cache_lengths,
                                             .lookup_table = tensors_.lookup_table,
                                             .max_seq_length = tensors_.max_seq_length,
                                             .max_cache_length = tensors_.max_cache_length}};
}

std::int64_t ContinuousBatchingKVCacheCollection::cache_length(SeqIdx seq) const {
  check_index("ContinuousBatchingKVCacheCollection: sequence", seq.value, cache_lengths().dim(0),
              "the batch has that many rows");
  return cache_lengths().unchecked(seq.value);
}

}  // namespace kvscope
