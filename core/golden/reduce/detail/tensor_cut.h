// Parts of a tensor: entries of one axis, and index tensors as 64-bit integers.
//
// Example: take([[1, 2, 3], [4, 5, 6]], axis 1, {2, 0}) is [[3, 1], [6, 4]].
#pragma once

#include <cstdint>
#include <vector>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

using Indices = std::vector<std::int64_t>;

// 0, 1, ..., count - 1.
[[nodiscard]] Indices range_of(std::int64_t count);

// The entries `indices` of one axis. Precondition: a type of whole bytes, indices inside the axis.
[[nodiscard]] Tensor take(const Tensor& tensor, std::size_t axis, const Indices& indices);

// The elements of a tensor of i32, u32, i64 or u64, and a tensor of these elements.
[[nodiscard]] Indices integers_of(const Tensor& tensor);
[[nodiscard]] Tensor integers_as(DType dtype, std::vector<std::int64_t> shape, const Indices& numbers);

}  // namespace kvscope::golden
