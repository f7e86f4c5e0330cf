// out[c] = the sum of the 256 numbers of CTA c. The launch has 256 threads per CTA.
extern "C" __global__ void sum(const int* x, int* out) {
  __shared__ int part[256];
  const int t = threadIdx.x;
  part[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}
