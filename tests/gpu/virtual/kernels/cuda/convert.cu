// K16: every 16-bit pattern to 8 bits and back. One thread per pattern pair, as the instructions process pairs.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

// The low byte is the low pattern's.
KERNEL encode_bf16(uint16_t* e4m3, uint16_t* e5m2, const uint32_t* pairs, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const float low = __uint_as_float(pairs[i] << 16), high = __uint_as_float(pairs[i] & 0xffff0000);
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(e4m3[i]) : "f"(high), "f"(low));
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(e5m2[i]) : "f"(high), "f"(low));
}
KERNEL encode_f16(uint16_t* e4m3, uint16_t* e5m2, const uint32_t* pairs, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(e4m3[i]) : "r"(pairs[i]));
  asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(e5m2[i]) : "r"(pairs[i]));
}
// All 256 patterns of each, two per thread: to fp16.
KERNEL decode_fp8(uint32_t* e4m3, uint32_t* e5m2) {
  const uint16_t pair = static_cast<uint16_t>(threadIdx.x * 2 | (threadIdx.x * 2 + 1) << 8);
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(e4m3[threadIdx.x]) : "h"(pair));
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(e5m2[threadIdx.x]) : "h"(pair));
}
