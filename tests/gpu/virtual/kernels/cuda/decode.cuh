// One step of decode attention over a paged KV cache: four query rows of one KV head against all tokens of a sequence.
// One CTA per KV head, four warps; each warp has 16 of a tile's 64 keys and keeps its own maximum, sum and output.
//
//   K, V            [block][page row 128][head][128] bf16; page p of the sequence is block table[p]
//   ring            two stages of {K tile, V tile}, each [2 halves][64 keys][64 elements], 128-byte rows, swizzled
//   full[stage]     a tile has landed: one arrival and 32768 bytes
//   empty[stage]    all four warps have read it: thread 0 may refill the stage
//   the end         the ring's memory is reused for the four partial outputs, which are added with weights from the maxima
//
// `bug` selects one mistake: 0 in the correct kernel, a launch parameter in the kernel of mistakes.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

namespace decode {

constexpr int kWarps = 4, kStages = 2;
constexpr int kKeys = 64, kDim = 128, kPage = 128;  // of a tile; elements; tokens of a page
constexpr int kHalfBytes = kKeys * 128;
constexpr int kTileBytes = 2 * kHalfBytes;   // K or V
constexpr int kStageBytes = 2 * kTileBytes;  // K and V
constexpr int kQueryPitch = 272;             // [bytes]
constexpr int kGroup = 4;                    // query rows of a head; the matrix instructions take 16

enum Bug {
  kNone = 0,
  kRefillUnasked = 9,        // B09
  kWrongParityPasses = 10,   // B10
  kWrongParityBlocks = 110,  // B10, in the other direction
  kNoSyncwarp = 11,          // B11
  kNoRingBarrier = 12,       // B12
  kTablePastEnd = 16,        // B16
  kCoordinatesSwapped = 22,  // B22
  kNoTrans = 23,             // B23
};

extern "C" {
extern __shared__ __align__(1024) unsigned char ring[];  // two stages, then the queries
__shared__ uint64_t full[kStages];
__shared__ uint64_t empty[kStages];
__shared__ float warp_max[kWarps][kGroup];
__shared__ float warp_sum[kWarps][kGroup];
}

DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}
DEVICE uint32_t chunk_at(int key, int chunk) {
  return (chunk / 8) * kHalfBytes + key * 128 + ((chunk % 8) ^ (key % 8)) * 16;
}

// Executed by thread 0: both halves of K and V of a tile, into its stage. The box is {64, 1, 64, 1}.
DEVICE void fill(int bug, const TensorMapSlot* k_map, const TensorMapSlot* v_map, const int* table, int tile,
                 int tiles) {
  const int stage = tile % kStages, head = static_cast<int>(blockIdx.x);
  int page = tile * kKeys / kPage;
  if (bug == kTablePastEnd && tile == tiles - 1) ++page;
  const int block = table[page], row = tile * kKeys % kPage;
  const uint32_t to = shared_address(ring) + stage * kStageBytes;
  mbarrier_arrive_expect_tx(&full[stage], kStageBytes);
  for (int half = 0; half < 2; ++half) {
    const int y = bug == kCoordinatesSwapped ? row : head, z = bug == kCoordinatesSwapped ? head : row;
    tensor_load_4d(to + half * kHalfBytes, k_map, half * 64, y, z, block, &full[stage]);
    tensor_load_4d(to + kTileBytes + half * kHalfBytes, v_map, half * 64, head, row, block, &full[stage]);
  }
}

// q [heads][4][128] bf16, out the same in fp32. scale: factor of the scores, times log2(e).
DEVICE void attend(int bug, const TensorMapSlot* k_map, const TensorMapSlot* v_map, const int* table, const uint4* q,
                   float* out, int tokens, float scale) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int head = static_cast<int>(blockIdx.x);
  const int tiles = (tokens + kKeys - 1) / kKeys;
  unsigned char* queries = ring + kStages * kStageBytes;

  if (thread == 0)
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], kWarps);
    }
  for (int i = thread; i < 16 * 16; i += 32 * kWarps)  // rows 4 .. 15 are zero
    *reinterpret_cast<uint4*>(queries + i / 16 * kQueryPitch + i % 16 * 16) =
        i < kGroup * 16 ? q[head * kGroup * 16 + i] : make_uint4(0, 0, 0, 0);
  __syncthreads();
  if (thread == 0)
    for (int tile = 0; tile < kStages && tile < tiles; ++tile) fill(bug, k_map, v_map, table, tile, tiles);

  // Of row lane / 4 (all others are padding): the maximum and sum of this warp so far.
  float m = -INFINITY, l = 0;
  float o[16][4] = {};  // 16 x 128, in blocks of 16 x 8

