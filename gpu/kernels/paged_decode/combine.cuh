// Combines the outputs of all runs of keys, one warp per row of (sequence, query head):
//
//   o = sum_s w_s o_s / sum_s w_s      w_s = 2^(lse_s - max lse)      lse = (max lse + log2(sum_s w_s)) * ln 2
//
// A run without a key has -infinity; its output is not written and not read. Without any key: o = 0, lse =
// -infinity. A head's sink joins the sum like one more run whose output is 0. Example: lse 0 and 1, o 1 and 3: weights
// 1/2 and 1, o = 3.5 / 1.5 = 2.3333, lse = log2(3) * ln 2 = ln 3.
#pragma once

#include "gpu/kernels/common/decode_params.h"
#include "gpu/kernels/common/number.cuh"
#include "gpu/kernels/paged_decode/config.h"

namespace kvscope::gpu {

// `Out`: bf16, f16 or f32. head_size: even, at most 256; a lane has dims 64 j + 2 lane and the next.
template <class Out>
DEVICE void decode_combine(const DecodeParams& p) {
  constexpr int kMostPairs = kDecodeAnyMostHead / 64;
  constexpr float kLn2 = 0.693147180559945309f;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t rows = static_cast<int64_t>(p.batch) * p.query_heads;
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (row >= rows) return;
  const int head_size = p.k.head_size;

  float most = -INFINITY;
  for (int s = lane; s < p.splits; s += 32) most = fmaxf(most, p.partial_lse[s * rows + row]);
#pragma unroll
  for (int other = 1; other < 32; other *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, other));
  float sink = -INFINITY;
  if (p.sinks_log2 != nullptr && most != -INFINITY) sink = p.sinks_log2[row % p.query_heads];
  most = fmaxf(most, sink);
  const float base = most == -INFINITY ? 0 : most;

  float sum = exp2_approx(sink - base);
  float2 o[kMostPairs] = {};
  for (int first = 0; first < p.splits; first += 32) {
    const int mine = first + lane;
    const float weight = mine < p.splits ? exp2_approx(p.partial_lse[mine * rows + row] - base) : 0;
    const int here = min(p.splits - first, 32);
#pragma unroll 4
    for (int s = 0; s < here; ++s) {
      const float w = __shfl_sync(0xffffffff, weight, s);
      if (w == 0) continue;
      sum += w;
      const float* from = p.partial_o + ((first + s) * rows + row) * head_size;
#pragma unroll
      for (int j = 0; j < kMostPairs; ++j)
        if (64 * j + 2 * lane < head_size) {
          const float2 part = *reinterpret_cast<const float2*>(from + 64 * j + 2 * lane);
          o[j].x += w * part.x, o[j].y += w * part.y;
        }
    }
  }

  const float factor = sum == 0 ? 0 : 1 / sum;
#pragma unroll
  for (int j = 0; j < kMostPairs; ++j)
    if (64 * j + 2 * lane < head_size) {
      const float pair[2] = {o[j].x * factor, o[j].y * factor};
      store_chunk(static_cast<Out*>(p.o) + row * head_size + 64 * j + 2 * lane, narrow<Out>(pair));
    }
  if (lane == 0) p.lse[row] = sum == 0 ? -INFINITY : (most + log2_approx(sum)) * kLn2;
}

}  // namespace kvscope::gpu
