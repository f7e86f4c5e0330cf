// A named tensor as in a file: element type, shape, row-major bytes. Bundles consist of them.
// Example: a bf16 tensor of shape [2, 3] has 6 elements and 12 bytes; a shape of [] is one element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/golden/bundle/tensor_bytes.h"
#include "core/layout/strided_view.h"

namespace kvscope::golden {

struct Tensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  TensorBytes bytes;  // row-major; size = count * size_of(dtype)
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// Tensors by name, and the manifest needed to use them: layout, conventions, seed, producer,
// strides, format version.
struct Bundle {
  std::map<std::string, Tensor> tensors;
  json::Value manifest;
};

// Maximum number of axes, as in NumPy. A file that claims more is rejected.
inline constexpr std::size_t kMaxRank = 32;
// Larger files are rejected before they are read. // [bytes]
inline constexpr std::int64_t kMaxFileBytes = std::int64_t{64} << 30;

// Elements of a shape; empty when an extent is negative, or when the product of the extents other than zero exceeds
// 2^63 - 1: [0, 2^40, 2^40] holds no element but its strides overflow.
[[nodiscard]] std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape);

// Bytes of `shape` elements of `dtype`; empty when element_count() is empty or the bytes overflow.
[[nodiscard]] std::optional<std::int64_t> byte_count(DType dtype, std::span<const std::int64_t> shape);

// "[2, 3]"; "[]" for a single element.
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);

// The shape with its rank in the type; GeometryError for another rank.
template <int Rank>
[[nodiscard]] Shape<Rank> shape_of(const Tensor& tensor) {
  Shape<Rank> shape{};
  if (tensor.shape.size() != shape.size()) {
    throw GeometryError("a tensor of shape " + shape_text(tensor.shape) + " has no " + std::to_string(Rank) + " axes");
  }
  std::copy(tensor.shape.begin(), tensor.shape.end(), shape.begin());
  return shape;
}

// "bf16 [2, 3]".
[[nodiscard]] std::string describe(const Tensor& tensor);

// Zero-filled. OverflowError when the shape does not fit.
[[nodiscard]] Tensor make_tensor(DType dtype, std::vector<std::int64_t> shape);

// The same bytes read as another type of the same width: u16 as bf16. GeometryError when the widths differ.
[[nodiscard]] Tensor reinterpret_as(Tensor tensor, DType dtype);

// Bytes as text, without a copy: for checksums and files.
[[nodiscard]] inline std::string_view as_text(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

// The elements as C++ values; the tensor's dtype must be that of T. Vectors are aligned for each element type.
template <class T>
[[nodiscard]] std::span<const T> values(const Tensor& tensor) {
  KVSCOPE_ASSERT(tensor.dtype == dtype_of<T>);
  return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
}
template <class T>
[[nodiscard]] std::span<T> values(Tensor& tensor) {
  KVSCOPE_ASSERT(tensor.dtype == dtype_of<T>);
  return {reinterpret_cast<T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
}

// A tensor with a copy of `elements`; GeometryError when their number does not match the shape.
template <class T>
[[nodiscard]] Tensor tensor_of(std::vector<std::int64_t> shape, std::span<const T> elements) {
  Tensor tensor = make_tensor(dtype_of<T>, std::move(shape));
  if (tensor.bytes.size() != elements.size_bytes()) {
    throw GeometryError("tensor " + describe(tensor) + " cannot hold " + std::to_string(elements.size()) + " elements");
  }
  const auto bytes = std::as_bytes(elements);
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
}

}  // namespace kvscope::golden
