#include "core/cache/layer_view.h"

#include <fmt/format.h>

#include "core/base/errors.h"

namespace kvscope {

LayerViewLayout compute_kv_cache_dynamic_shape_strides(const Shape<6>& pool) {
  LayerViewLayout layout;
  std::int64_t product = 1;
  std::size_t kept = layout.shape.size();
  for (std::size_t axis = pool.size(); axis-- > 0;) {
    if (axis != 1 && axis != 2) {
      --kept;
      layout.shape[kept] = pool[axis];
      layout.strides[kept] = product;
    }
    product = checked_mul(product, pool[axis], "pool size");
  }
  return layout;
}

LayerViewLayout layer_view_layout(std::string_view object, const Shape<6>& pool, std::int64_t page_stride) {
  LayerViewLayout layout = compute_kv_cache_dynamic_shape_strides(pool);
  if (page_stride == kUnknownValue) return layout;
  const std::int64_t row = layout.strides[1];
  if (page_stride < layout.strides[0]) {
    throw GeometryError(
        fmt::format("{}: a page stride of {} elements is less than the {} of a packed block, so pages "
                    "would overlap: give {} or more, or -1 for packed",
                    object, page_stride, layout.strides[0], layout.strides[0]));
  }
  if (page_stride % row != 0) {
    throw GeometryError(fmt::format("{}: a page stride of {} elements is not a whole number of rows of {}: use {}",
                                    object, page_stride, row, round_up(page_stride, row)));
  }
  layout.strides[0] = page_stride;
  return layout;
}

std::int64_t layer_view_offset(const Shape<6>& pool, KOrV k_or_v, LayerIdx layer) {
  const std::int64_t per_layer = pool[3] * pool[4] * pool[5];
  return (static_cast<std::int64_t>(k_or_v) * pool[2] + layer.value) * per_layer;
}

AnyView<4> layer_view(const AnyView<6>& pool, const LayerViewLayout& layout, KOrV k_or_v, LayerIdx layer) {
  return {pool.data + layer_view_offset(pool.extents, k_or_v, layer) * size_of(pool.dtype), pool.dtype, layout.shape,
          layout.strides};
}

}  // namespace kvscope
