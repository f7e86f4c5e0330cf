// The tile of scores with one mistake, a number of qk::Bug; qk.cu is the correct kernel.
#include "tests/gpu/virtual/kernels/cuda/qk.cuh"

KERNEL qk_tensor_wrong(const __grid_constant__ TensorMapSlot keys, const uint4* q, float* scores, int bug) {
  qk::by_tensor_copies(bug, &keys, q, scores);
}
KERNEL qk_cp_async_wrong(const uint4* k, const uint4* q, float* scores, int bug) {
  qk::by_cp_async(bug, k, q, scores);
}
