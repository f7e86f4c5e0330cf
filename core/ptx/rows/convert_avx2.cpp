// Compiled with this instruction set switched on where the compiler has it (CMakeLists.txt), and without it elsewhere.
#include "core/ptx/rows/subjects.h"

#if defined(__AVX2__)
#include "core/ptx/rows/convert_loops.h"

namespace kvscope::ptx::rows {

RowHandler convert_avx2(const Ask& ask) {
  return find_conversion(ask);
}

}  // namespace kvscope::ptx::rows
#else
namespace kvscope::ptx::rows {

RowHandler convert_avx2(const Ask& ask) {
  return convert_baseline(ask);
}

}  // namespace kvscope::ptx::rows
#endif
