// Reverses 512 numbers in shared memory; the copy engine writes them to global memory. 128 threads per CTA.
#include "copies.h"

extern "C" __global__ void store(const int* x, int* out) {
  __shared__ __align__(16) int tile[512];
  const int t = threadIdx.x;
  for (int i = t; i < 512; i += 128) tile[511 - i] = x[blockIdx.x * 512 + i];
  __syncthreads();
  if (t == 0) bulk_store(out + blockIdx.x * 512, tile, 2048);
}
