// Compiled with this instruction set switched on where the compiler has it (CMakeLists.txt), and without it elsewhere.
#include "core/attention/reference_kernels.h"

#if defined(__AVX2__)
#include "core/attention/reference_loops.h"

namespace kvscope::attention {

const ReferenceKernels* avx2_kernels() {
  return Loops<4>::kernels();
}

}  // namespace kvscope::attention
#else
namespace kvscope::attention {

const ReferenceKernels* avx2_kernels() {
  return nullptr;
}

}  // namespace kvscope::attention
#endif
