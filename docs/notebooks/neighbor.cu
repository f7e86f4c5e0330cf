// Differences of neighbors through shared memory: out[i] = in[i + 1] - in[i] within a block. 64 threads. Compiled into
// neighbor.ptx by: nvcc -ptx -lineinfo -arch=sm_90 neighbor.cu
extern "C" __global__ void no_barrier(const float* in, float* out) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  tile[i] = in[i];
  out[i] = (i < 63 ? tile[i + 1] : 0.0f) - tile[i];
}

extern "C" __global__ void with_barrier(const float* in, float* out) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  tile[i] = in[i];
  __syncthreads();
  out[i] = (i < 63 ? tile[i + 1] : 0.0f) - tile[i];
}

// The same for `parts` parts of the input, one after the other in the same shared memory.
extern "C" __global__ void in_a_loop(const float* in, float* out, int parts) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  for (int part = 0; part < parts; ++part) {
    tile[i] = in[64 * part + i];
    __syncthreads();
    out[64 * part + i] = (i < 63 ? tile[i + 1] : 0.0f) - tile[i];
  }
}
