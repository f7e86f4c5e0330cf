// Scores of 64 queries against 64 keys of 128 elements, bf16: S = Q K^T, one CTA of four warps, 16 queries each.
//
//   shared memory   keys     [2 halves][64 keys][64 elements], 128-byte rows, chunks of 16 bytes swizzled by the row
//                   queries  [64][136]: rows of 272 bytes, so that eight rows are in different banks
//
// Keys are loaded by tensor copies or by cp.async. `bug` selects one mistake at exactly one place: 0 in the correct
// kernel (the compiler removes the others), a launch parameter in the kernel of mistakes.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

namespace qk {

constexpr int kRows = 64, kDim = 128;
constexpr int kHalfBytes = kRows * 128;  // of the keys
constexpr int kQueryPitch = 272;         // [bytes]

enum Bug {
  kNone = 0,
  kNoExpect = 1,            // B01
  kExpectTooMuch = 2,       // B02
  kExpectTooLittle = 3,     // B03
  kNoWait = 4,              // B04
  kNoInitBarrier = 5,       // B05
  kNoBarrier = 6,           // B06, cp.async
  kNoWaitGroup = 7,         // B07, cp.async
  kWaitGroupOne = 8,        // B08, cp.async
  kHalfBarrier = 13,        // B13
  kDivergedMma = 15,        // B15
  kQueriesPastEnd = 17,     // B17
  kSwizzleOfFourRows = 21,  // B21
  kRegistersSwapped = 24,   // B24
  kUnalignedColumn = 25,    // B25
  kUnalignedTile = 26,      // B26
};

extern "C" {
extern __shared__ __align__(1024) unsigned char tiles[];  // keys, then queries
__shared__ uint64_t full;
}

// Address of the 16-byte chunk of a key's row: [half][key][chunk ^ key % 8].
DEVICE uint32_t key_chunk(int key, int chunk) {
  return (chunk / 8) * kHalfBytes + key * 128 + ((chunk % 8) ^ (key % 8)) * 16;
}
DEVICE uint32_t key_chunk_read(int bug, int key, int chunk) {
  if (bug == kSwizzleOfFourRows) return (chunk / 8) * kHalfBytes + key * 128 + ((chunk % 8) ^ (key % 4)) * 16;
  return key_chunk(key, chunk);
}

DEVICE void store_queries(int bug, const uint4* q) {
  unsigned char* queries = tiles + 2 * kHalfBytes;
  if (bug == kQueriesPastEnd) queries += kRows / 2 * kQueryPitch;
  for (int i = threadIdx.x; i < kRows * 16; i += blockDim.x)
    *reinterpret_cast<uint4*>(queries + i / 16 * kQueryPitch + i % 16 * 16) = q[i];
}

// One warp: its 16 queries against all keys. scores [64][64].
DEVICE void multiply(int bug, float* scores) {
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16;
  const uint32_t keys = shared_address(tiles), queries = keys + 2 * kHalfBytes;
  float s[8][4] = {};  // eight blocks of 16 x 8

#pragma unroll 1
  for (int k = 0; k < kDim / 16; ++k) {
    uint32_t a[4];
    ldmatrix_x4(a, queries + (first + lane % 16) * kQueryPitch + (2 * k + lane / 16) * 16);
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
      const int key = 8 * n + lane % 8 + lane / 16 * 8, chunk = 2 * k + lane / 8 % 2;
      uint32_t b[4];  // b[0], b[1]: keys 8n ..; b[2], b[3]: the next eight
      ldmatrix_x4(b, keys + key_chunk_read(bug, key, chunk));
      const bool swapped = bug == kRegistersSwapped;
      mma_m16n8k16_bf16(s[n], a, swapped ? b[1] : b[0], swapped ? b[0] : b[1]);
      if (bug != kDivergedMma || lane < 16) mma_m16n8k16_bf16(s[n + 1], a, b[2], b[3]);
    }
  }

  const int row = first + lane / 4, column = lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    scores[row * kRows + 8 * n + column] = s[n][0];
    scores[row * kRows + 8 * n + column + 1] = s[n][1];
    scores[(row + 8) * kRows + 8 * n + column] = s[n][2];
    scores[(row + 8) * kRows + 8 * n + column + 1] = s[n][3];
  }
}

// The map's box is {64, 64} of a tensor [keys][128].
DEVICE void by_tensor_copies(int bug, const TensorMapSlot* map, const uint4* q, float* scores) {
  if (threadIdx.x == 0) mbarrier_init(&full, 1);
  store_queries(bug, q);
  if (bug != kNoInitBarrier && (bug != kHalfBarrier || threadIdx.x < 64)) __syncthreads();

  if (threadIdx.x == 0) {
    uint32_t to = shared_address(tiles);
    int column = 0;
    if (bug == kUnalignedColumn) column = 4;
    if (bug == kUnalignedTile) to += 64;
    uint32_t bytes = 2 * kHalfBytes;
    if (bug == kExpectTooMuch) bytes += 2048;
    if (bug == kExpectTooLittle) bytes = 8192;
    if (bug != kNoExpect) mbarrier_arrive_expect_tx(&full, bytes);
    tensor_load_2d(to, map, column, 0, &full);
    tensor_load_2d(to + kHalfBytes, map, column + 64, 0, &full);
  }
  if (bug != kNoWait) mbarrier_wait(&full, 0);
  multiply(bug, scores);
}

// k: [64][128]. One group per half of the keys.
DEVICE void by_cp_async(int bug, const uint4* k, const uint4* q, float* scores) {
  for (int half = 0; half < 2; ++half) {
    for (int i = threadIdx.x; i < kRows * 8; i += blockDim.x) {
      const int key = i / 8, chunk = half * 8 + i % 8;
      cp_async_16(tiles + key_chunk(key, chunk), k + key * 16 + chunk);
    }
    cp_async_commit();
  }
  store_queries(bug, q);
  if (bug == kWaitGroupOne)
    cp_async_wait<1>();
  else if (bug != kNoWaitGroup)
    cp_async_wait<0>();
  if (bug != kNoBarrier) __syncthreads();
  multiply(bug, scores);
}

}  // namespace qk
