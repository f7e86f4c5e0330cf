// Kernels of plain CUDA C++ without tensor cores or asynchronous copies: a matrix product staged in shared memory, and a flash attention
// whose tiles and scores are in shared memory. Most of their instructions are loads of shared memory and fma, as in many teaching kernels.
#include <cmath>
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

// c = a b in f32: a [m][k], b [k][n], all sizes multiples of 16. CTAs of 16 x 16 threads; each computes 16 x 16 elements of c.
KERNEL plain_gemm(float* c, const float* a, const float* b, int n, int k) {
  constexpr int kTile = 16;
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + ty, column = static_cast<int>(blockIdx.x) * kTile + tx;
  float sum = 0;
  for (int from = 0; from < k; from += kTile) {
    a_tile[ty][tx] = a[row * k + from + tx];
    b_tile[ty][tx] = b[(from + ty) * n + column];
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum = __fmaf_rn(a_tile[ty][i], b_tile[i][tx], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// out = softmax(q k^T * scale) v in f32, one head per CTA: all [heads][rows][64], rows a multiple of 32. CTAs of 32 threads. A thread has a
// row of q and of the output; its rows of the tiles are 256 bytes from its neighbor's, so each warp access of a tile is 32 rows far apart.
KERNEL plain_flash(float* out, const float* q, const float* k, const float* v, int rows, float scale) {
  constexpr int kRows = 32, kDim = 64;
  __shared__ float q_tile[kRows * kDim], k_tile[kRows * kDim], v_tile[kRows * kDim], scores[kRows * kRows];
  const int lane = static_cast<int>(threadIdx.x), head = static_cast<int>(blockIdx.x) * rows * kDim;
  for (int first = 0; first < rows; first += kRows) {
    for (int i = 0; i < kDim; ++i) q_tile[lane * kDim + i] = q[head + (first + lane) * kDim + i];
    float most = -INFINITY, sum = 0;
    float* const mine = out + head + (first + lane) * kDim;
    for (int from = 0; from < rows; from += kRows) {
      for (int i = 0; i < kDim; ++i) {
        k_tile[lane * kDim + i] = k[head + (from + lane) * kDim + i];
        v_tile[lane * kDim + i] = v[head + (from + lane) * kDim + i];
      }
      __syncthreads();
      float now = most;
      for (int j = 0; j < kRows; ++j) {
        float score = 0;
        for (int i = 0; i < kDim; ++i) score = __fmaf_rn(q_tile[lane * kDim + i], k_tile[j * kDim + i], score);
        score *= scale;
        scores[lane * kRows + j] = score;
        now = fmaxf(now, score);
      }
      float part = 0;
      for (int j = 0; j < kRows; ++j) {
        const float weight = expf(scores[lane * kRows + j] - now);
        scores[lane * kRows + j] = weight;
        part += weight;
      }
      const float keeps = expf(most - now);
      for (int i = 0; i < kDim; ++i) {
        float value = 0;
        for (int j = 0; j < kRows; ++j) value = __fmaf_rn(scores[lane * kRows + j], v_tile[j * kDim + i], value);
        mine[i] = from == 0 ? value : __fmaf_rn(mine[i], keeps, value);
      }
      sum = __fmaf_rn(sum, keeps, part);
      most = now;
      __syncthreads();
    }
    for (int i = 0; i < kDim; ++i) mine[i] /= sum;
  }
}
