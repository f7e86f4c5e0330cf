// K10: from shared memory to global memory by engines: a tile by a tensor store, bytes by a bulk store, sums by a bulk
// reduction. An engine observes stores of threads only after fence.proxy.async and a barrier. Shared memory that an
// engine still reads may be overwritten only after wait_group.read.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

extern "C" {
extern __shared__ __align__(1024) unsigned char tile[];  // [64 rows][32 floats], 128-byte rows, swizzled
__shared__ __align__(16) int run[256];
}

enum Bug { kNone = 0, kNotWaited = 34, kNoProxyFence = 19 };  // B34, B19

// Tile values first, first + 1, ...: element (row, column) is first + 32 row + column.
DEVICE void fill_tile(float first) {
  for (int i = threadIdx.x; i < 64 * 8; i += blockDim.x) {
    const int row = i / 8, chunk = i % 8;
    const float v = first + static_cast<float>(4 * i);
    *reinterpret_cast<float4*>(tile + row * 128 + (chunk ^ row % 8) * 16) = make_float4(v, v + 1, v + 2, v + 3);
  }
}

// The map: [rows][64] floats, box {32, 64}, 128-byte swizzle. copy: [256]. sums: [256], added to.
DEVICE void store_all(int bug, const TensorMapSlot* map, int* copy, int* sums) {
  fill_tile(0);
  for (int i = threadIdx.x; i < 256; i += blockDim.x) run[i] = 3 * i - 100;
  if (bug != kNoProxyFence) fence_proxy_async();
  __syncthreads();

  if (threadIdx.x == 0) {
    tensor_store_2d(map, 0, 0, shared_address(tile));
    bulk_store(copy, run, sizeof(run));
    bulk_add_s32(sums, run, sizeof(run));
    bulk_commit();
    if (bug != kNotWaited) bulk_wait_read<0>();  // the tile may be overwritten
  }
  if (bug == kNotWaited) return;
  __syncthreads();

  fill_tile(5000);
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tensor_store_2d(map, 32, 0, shared_address(tile));
    tensor_add_2d(map, 0, 64, shared_address(tile));
    bulk_commit();
    bulk_wait<0>();
  }
}

KERNEL store_tiles(const __grid_constant__ TensorMapSlot map, int* copy, int* sums) {
  store_all(kNone, &map, copy, sums);
}
KERNEL store_tiles_wrong(const __grid_constant__ TensorMapSlot map, int* copy, int* sums, int bug) {
  store_all(bug, &map, copy, sums);
}
