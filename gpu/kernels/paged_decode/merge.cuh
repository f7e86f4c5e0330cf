// Merges the results of four warps into one normalized output of the CTA, and the logarithm of its sum.
//
//   weight of warp w   2^(m_w - max m)       o = sum_w weight_w o_w / sum_w weight_w l_w
//   partial            [warp][row][head_size + 4]: four floats of padding, so that rows begin four banks apart
//
// A CTA has 16 rows in the matrix entries, and 8 rows in the entries for any head size.
#pragma once

#include "gpu/kernels/common/decode_params.h"
#include "gpu/kernels/common/instructions.cuh"
#include "gpu/kernels/paged_decode/config.h"

namespace kvscope::gpu {

struct MergeSpace {
  float* partial;  // [warp][kRows][head_size + 4], already multiplied by the weights
  float* maxima;   // [warp][kRows]
  float* sums;     // [warp][kRows]
};

template <int kRows>
DEVICE float max_of_warps(const MergeSpace& space, int row) {
  float most = space.maxima[row];
#pragma unroll
  for (int w = 1; w < kDecodeConsumers; ++w) most = fmaxf(most, space.maxima[w * kRows + row]);
  return most;
}
// The weight of a warp whose maximum is m. A warp without keys has -infinity and weight 0.
DEVICE float weight_of(float m, float most) {
  return exp2_approx(m - (most == -INFINITY ? 0 : most));
}

// Executed by all threads of the consumer warps, after a barrier. `lift`: the power of two by which sums are scaled.
template <int kRows>
DEVICE void write_merged(const DecodeParams& p, const MergeSpace& space, int head_size, int thread, int split,
                         int sequence, int first_head, int rows, float lift) {
  const int64_t out = (static_cast<int64_t>(split) * p.batch + sequence) * p.query_heads + first_head;
  for (int i = thread; i < rows * (head_size / 4); i += 32 * kDecodeConsumers) {
    const int row = i / (head_size / 4), dim = i % (head_size / 4) * 4;
    const float most = max_of_warps<kRows>(space, row);
    float sum = 0;
    float4 o = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int w = 0; w < kDecodeConsumers; ++w) {
      sum += space.sums[w * kRows + row] * weight_of(space.maxima[w * kRows + row], most);
      const float* from = space.partial + (w * kRows + row) * (head_size + 4) + dim;
      const float4 part = *reinterpret_cast<const float4*>(from);
      o.x += part.x, o.y += part.y, o.z += part.z, o.w += part.w;
    }
    const float factor = sum == 0 ? 0 : 1 / sum;
    o.x *= factor, o.y *= factor, o.z *= factor, o.w *= factor;
    *reinterpret_cast<float4*>(p.partial_o + (out + row) * head_size + dim) = o;
    if (dim == 0) p.partial_lse[out + row] = sum == 0 ? -INFINITY : most + log2_approx(sum) - lift;
  }
}

// A run without keys: writes only the logarithm.
DEVICE void write_nothing(const DecodeParams& p, int thread, int split, int sequence, int first_head, int rows) {
  const int64_t out = (static_cast<int64_t>(split) * p.batch + sequence) * p.query_heads + first_head;
  if (thread < rows) p.partial_lse[out + thread] = -INFINITY;
}

}  // namespace kvscope::gpu
