#include "core/attention/kv_operand.h"

#include "core/base/errors.h"

namespace kvscope::attention {
namespace {

PagedRows rows_of_blocks(const std::byte* data, DType dtype, const LayerViewLayout& layout) {
  PagedRows rows;
  rows.data = data;
  rows.dtype = dtype;
  rows.blocks = layout.shape[0];
  rows.page_size = layout.shape[1];
  rows.heads = layout.shape[2];
  rows.head_size = layout.shape[3];
  rows.block_stride = layout.strides[0];
  rows.token_stride = layout.strides[1];
  rows.head_stride = layout.strides[2];
  return rows;
}

PagedRows rows_of_blocks(const AnyView<4>& blocks) {
  return rows_of_blocks(blocks.data, blocks.dtype, {blocks.extents, blocks.strides});
}

void set_scales(PagedRows& rows, const std::byte* data, DType dtype, const Shape<4>& strides,
                std::int64_t granularity) {
  rows.scales = data;
  rows.scale_dtype = dtype;
  rows.granularity = granularity;
  rows.scale_block_stride = strides[0];
  rows.scale_token_stride = strides[1];
  rows.scale_head_stride = strides[2];
}

}  // namespace

PagedRows rows_of(const PagedKVCache& cache) {
  PagedRows rows = rows_of_blocks(cache.blocks());
  rows.table = cache.lookup_table().data;
  rows.table_stride = cache.lookup_table().stride(0);
  if (!cache.quantization_enabled()) return rows;
  if (!cache.scales()) {
    throw GeometryError("quantized PagedKVCache without scales: attention needs them to know what its elements mean");
  }
  const AnyView<4>& scales = *cache.scales();
  set_scales(rows, scales.data, scales.dtype, scales.strides, cache.quantization_granularity());
  rows.scale_blocks = scales.dim(0);
  rows.scales_table = cache.scales_lookup_table().data;
  rows.scales_table_stride = cache.scales_lookup_table().stride(0);
  return rows;
}

PagedRows rows_of(const ContinuousBatchingKVCache& cache) {
  PagedRows rows = rows_of_blocks(cache.blocks());
  rows.table = cache.lookup_table().data;
  rows.table_stride = cache.lookup_table().stride(0);
  return rows;
}

PagedRows rows_of_pool(const std::byte* data, DType dtype, const Shape<6>& pool, KOrV k_or_v, LayerIdx layer) {
  return rows_of_blocks(data + layer_view_offset(pool, k_or_v, layer) * size_of(dtype), dtype,
                        compute_kv_cache_dynamic_shape_strides(pool));
}

void set_scales(PagedRows& rows, const std::byte* data, DType dtype, const Shape<6>& pool, KOrV k_or_v, LayerIdx layer,
                std::int64_t granularity) {
  set_scales(rows, data + layer_view_offset(pool, k_or_v, layer) * size_of(dtype), dtype,
             compute_kv_cache_dynamic_shape_strides(pool).strides, granularity);
}

}  // namespace kvscope::attention
