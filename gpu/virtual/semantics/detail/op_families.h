// Finds handlers, one function per family of instructions. Each returns a handler for its own instructions and nullptr
// for all others. Families whose loops are compiled once per instruction set exist in three namespaces.
#pragma once

#include "gpu/virtual/semantics/detail/op_query.h"

namespace kvscope::ptx::semantics {

// Compiled once per instruction set. product: d += a b, row-major; the products of each element are added in ascending
// k.
namespace baseline {
[[nodiscard]] OpHandler integer_family(const OpQuery& query);
[[nodiscard]] OpHandler bits_family(const OpQuery& query);
[[nodiscard]] OpHandler compare_family(const OpQuery& query);
[[nodiscard]] OpHandler float_family(const OpQuery& query);
[[nodiscard]] OpHandler approx_family(const OpQuery& query);
[[nodiscard]] OpHandler convert_family(const OpQuery& query);
[[nodiscard]] OpHandler matrix_family(const OpQuery& query);
void product(int m, int n, int k, const float* a, const float* b, float* d);
}  // namespace baseline
namespace avx2 {
[[nodiscard]] OpHandler integer_family(const OpQuery& query);
[[nodiscard]] OpHandler bits_family(const OpQuery& query);
[[nodiscard]] OpHandler compare_family(const OpQuery& query);
[[nodiscard]] OpHandler float_family(const OpQuery& query);
[[nodiscard]] OpHandler approx_family(const OpQuery& query);
[[nodiscard]] OpHandler convert_family(const OpQuery& query);
[[nodiscard]] OpHandler matrix_family(const OpQuery& query);
void product(int m, int n, int k, const float* a, const float* b, float* d);
}  // namespace avx2
namespace avx512 {
[[nodiscard]] OpHandler integer_family(const OpQuery& query);
[[nodiscard]] OpHandler bits_family(const OpQuery& query);
[[nodiscard]] OpHandler compare_family(const OpQuery& query);
[[nodiscard]] OpHandler float_family(const OpQuery& query);
[[nodiscard]] OpHandler approx_family(const OpQuery& query);
[[nodiscard]] OpHandler convert_family(const OpQuery& query);
[[nodiscard]] OpHandler matrix_family(const OpQuery& query);
void product(int m, int n, int k, const float* a, const float* b, float* d);
}  // namespace avx512

[[nodiscard]] OpHandler moves(const OpQuery& query);             // mov of vectors
[[nodiscard]] OpHandler integer_lanewise(const OpQuery& query);  // carries, division, dp4a, masks
[[nodiscard]] OpHandler compare_lanewise(const OpQuery& query);  // set, setp of 16 bits, slct, testp, copysign
[[nodiscard]] OpHandler half(const OpQuery& query);              // f16, bf16 and pairs of them
[[nodiscard]] OpHandler float_lanewise(
    const OpQuery& query);  // directed roundings of f64, of quotients and roots; sin, cos, tanh
[[nodiscard]] OpHandler convert_narrow(const OpQuery& query);  // cvt to and from 8 bits, tf32, pairs; cvt.pack
[[nodiscard]] OpHandler convert_any(const OpQuery& query);     // the rest of cvt
[[nodiscard]] OpHandler matrices(const OpQuery& query);        // mma of all types, movmatrix

}  // namespace kvscope::ptx::semantics
