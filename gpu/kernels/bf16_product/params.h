// Parameters of bf16_product: C = A B^T, sums in fp32, rounded once.
//
//   A [m, k]   map {k, m}, box {64, 128}      B [n, k]   map {k, n}, box {64, 256}      both with 128-byte swizzle
//   C [m, n]
//
// Precondition (caller): m, n and k are multiples of the tile (config.h).
#pragma once

#include <cstdint>

#include "gpu/kernels/common/tensor_map_slot.h"

namespace kvscope::gpu {

struct Bf16ProductParams {
  TensorMapSlot a, b;
  void* c = nullptr;  // bf16
  std::int32_t m = 0, n = 0, k = 0;
};

}  // namespace kvscope::gpu
