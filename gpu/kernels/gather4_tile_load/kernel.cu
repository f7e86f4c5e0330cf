// Copies tokens at arbitrary rows into shared memory, four rows at a time, and writes the window to global memory.
//
//   64 rows of 576 bf16, 128-byte swizzle: 9 groups of 64 columns, 16 fours of rows; [bytes] of the tile
//
//              group 0          group 1                 list   rows of the map
//   four 0     0 .. 511         8192 .. 8703            37     37 = block 2, slot 5, pages of 16; two layers, K and V:
//   four 1     512 .. 1023      8704 .. 9215                   2 * 64 + 5 = 133
//    ..                                                 -1     -1, outside every map: zeros, counted all the same
//   four 15    7680 .. 8191     15872 .. 16383
//
// From sm_100 on, one instruction has a column and four rows. On sm_90, four copies of one row each replace it; their
// destinations must be multiples of 128 bytes, so a row of a group must be 128 bytes or a multiple.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"
#include "gpu/kernels/gather4_tile_load/config.h"
#include "gpu/kernels/gather4_tile_load/params.h"

extern "C" {  // unmangled, for the names in reports
extern __shared__ __align__(1024) unsigned char window[];
}

namespace kvscope::gpu {
namespace {

// Row of the map of an encoded index. Rows below 0 are outside every map: negative indices are kept and load zeros.
DEVICE int row_of(const PagedCache& cache, int encoded) {
  if (encoded < 0) return encoded;
  const int block = encoded / cache.page_size;
  const int rows_of_a_block = static_cast<int>(cache.block_stride / cache.token_stride);
  return block * rows_of_a_block + (encoded - block * cache.page_size);
}

DEVICE void load_four(const Gather4TileLoadParams& p, uint32_t to, int column, const int (&rows)[4], uint64_t* full) {
#if __CUDA_ARCH__ >= 1000
  tensor_gather4(to, &p.map, column, rows, full);
#else
  for (int i = 0; i < 4; ++i) tensor_load_2d(to + i * p.box_bytes, &p.map, column, rows[i], full);
#endif
}

}  // namespace

KERNEL __launch_bounds__(kGatherThreads) gather4_tile_load(const __grid_constant__ Gather4TileLoadParams p) {
  const int thread = static_cast<int>(threadIdx.x);
  uint64_t* const full = reinterpret_cast<uint64_t*>(window + p.window_bytes);
  uint4* const chunks_of_16 = reinterpret_cast<uint4*>(window);
  constexpr uint32_t kPoisonWord = kGatherPoison * 0x01010101U;
  for (int i = thread; i < p.window_bytes / 16; i += kGatherThreads)
    chunks_of_16[i] = make_uint4(kPoisonWord, kPoisonWord, kPoisonWord, kPoisonWord);
  fence_proxy_async();  // each thread, for its own stores: the copies follow
  if (thread == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  if (thread < 32) {  // one lane per four rows: rows are looked up once for all groups
    if (thread == 0) mbarrier_arrive_expect_tx(full, static_cast<uint32_t>(p.tile_rows * p.groups * p.box_bytes));
    __syncwarp();
    const int32_t* const list = p.indices + static_cast<int64_t>(blockIdx.y) * p.index_stride;
    const int last = max(p.counts[blockIdx.y], 1) - 1;  // past it, the last entry is repeated
    const int first = static_cast<int>(blockIdx.x) * p.tile_rows;
    const uint32_t tile = shared_address(window) + p.tile_at;
    for (int four = thread; four < p.tile_rows / 4; four += 32) {
      int rows[4];
      for (int i = 0; i < 4; ++i) rows[i] = row_of(p.cache, list[min(first + 4 * four + i, last)]);
      for (int group = 0; group < p.groups; ++group)
        load_four(p, tile + (group * p.tile_rows + 4 * four) * p.box_bytes, group * p.box_columns, rows, full);
    }
  }
  mbarrier_wait(full, 0);

  const int64_t number = static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
  uint4* const out = reinterpret_cast<uint4*>(p.windows + number * p.window_bytes);
  for (int i = thread; i < p.window_bytes / 16; i += kGatherThreads) out[i] = chunks_of_16[i];
}

}  // namespace kvscope::gpu
