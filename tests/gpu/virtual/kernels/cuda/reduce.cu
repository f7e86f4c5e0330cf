// K04: the sum of an array. Each CTA adds its part in shared memory; the last CTA to finish adds the parts.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

DEVICE int block_sum(int mine) {
  __shared__ int partial[256];
  partial[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  const int sum = partial[0];
  __syncthreads();  // before the next call writes
  return sum;
}

__device__ unsigned ctas_done = 0;  // zero again after each launch

// total: by one atomic add per CTA. last: by the CTA that finishes last, from parts[gridDim.x].
KERNEL reduce(int* total, int* last, int* parts, const int* in, int n) {
  __shared__ bool is_last;
  int mine = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += in[i];
  const int sum = block_sum(mine);

  if (threadIdx.x == 0) {
    atomicAdd(total, sum);
    parts[blockIdx.x] = sum;
    __threadfence();  // a thread that observes the count also observes the part
    is_last = atomicInc(&ctas_done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;

  int rest = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) rest += static_cast<volatile int*>(parts)[i];
  const int everything = block_sum(rest);
  if (threadIdx.x == 0) *last = everything;
}
