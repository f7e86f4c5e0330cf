__global__ void reverse(float* out, const float* in) {
  __shared__ float words[64];
  words[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = words[63 - threadIdx.x];
}
