// Sums of rows, one block each: shared memory, a warp's exchange, an atomic, a device function that is not inlined.
// block_sums.sm_90a.ptx, block_sums.sm_100a.ptx: nvcc 13.0 -ptx -arch=...
#include <cuda_fp16.h>

__device__ __noinline__ float scaled(float x, const float* scale, int row) { return x * scale[row & 3] + 1.5f; }

extern "C" __global__ void block_sums(const float* in, const float* scale, float* out, unsigned* blocks, int n) {
  __shared__ float partial[4];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += scaled(in[blockIdx.x * n + i], scale, blockIdx.x);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    out[blockIdx.x] = partial[0] + partial[1] + partial[2] + partial[3];
    __threadfence();
    if (atomicInc(blocks, gridDim.x - 1) == gridDim.x - 1) out[gridDim.x] = __half2float(__float2half(out[0]));
  }
}
