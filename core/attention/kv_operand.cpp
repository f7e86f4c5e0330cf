#include "core/attention/kv_operand.h"

#include <fmt/format.h>

#include "core/base/errors.h"

namespace kvscope::attention {
namespace {

PagedRows rows_of_blocks(const AnyView<4>& blocks) {
  PagedRows rows;
  rows.data = blocks.data;
  rows.dtype = blocks.dtype;
  rows.blocks = blocks.dim(0);
  rows.page_size = blocks.dim(1);
  rows.heads = blocks.dim(2);
  rows.head_size = blocks.dim(3);
  rows.block_stride = blocks.stride(0);
  rows.token_stride = blocks.stride(1);
  rows.head_stride = blocks.stride(2);
  return rows;
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
  rows.scales = scales.data;
  rows.scale_dtype = scales.dtype;
  rows.granularity = cache.quantization_granularity();
  rows.scale_block_stride = scales.stride(0);
  rows.scale_token_stride = scales.stride(1);
  rows.scale_head_stride = scales.stride(2);
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

PagedRows mla_values(const PagedRows& k, std::int64_t value_size) {
  if (value_size < 1 || value_size > k.head_size) {
    throw GeometryError(fmt::format("values of an MLA row: {} elements of a row of {}: 1 to {} can be read", value_size,
                                    k.head_size, k.head_size));
  }
  PagedRows v = k;
  v.head_size = value_size;
  return v;
}

}  // namespace kvscope::attention
