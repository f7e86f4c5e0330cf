// K08: a tile of attention scores, correct; and K24, the same built with -G.
#include "tests/gpu/virtual/kernels/cuda/qk.cuh"

KERNEL qk_tensor(const __grid_constant__ TensorMapSlot keys, const uint4* q, float* scores) {
  qk::by_tensor_copies(qk::kNone, &keys, q, scores);
}
KERNEL qk_cp_async(const uint4* k, const uint4* q, float* scores) {
  qk::by_cp_async(qk::kNone, k, q, scores);
}
