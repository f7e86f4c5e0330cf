// K09: paged decode attention, correct.
#include "tests/gpu/virtual/kernels/cuda/decode.cuh"

KERNEL paged_decode(const __grid_constant__ TensorMapSlot k, const __grid_constant__ TensorMapSlot v, const int* table,
                    const uint4* q, float* out, int tokens, float scale) {
  decode::attend(decode::kNone, &k, &v, table, q, out, tokens, scale);
}
