// One element of a matrix product in modes exact and hopper (op.h), which are not a plain loop of additions.
#pragma once

#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx::semantics {

// c + a[0] b[0] + a[1] b[stride] + ...: the result as a float; for D in f16, a float that is an f16 number.
[[nodiscard]] float exact_element(const MatrixProduct& product, float c, const float* a, const float* b, int stride);
[[nodiscard]] float hopper_element(const MatrixProduct& product, float c, const float* a, const float* b, int stride);

}  // namespace kvscope::ptx::semantics