#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages, parity = tile / kStages & 1;
    const uint32_t k_tile = shared_address(ring) + stage * kStageBytes, v_tile = k_tile + kTileBytes;
    mbarrier_wait(&full[stage], parity);

    // Scores of 16 queries against this warp's 16 keys.
    float s[2][4] = {};
#pragma unroll 1
    for (int k = 0; k < kDim / 16; ++k) {
      uint32_t a[4], b[4];
      ldmatrix_x4(a, shared_address(queries) + lane % 16 * kQueryPitch + (2 * k + lane / 16) * 16);
      ldmatrix_x4(b, k_tile + chunk_at(16 * warp + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
      mma_m16n8k16_bf16(s[0], a, b[0], b[1]);
      mma_m16n8k16_bf16(s[1], a, b[2], b[3]);
    }

    // Softmax over them: the four lanes of a row share it.
    float tile_max = m;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int token = tile * kKeys + 16 * warp + 8 * n + lane % 4 * 2 + i;
        s[n][i] = token < tokens ? s[n][i] * scale : -INFINITY;
        tile_max = fmaxf(tile_max, s[n][i]);
      }
    tile_max = fmaxf(tile_max, __shfl_xor_sync(0xffffffff, tile_max, 1));
    tile_max = fmaxf(tile_max, __shfl_xor_sync(0xffffffff, tile_max, 2));
    const float shift = tile_max == -INFINITY ? 0 : tile_max;  // no token yet
    const float keep = exp2_approx(m - shift);
    m = tile_max;
    l *= keep;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        s[n][i] = exp2_approx(s[n][i] - shift);
        l += s[n][i];
      }
#pragma unroll
    for (int n = 0; n < 16; ++n) o[n][0] *= keep, o[n][1] *= keep;

    // Weights times V: the accumulator layout is the operand layout, so no lane moves data.
    const uint32_t p[4] = {pack(s[0][0], s[0][1]), 0, pack(s[1][0], s[1][1]), 0};
#pragma unroll
    for (int n = 0; n < 16; n += 2) {
      uint32_t b[4];
      const uint32_t row = v_tile + chunk_at(16 * warp + lane % 16, n + lane / 16);
      if (bug == kNoTrans)
        ldmatrix_x4(b, row);
      else
        ldmatrix_x4_trans(b, row);
      mma_m16n8k16_bf16(o[n], p, b[0], b[1]);
      mma_m16n8k16_bf16(o[n + 1], p, b[2], b[3]);
    }

    if (bug != kNoSyncwarp) __syncwarp();  // all lanes have read
    if (lane == 0) mbarrier_arrive(&empty[stage]);
    if (bug == kWrongParityBlocks) __syncthreads();  // the phase is then certainly complete
    if (thread == 0 && tile + kStages < tiles) {
      if (bug == kWrongParityPasses || bug == kWrongParityBlocks)
        mbarrier_wait(&empty[stage], parity ^ 1);
      else if (bug != kRefillUnasked)
        mbarrier_wait(&empty[stage], parity);
      fill(bug, k_map, v_map, table, tile + kStages, tiles);
    }
  }

  l += __shfl_xor_sync(0xffffffff, l, 1);
  l += __shfl_xor_sync(0xffffffff, l, 2);
  const int row = lane / 4;
  if (row < kGroup && lane % 4 == 0) {
    warp_max[warp][row] = m;
    warp_sum[warp][row] = l;
  }
  if (bug != kNoRingBarrier) __syncthreads();  // the maxima are stored, and all reads of the ring are complete

  // The ring is free: it is reused for the partial outputs, [row][warp][128].
  float* partial = reinterpret_cast<float*>(ring);
  if (row < kGroup) {
    float all = -INFINITY;
    for (int w = 0; w < kWarps; ++w) all = fmaxf(all, warp_max[w][row]);
    const float weight = exp2_approx(m - all);
    float* to = partial + (row * kWarps + warp) * kDim + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 16; ++n) to[8 * n] = o[n][0] * weight, to[8 * n + 1] = o[n][1] * weight;
  }
  __syncthreads();

  for (int r = 0; r < kGroup; ++r) {
    float all = -INFINITY, sum = 0, value = 0;
    for (int w = 0; w < kWarps; ++w) all = fmaxf(all, warp_max[w][r]);
    for (int w = 0; w < kWarps; ++w) {
      sum += warp_sum[w][r] * exp2_approx(warp_max[w][r] - all);
      value += partial[(r * kWarps + w) * kDim + thread];
    }
    out[(head * kGroup + r) * kDim + thread] = value / sum;
  }
}

}  // namespace decode
