// Nested inlined functions, and inline assembly whose scopes declare the same names.
__device__ __forceinline__ float square(float x) { return x * x; }
__device__ __forceinline__ float norm(const float* v) {
  return square(v[0]) + square(v[1]);
}
__device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tWAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
      "@p bra DONE;\n\tbra WAIT;\n\tDONE:\n\t}" ::"r"(barrier), "r"(parity));
}

__global__ void inlining(const float* v, float* out, unsigned barrier) {
  wait(barrier, 0);
  wait(barrier, 1);
  out[threadIdx.x] = norm(v + threadIdx.x);
}
