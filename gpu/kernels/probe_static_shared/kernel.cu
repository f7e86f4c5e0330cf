// A static array larger than the 48 KiB that a kernel may have without opting in. The probe tests whether a driver
// loads and launches it; it is a separate image so that a rejected one does not affect the other probes.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"
#include "gpu/kernels/probes/config.h"
#include "gpu/kernels/probes/params.h"

namespace kvscope::gpu {

// The sum over all words is words * (words - 1) / 2: their addresses are distinct.
KERNEL probe_static_shared(const __grid_constant__ ProbeSharedBaseParams p) {
  constexpr int kWords = kProbeLargeStatic / 4;
  __shared__ uint32_t large[kWords];
  for (int i = threadIdx.x; i < kWords; i += kProbeThreads) large[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t sum = 0;
#pragma unroll 1
    for (int i = 0; i < kWords; ++i) sum += large[i];
    p.seen[0] = 0;
    p.seen[1] = shared_address(large);
    p.seen[2] = sum;
  }
}

}  // namespace kvscope::gpu
