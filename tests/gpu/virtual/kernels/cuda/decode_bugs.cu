// Paged decode attention with one mistake, a number of decode::Bug; decode.cu is the correct kernel.
#include "tests/gpu/virtual/kernels/cuda/decode.cuh"

KERNEL paged_decode_wrong(const __grid_constant__ TensorMapSlot k, const __grid_constant__ TensorMapSlot v,
                          const int* table, const uint4* q, float* out, int tokens, float scale, int bug) {
  decode::attend(bug, &k, &v, table, q, out, tokens, scale);
}
