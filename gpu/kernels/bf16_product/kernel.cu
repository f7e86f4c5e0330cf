// A large bf16 product by warpgroup matrix instructions: the throughput of the tensor cores with little overhead,
// the reference for the times of attention kernels.
//
//   warpgroup 0, 1   64 rows of a tile of C each, all its 256 columns: 128 sums a thread
//   warpgroup 2      one thread loads steps of 64 columns of A (128 rows) and of B (256 rows)
//
//   shared   stage 0: A 16384, B 32768 | stage 1 | stage 2 | stage 3 | full[4], empty[4]
//
// Rows of A and B are 128 bytes per step, swizzled by the copy engine as the products expect. A step is 2.1 million
// multiply-adds, 1024 clocks of the tensor cores, so three steps in flight cover the latency of memory.
//
// Tiles are processed in bands of 16 rows of tiles, column by column: 132 CTAs work on about 16 x 8 tiles, 2048 rows of
// A and 2048 of B, which fit in the L2 cache.
// Example: with 64 x 32 tiles, tile 0 is (0, 0), 15 is (15, 0), 16 is (0, 1), 512 is (16, 0).
#include <cstdint>

#include "gpu/kernels/bf16_product/config.h"
#include "gpu/kernels/bf16_product/params.h"
#include "gpu/kernels/common/number.cuh"
#include "gpu/kernels/common/wgmma.cuh"

namespace kvscope::gpu {
namespace {

using namespace product;

constexpr int kConsumerWarps = 8;

extern "C" {
extern __shared__ __align__(1024) unsigned char product_shared[];
}

struct Barriers {
  uint64_t full[kStages], empty[kStages];
};
DEVICE Barriers& barriers() {
  return *reinterpret_cast<Barriers*>(product_shared + kStages * kStageBytes);
}
DEVICE uint32_t a_at(int stage) {
  return shared_address(product_shared) + stage * kStageBytes;
}
DEVICE uint32_t b_at(int stage) {
  return a_at(stage) + kABytes;
}

struct Tile {
  int row, column;  // first of the tile in C
};
DEVICE int tiles_of(const Bf16ProductParams& p) {
  return p.m / kRows * (p.n / kColumns);
}
DEVICE Tile tile_of(const Bf16ProductParams& p, int i) {
  const int rows = p.m / kRows, columns = p.n / kColumns;
  const int band = i / (kBand * columns), in_band = i % (kBand * columns);
  const int height = min(kBand, rows - band * kBand);
  return {(band * kBand + in_band % height) * kRows, in_band / height * kColumns};
}

DEVICE void produce(const Bf16ProductParams& p) {
  Barriers& b = barriers();
  int step = 0;
  for (int i = blockIdx.x; i < tiles_of(p); i += gridDim.x) {
    const Tile tile = tile_of(p, i);
    for (int k = 0; k < p.k; k += kDepth, ++step) {
      const int stage = step % kStages;
      mbarrier_wait(&b.empty[stage], (step / kStages & 1) ^ 1);
      mbarrier_arrive_expect_tx(&b.full[stage], kStageBytes);
      tensor_load_2d(a_at(stage), &p.a, k, tile.row, &b.full[stage]);
      tensor_load_2d(b_at(stage), &p.b, k, tile.column, &b.full[stage]);
    }
  }
}

// Four lanes hold 8 adjacent columns of a row, 2 per lane, and the next 8 in the next registers. Adjacent lanes
// exchange two of their four, so that the four lanes store 32 contiguous bytes, a whole sector:
//
//   lane 0   a0 a1  b0 b1   ->   a0 a1 a2 a3      lane 2   a4 a5  b4 b5   ->   a4 a5 a6 a7
//   lane 1   a2 a3  b2 b3   ->   b0 b1 b2 b3      lane 3   a6 a7  b6 b7   ->   b4 b5 b6 b7
DEVICE void store(const Bf16ProductParams& p, const Tile& tile, const float (&d)[128]) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool odd = lane % 2 != 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t row = tile.row + 16 * warp + lane / 4 + 8 * half;
    bf16* to = static_cast<bf16*>(p.c) + row * p.n + tile.column + (odd ? 8 : 0) + lane % 4 / 2 * 4;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const uint32_t a = pack_bf16(d[8 * i + 2 * half], d[8 * i + 2 * half + 1]);
      const uint32_t b = pack_bf16(d[8 * i + 4 + 2 * half], d[8 * i + 4 + 2 * half + 1]);
      const uint32_t got = __shfl_xor_sync(0xffffffff, odd ? a : b, 1);
      store_chunk(to + 16 * i, odd ? Chunk<8>{got, b} : Chunk<8>{a, got});
    }
  }
}

DEVICE void consume(const Bf16ProductParams& p) {
  Barriers& b = barriers();
  const int lane = threadIdx.x % 32, group = threadIdx.x / 128;
  const auto give_back = [&](int step) {
    if (lane == 0) mbarrier_arrive(&b.empty[step % kStages]);
  };
  int step = 0;
  for (int i = blockIdx.x; i < tiles_of(p); i += gridDim.x) {
    float d[128];
#pragma unroll 1
    for (int k = 0; k < p.k; k += kDepth, ++step) {
      const int stage = step % kStages;
      mbarrier_wait(&b.full[stage], step / kStages & 1);
      wgmma_fence();
#pragma unroll
      for (int inner = 0; inner < kDepth / 16; ++inner)
        product_n256_k_major<bf16>(d, k_major(a_at(stage) + group * 64 * 128 + inner * 32),
                                   k_major(b_at(stage) + inner * 32), k + inner != 0);
      wgmma_commit();
      wgmma_wait<1>();  // the previous step is complete, this one is in flight
      if (k > 0) give_back(step - 1);
    }
    wgmma_wait<0>();
    keep(d);
    give_back(step - 1);
    store(p, tile_of(p, i), d);
  }
}

}  // namespace

KERNEL __launch_bounds__(product::kThreads, 1) bf16_product(const __grid_constant__ Bf16ProductParams p) {
  Barriers& b = barriers();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(&b.full[stage], 1);
      mbarrier_init(&b.empty[stage], kConsumerWarps);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x >= 32 * kConsumerWarps) {
    registers_down<kFetchRegisters>();
    if (threadIdx.x == 32 * kConsumerWarps) produce(p);
  } else {
    registers_up<kMultiplyRegisters>();
    consume(p);
  }
}

}  // namespace kvscope::gpu
