// Compiled once per instruction set (CMakeLists.txt).
#include "core/attention/detail/reference_loops.h"

namespace kvscope::attention::KVSCOPE_ISA {

const ReferenceKernels* reference_kernels() {
#if defined(__AVX512F__)
  return Loops<8>::kernels();
#elif defined(__AVX2__)
  return Loops<4>::kernels();
#else
  return Loops<2>::kernels();
#endif
}

}  // namespace kvscope::attention::KVSCOPE_ISA
