// The candidate of a kernel that computes a problem of attention without rounding but that of its f32 output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

inline Tensor as_f32(const auto& array) {
  std::vector<std::int64_t> shape;
  for (const auto extent : array.shape()) shape.push_back(static_cast<std::int64_t>(extent));
  Tensor tensor = make_tensor(DType::f32, std::move(shape));
  convert(DType::f64, reinterpret_cast<const std::byte*>(array.data()), DType::f32, tensor.bytes.data(),
          static_cast<std::int64_t>(array.size()), Overflow::non_saturating);
  return tensor;
}

inline Bundle candidate_of(const attention::Result& result) {
  return {{{"o", as_f32(result.o)}, {"lse", as_f32(result.lse)}}, {}};
}

}  // namespace kvscope::golden
