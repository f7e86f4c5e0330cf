// A named tensor as it stands in a file: element type, shape, row-major bytes. What bundles are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/json.h"

namespace kvscope::golden {

struct Tensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;  // row-major; size = count * size_of(dtype)
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// Tensors by name, and what a reader must know to use them: layout, conventions, seed, producer, strides, format version.
struct Bundle {
  std::map<std::string, Tensor> tensors;
  json::Value manifest;
};

}  // namespace kvscope::golden
