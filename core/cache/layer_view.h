// From the 6-D pool to one layer's K or V, a 4-D view of the same memory: nothing is copied, two axes are fixed.
//
//   pool  [block, k_or_v, layer, page_row, head, head_dim]   row-major; continuous: page_row < max_seq_len
//           |       x       x       |        |       |
//   view  [block,                page_row, head, head_dim]      strides [s0, H*D, D, 1], base k_or_v * s1 + layer * s2
//
// Read as a matrix, a row is one token: H*D consecutive elements. From one page of the view to the next it is
// s0 / (H*D) rows; the rows in between belong to other layers and to the other one of K and V.
// Example: pool {5,2,3,4,2,8}: view strides {384,16,8,1}, 24 rows a block; V of layer 2 starts at element 320.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/index.h"
#include "core/layout/strided_view.h"

namespace kvscope {

// The value of an extent or stride that is known only at run time ("?" in shapes below).
inline constexpr std::int64_t kUnknownValue = -1;

struct LayerViewLayout {
  Shape<4> shape{};    // [block, page_row, head, head_dim]
  Shape<4> strides{};  // [elements]
  friend bool operator==(const LayerViewLayout&, const LayerViewLayout&) = default;
};

// Multiplies the pool's extents from the innermost on; axes 1 and 2 enter the product but are not part of the view.
[[nodiscard]] LayerViewLayout compute_kv_cache_dynamic_shape_strides(const Shape<6>& pool);

// The same, with a given block stride: `page_stride` [elements] replaces strides[0]; -1 keeps the packed one.
// GeometryError when it is not whole rows, or less than the packed stride (pages would overlap).
// Example: pool {5,2,3,4,2,8}: 400 -> 25 rows a block; 392 is 24.5 rows; 368 overlaps.
[[nodiscard]] LayerViewLayout layer_view_layout(std::string_view object, const Shape<6>& pool,
                                                std::int64_t page_stride);

// Offset of the layer's K or V in a packed pool [elements]. Precondition, here and below: `layer` and `k_or_v` are in
// range. Example: pool {5,2,3,4,2,8}: V of layer 2 -> 320.
[[nodiscard]] std::int64_t layer_view_offset(const Shape<6>& pool, KOrV k_or_v, LayerIdx layer);

[[nodiscard]] AnyView<4> layer_view(const AnyView<6>& pool, const LayerViewLayout& layout, KOrV k_or_v, LayerIdx layer);

// Row-major strides where some extents are kUnknownValue: a stride is unknown once an unknown extent is in its product.
// Example: {?,2,?,4,2,8} -> {?,?,64,16,8,1}.
template <int Rank>
[[nodiscard]] constexpr Shape<Rank> static_row_major(const Shape<Rank>& extents) {
  Shape<Rank> strides{};
  std::int64_t product = 1;
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = product;
    product = product == kUnknownValue || extents[axis] == kUnknownValue ? kUnknownValue : product * extents[axis];
  }
  return strides;
}

}  // namespace kvscope
