// Compiled once per instruction set (CMakeLists.txt).
#include "core/attention/detail/reference_loops.h"

#include "core/attention/detail/fast_loops.h"
#include "core/base/lanes.h"

namespace kvscope::attention::KVSCOPE_ISA {

const ReferenceKernels* reference_kernels() {
  return kernels_of<kWidestLanes>();
}

}  // namespace kvscope::attention::KVSCOPE_ISA
