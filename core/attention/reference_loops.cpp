// Compiled once per instruction set (CMakeLists.txt).
#include "core/attention/detail/reference_loops.h"

#include "core/attention/detail/fast_loops.h"

namespace kvscope::attention::KVSCOPE_ISA {

const ReferenceKernels* reference_kernels() {
#if defined(__AVX512F__)
  return kernels_of<8>();
#elif defined(__AVX2__)
  return kernels_of<4>();
#else
  return kernels_of<2>();
#endif
}

}  // namespace kvscope::attention::KVSCOPE_ISA
