// Compiled with this instruction set switched on where the compiler has it (CMakeLists.txt), and without it elsewhere.
#include "core/attention/reference_kernels.h"

#if defined(__AVX512F__)
#include "core/attention/reference_loops.h"

namespace kvscope::attention {

const ReferenceKernels* avx512_kernels() {
  return Loops<8>::kernels();
}

}  // namespace kvscope::attention
#else
namespace kvscope::attention {

const ReferenceKernels* avx512_kernels() {
  return nullptr;
}

}  // namespace kvscope::attention
#endif
