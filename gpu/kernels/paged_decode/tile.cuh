// A tile of 64 keys of one head in shared memory, and its conversion to operands of matrix instructions.
//
//   16-byte chunk c of key t    [half][key 64][row bytes], chunks of a row permuted by the key's index, as the tensor
//                               copies' 128-byte swizzle does (64-byte for rows of 64)
//   bf16, head_size 128         rows of 128 bytes, two halves: chunk 9 of key 5 is at 8192 + 5 * 128 + (1 ^ 5) * 16
//   e4m3, head_size 64          rows of 64 bytes, one half: chunk 1 of key 5 is at 5 * 64 + (1 ^ 2) * 16
//
// Keys and values are the left operand, 16 x 16, so a group of at most eight query heads needs one 16 x 8 product:
//   S^T = K Q^T    rows are keys, the sum runs over dims
//   O^T = V^T P^T  rows are dims, the sum runs over keys
//
// e4m3 is converted to bf16 in registers. A 16-bit element of ldmatrix is two e4m3, so dims are in a different order
// than for 16-bit types. The sum over dims is unaffected if queries use the same order; value_dim maps the rows of O^T.
#pragma once

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"
#include "gpu/kernels/common/number.cuh"
#include "gpu/kernels/paged_decode/config.h"

namespace kvscope::gpu {

// The type of the product: of queries, probabilities and, converted, e4m3.
template <class T>
struct Product {
  static constexpr float kLift = 0;
  static DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    mma_m16n8k16_bf16(d, a, b0, b1);
  }
  static DEVICE uint32_t pack(float low, float high) { return pack_bf16(low, high); }
};
template <>
struct Product<f16> {
  static constexpr float kLift = 15;  // probabilities are scaled by 2^15, so that small ones are not subnormal
  static DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    mma_m16n8k16_f16(d, a, b0, b1);
  }
  static DEVICE uint32_t pack(float low, float high) { return pack_f16(low, high); }
};

// Exact: the upper half of a float that is an e4m3 value is its bf16.
DEVICE uint32_t e4m3_to_bf16(uint32_t pair) {
  const float2 f = unpack_e4m3(static_cast<uint16_t>(pair));
  return __byte_perm(__float_as_uint(f.x), __float_as_uint(f.y), 0x7632);
}

template <class T, int kHead>
struct Tile {
  static constexpr int kHeadBytes = kHead * static_cast<int>(sizeof(T));
  static constexpr int kRowBytes = kHeadBytes < 128 ? kHeadBytes : 128;
  static constexpr int kHalves = kHeadBytes / kRowBytes;
  static constexpr int kHalfBytes = kDecodeTile * kRowBytes;
  static constexpr int kBytes = kHalves * kHalfBytes;
  static constexpr int kChunks = kHeadBytes / 16;                   // per key
  static constexpr int kPerLoad = 2 / static_cast<int>(sizeof(T));  // 16 x 16 operands that one ldmatrix loads
  static constexpr int kLoads = kHead / 16 / kPerLoad;

  static DEVICE uint32_t chunk(int key, int chunk) {
    constexpr int kRowChunks = kRowBytes / 16;
    const int turn = kRowBytes == 128 ? key % 8 : key / 2 % 4;
    return chunk / kRowChunks * kHalfBytes + key * kRowBytes + (chunk % kRowChunks ^ turn) * 16;
  }

  // The dims of a pair in B's registers: of query heads in step `step` of the sum, register `r`.
  static DEVICE int query_dim(int lane, int step, int r) {
    return sizeof(T) == 2 ? 16 * step + 8 * r + lane % 4 * 2 : 16 * step + 2 * r + lane % 4 * 4;
  }
  // The dim of an element of O^T: rows lane / 4 (r 0) and lane / 4 + 8 (r 1) of its 16-dim block.
  static DEVICE int value_dim(int lane, int block, int r) {
    return sizeof(T) == 2 ? 16 * block + 8 * r + lane / 4 : 16 * block + r + lane / 4 * 2;
  }

  // Operands of keys first .. first + 15, steps kPerLoad * load .. of the sum over dims.
  static DEVICE void keys(uint32_t (&a)[kPerLoad][4], uint32_t tile, int first, int load, int lane) {
    uint32_t r[4];
    ldmatrix_x4(r, tile + chunk(first + lane % 16, 2 * load + lane / 16));
    if constexpr (sizeof(T) == 2) {
      for (int i = 0; i < 4; ++i) a[0][i] = r[i];
    } else {
#pragma unroll
      for (int step = 0; step < 2; ++step) {  // a lane has dims 4 (lane % 4) .. of its key
        a[step][0] = e4m3_to_bf16(r[2 * step]), a[step][2] = e4m3_to_bf16(r[2 * step] >> 16);
        a[step][1] = e4m3_to_bf16(r[2 * step + 1]), a[step][3] = e4m3_to_bf16(r[2 * step + 1] >> 16);
      }
    }
  }

  // Operands of values first .. first + 15 transposed, 16-dim blocks kPerLoad * load .. . Registers 0, 1 have keys
  // 2 (lane % 4) and the next; registers 2, 3 the same of the upper eight.
  static DEVICE void values(uint32_t (&a)[kPerLoad][4], uint32_t tile, int first, int load, int lane) {
    uint32_t r[4];
    if constexpr (sizeof(T) == 2) {
      ldmatrix_x4_trans(r, tile + chunk(first + lane % 8 + lane / 16 * 8, 2 * load + lane / 8 % 2));
      for (int i = 0; i < 4; ++i) a[0][i] = r[i];
    } else {
      ldmatrix_x4_trans(r, tile + chunk(first + lane % 16, 2 * load + lane / 16));
#pragma unroll
      for (int block = 0; block < 2; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half) {  // of the keys: two dims of one key, two of the next
          const uint32_t by_dim = __byte_perm(r[2 * block + half], 0, 0x3120);
          a[block][2 * half] = e4m3_to_bf16(by_dim), a[block][2 * half + 1] = e4m3_to_bf16(by_dim >> 16);
        }
    }
  }
};

}  // namespace kvscope::gpu
