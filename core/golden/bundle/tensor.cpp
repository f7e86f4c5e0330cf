#include "core/golden/bundle/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/base/checked.h"

namespace kvscope::golden {

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, extent, &product)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : product;
}

std::optional<std::int64_t> byte_count(DType dtype, std::span<const std::int64_t> shape) {
  const auto count = element_count(shape);
  std::int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, size_of(dtype), &bytes)) return std::nullopt;
  return bytes;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", name(tensor.dtype), shape_text(tensor.shape));
}

Tensor make_tensor(DType dtype, std::vector<std::int64_t> shape) {
  const auto bytes = byte_count(dtype, shape);
  if (!bytes) throw OverflowError(fmt::format("a tensor of shape {} does not fit in memory", shape_text(shape)));
  return {dtype, std::move(shape), std::vector<std::byte>(static_cast<std::size_t>(*bytes))};
}

Tensor reinterpret_as(Tensor tensor, DType dtype) {
  if (bits(dtype) != bits(tensor.dtype)) {
    throw GeometryError(fmt::format("a {} element has {} bits and cannot be read as {}, which has {}",
                                    name(tensor.dtype), bits(tensor.dtype), name(dtype), bits(dtype)));
  }
  tensor.dtype = dtype;
  return tensor;
}

}  // namespace kvscope::golden
