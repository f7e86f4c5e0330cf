// K22: atomics beyond one word: four floats, pairs of bf16, 16 bits, 128 bits.
#include <cuda_bf16.h>

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

KERNEL add_float4(float4* sums, const float4* in, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) atomicAdd(&sums[i % 3], in[i]);
}

KERNEL add_bf16x2(__nv_bfloat162* sums, const __nv_bfloat162* in, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) atomicAdd(&sums[i % 5], in[i]);
}

// The largest of 16-bit values by compare and swap.
KERNEL max_u16(unsigned short* most, const unsigned short* in, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  unsigned short* to = &most[i % 2];
  unsigned short seen = *static_cast<volatile unsigned short*>(to);
  while (in[i] > seen) {
    const unsigned short before = atomicCAS(to, seen, in[i]);
    if (before == seen) break;
    seen = before;
  }
}

// Each thread exchanges 128 bits and keeps the old value, so the values rotate.
KERNEL exchange_128(ulonglong2* slot, ulonglong2* taken) {
  const unsigned i = threadIdx.x;
  uint64_t low = i + 1, high = ~static_cast<uint64_t>(i);
  asm volatile("{.reg .b128 v; mov.b128 v, {%0, %1}; atom.global.exch.b128 v, [%2], v; mov.b128 {%0, %1}, v;}"
               : "+l"(low), "+l"(high)
               : "l"(slot)
               : "memory");
  taken[i] = make_ulonglong2(low, high);
}

// Counters that wrap, of one word, shared and global.
KERNEL wrapping_counters(unsigned* out) {
  __shared__ unsigned up, down;
  if (threadIdx.x == 0) up = 0, down = 4;
  __syncthreads();
  atomicInc(&up, 9);
  atomicDec(&down, 6);
  atomicXor(&out[2], 1u << (threadIdx.x % 32));
  atomicMax(reinterpret_cast<int*>(&out[3]), static_cast<int>(threadIdx.x) - 40);
  __syncthreads();
  if (threadIdx.x == 0) out[0] = up, out[1] = down;
}
