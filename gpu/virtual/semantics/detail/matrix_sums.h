// One element of a matrix product whose sum is no plain loop: modes exact and hopper (op.h).
#pragma once

#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx::semantics {

// c + a[0] b[0] + a[1] b[stride] + ...: the result as a float; of f16, one that is an f16 number.
[[nodiscard]] float exact_element(const MatrixProduct& product, float c, const float* a, const float* b, int stride);
[[nodiscard]] float hopper_element(const MatrixProduct& product, float c, const float* a, const float* b, int stride);

}  // namespace kvscope::ptx::semantics
