// Compiled with this instruction set switched on where the compiler has it (CMakeLists.txt), and without it elsewhere.
#include "core/ptx/rows/subjects.h"

#if defined(__AVX512F__)
#include "core/ptx/rows/compare_loops.h"

namespace kvscope::ptx::rows {

RowHandler compare_avx512(const Ask& ask) {
  return find_comparison(ask);
}

}  // namespace kvscope::ptx::rows
#else
namespace kvscope::ptx::rows {

RowHandler compare_avx512(const Ask& ask) {
  return compare_baseline(ask);
}

}  // namespace kvscope::ptx::rows
#endif
