// One element of a matrix product in modes exact and hopper (op.h), which are not a plain loop of additions.
#pragma once

#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx::semantics {

// c + a[0] b[0] + a[1] b[stride] + ...: the result as a float; for D in f16, a float that is an f16 number.
[[nodiscard]] float exact_element(const MatrixProduct& product, float c, const float* a, const float* b, int stride);

// How an H100 adds the products of these types: the products of a group and the sum so far are aligned to the largest of them, cut `fraction`
// bits behind its leading bit, added, and truncated.
inline constexpr int kMostHopperGroup = 32;
struct HopperRules {
  int group = 0;                              // products
  int fraction = 0;                           // bits
  int least_a = 0, least_b = 0, least_d = 0;  // the exponents that subnormal numbers count with
  int dropped = 0;                            // of the bits of an f32 after truncation
  bool half = false;                          // D in f16, rounded to nearest
};
[[nodiscard]] HopperRules hopper_rules(const MatrixProduct& product);
[[nodiscard]] float hopper_element(const MatrixProduct& product, float c, const float* a, const float* b, int stride);

}  // namespace kvscope::ptx::semantics
