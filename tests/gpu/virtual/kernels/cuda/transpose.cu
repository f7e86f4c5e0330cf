// K05: transposes a 32 x 32 tile in shared memory. With rows of 32 words a column is in one bank; with 33 in all banks.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

template <int kPitch>
DEVICE void transpose(float* out, const float* in) {
  __shared__ float tile[32 * kPitch];
  const unsigned column = threadIdx.x % 32, first = threadIdx.x / 32;
  for (unsigned row = first; row < 32; row += 8) tile[row * kPitch + column] = in[row * 32 + column];
  __syncthreads();
  for (unsigned row = first; row < 32; row += 8) out[row * 32 + column] = tile[column * kPitch + row];
}

KERNEL transpose_pitch_32(float* out, const float* in) {
  transpose<32>(out, in);
}
KERNEL transpose_pitch_33(float* out, const float* in) {
  transpose<33>(out, in);
}
