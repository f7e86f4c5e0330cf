#include "core/golden/reduce/detail/tensor_cut.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace kvscope::golden {

Indices range_of(std::int64_t count) {
  Indices all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Tensor take(const Tensor& tensor, std::size_t axis, const Indices& indices) {
  if (indices == range_of(tensor.shape[axis])) return tensor;
  std::vector<std::int64_t> shape = tensor.shape;
  shape[axis] = static_cast<std::int64_t>(indices.size());
  Tensor out = make_tensor(tensor.dtype, shape);
  std::int64_t outer = 1, run = size_of(tensor.dtype);
  for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) run *= shape[i];
  if (run == 0) return out;
  std::byte* to = out.bytes.data();
  for (std::int64_t o = 0; o < outer; ++o) {
    const std::byte* from = tensor.bytes.data() + o * tensor.shape[axis] * run;
    for (const std::int64_t index : indices) {
      std::memcpy(to, from + index * run, static_cast<std::size_t>(run));
      to += run;
    }
  }
  return out;
}

Indices integers_of(const Tensor& tensor) {
  Indices out;
  const auto append = [&]<class T>(T) {
    for (const T value : values<T>(tensor)) out.push_back(static_cast<std::int64_t>(value));
  };
  switch (tensor.dtype) {
    case DType::i32:
      append(std::int32_t{});
      break;
    case DType::u32:
      append(std::uint32_t{});
      break;
    case DType::u64:
      append(std::uint64_t{});
      break;
    default:
      append(std::int64_t{});
      break;
  }
  return out;
}

Tensor integers_as(DType dtype, std::vector<std::int64_t> shape, const Indices& numbers) {
  Tensor tensor = make_tensor(dtype, std::move(shape));
  const auto fill = [&]<class T>(T) {
    std::ranges::transform(numbers, values<T>(tensor).begin(), [](std::int64_t n) { return static_cast<T>(n); });
  };
  switch (dtype) {
    case DType::i32:
      fill(std::int32_t{});
      break;
    case DType::u32:
      fill(std::uint32_t{});
      break;
    case DType::u64:
      fill(std::uint64_t{});
      break;
    default:
      fill(std::int64_t{});
      break;
  }
  return tensor;
}

}  // namespace kvscope::golden
