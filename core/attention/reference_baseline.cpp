#include "core/attention/reference_loops.h"

namespace kvscope::attention {

const ReferenceKernels* baseline_kernels() {
  return Loops<2>::kernels();
}

}  // namespace kvscope::attention
