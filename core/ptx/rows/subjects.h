// The handlers by subject. Each subject knows its instructions and answers nullptr for all others; those whose loops
// are compiled once per instruction set have three names.
#pragma once

#include "core/ptx/rows/ask.h"

namespace kvscope::ptx::rows {

[[nodiscard]] RowHandler integer_baseline(const Ask& ask);
[[nodiscard]] RowHandler integer_avx2(const Ask& ask);
[[nodiscard]] RowHandler integer_avx512(const Ask& ask);

[[nodiscard]] RowHandler bits_baseline(const Ask& ask);
[[nodiscard]] RowHandler bits_avx2(const Ask& ask);
[[nodiscard]] RowHandler bits_avx512(const Ask& ask);

[[nodiscard]] RowHandler compare_baseline(const Ask& ask);
[[nodiscard]] RowHandler compare_avx2(const Ask& ask);
[[nodiscard]] RowHandler compare_avx512(const Ask& ask);

[[nodiscard]] RowHandler float_baseline(const Ask& ask);
[[nodiscard]] RowHandler float_avx2(const Ask& ask);
[[nodiscard]] RowHandler float_avx512(const Ask& ask);

[[nodiscard]] RowHandler convert_baseline(const Ask& ask);
[[nodiscard]] RowHandler convert_avx2(const Ask& ask);
[[nodiscard]] RowHandler convert_avx512(const Ask& ask);

[[nodiscard]] RowHandler matrix_baseline(const Ask& ask);
[[nodiscard]] RowHandler matrix_avx2(const Ask& ask);
[[nodiscard]] RowHandler matrix_avx512(const Ask& ask);
[[nodiscard]] RowHandler approx_baseline(const Ask& ask);
[[nodiscard]] RowHandler approx_avx2(const Ask& ask);
[[nodiscard]] RowHandler approx_avx512(const Ask& ask);

// d += a b, row-major, each element's products added for k ascending.
void product_baseline(int m, int n, int k, const float* a, const float* b, float* d);
void product_avx2(int m, int n, int k, const float* a, const float* b, float* d);
void product_avx512(int m, int n, int k, const float* a, const float* b, float* d);

[[nodiscard]] RowHandler moves(const Ask& ask);         // mov of vectors
[[nodiscard]] RowHandler integer_rare(const Ask& ask);  // carries, division, dp4a, masks
[[nodiscard]] RowHandler compare_rare(const Ask& ask);  // set, setp of 16 bits, slct, testp, copysign
[[nodiscard]] RowHandler half(const Ask& ask);          // f16, bf16 and pairs of them
[[nodiscard]] RowHandler float_rare(
    const Ask& ask);  // directed roundings of f64, of quotients and roots; sin, cos, tanh
[[nodiscard]] RowHandler convert_narrow(const Ask& ask);  // cvt to and from 8 bits, tf32, pairs; cvt.pack
[[nodiscard]] RowHandler convert_any(const Ask& ask);     // the rest of cvt
[[nodiscard]] RowHandler matrices(const Ask& ask);        // mma of all types, movmatrix

}  // namespace kvscope::ptx::rows
