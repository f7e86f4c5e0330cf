// K01 and K02: the simplest kernels. One thread per element, and a loop with a divergent branch.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

// y = a x. The grid is larger than the array: the last threads have no element.
KERNEL scale(float* y, const float* x, float a, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = a * x[i];
}

// n rounds of a fused multiply-add and a xorshift generator; half of the lanes, different ones each round, subtract.
KERNEL alu_rounds(float* out, const float* in, int n) {
  const unsigned t = threadIdx.x;
  float a = in[t];
  uint32_t u = t;
  for (int i = 0; i < n; ++i) {
    a = a * 1.0001f + 0.5f;  // one instruction, one rounding
    u ^= u << 13;
    u ^= u >> 17;
    u ^= u << 5;
    if (u & 1) a -= in[u & 127];
  }
  out[t] = a + u;
}
