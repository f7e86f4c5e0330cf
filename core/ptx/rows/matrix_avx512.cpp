// Compiled with this instruction set switched on where the compiler has it (CMakeLists.txt), and without it elsewhere.
#include "core/ptx/rows/subjects.h"

#if defined(__AVX512F__)
#include "core/ptx/rows/matrix_loops.h"

namespace kvscope::ptx::rows {

RowHandler matrix_avx512(const Ask& ask) {
  return find_mma_in_order(ask);
}
void product_avx512(int m, int n, int k, const float* a, const float* b, float* d) {
  product_in_order(m, n, k, a, b, d);
}

}  // namespace kvscope::ptx::rows
#else
namespace kvscope::ptx::rows {

RowHandler matrix_avx512(const Ask& ask) {
  return matrix_baseline(ask);
}
void product_avx512(int m, int n, int k, const float* a, const float* b, float* d) {
  product_baseline(m, n, k, a, b, d);
}

}  // namespace kvscope::ptx::rows
#endif
