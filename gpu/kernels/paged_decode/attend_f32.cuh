// The same over a cache of f32, which no matrix instruction multiplies without rounding: plain fused multiply-adds,
// every page size alike. A warp has every fourth key of the run; a lane has kHead / 32 dims of the key and of each
// query head, so that a key is one coalesced access of kHead * 4 bytes, and its score a sum over the warp.
#pragma once

#include "gpu/kernels/paged_decode/load.cuh"
#include "gpu/kernels/paged_decode/merge.cuh"

namespace kvscope::gpu {

template <int kHead, bool kOnePage>
DEVICE void decode_attend_f32(const DecodeParams& p) {
  constexpr int kDims = kHead / 32;  // of a lane
  constexpr int kRows = kDecodeF32Rows;
  using Part = Chunk<4 * kDims>;
  __shared__ __align__(16) float partial[kDecodeConsumers * kDecodeRows * (kHead + 4)];
  __shared__ float maxima[kDecodeConsumers * kDecodeRows], sums[kDecodeConsumers * kDecodeRows];
  const MergeSpace space{partial, maxima, sums};

  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int head = static_cast<int>(blockIdx.x) / p.row_tiles, split = static_cast<int>(blockIdx.y);
  const int first_row = static_cast<int>(blockIdx.x) % p.row_tiles * kRows;
  const int rows = min(p.group - first_row, kRows), first_head = head * p.group + first_row;
  const uint32_t sequence = blockIdx.z, begin = blockIdx.y * static_cast<uint32_t>(p.keys_per_split);
  const uint32_t end = min(p.lengths[sequence], begin + static_cast<uint32_t>(p.keys_per_split));
  if (begin >= end) {
    write_nothing(p, thread, split, static_cast<int>(sequence), first_head, rows);
    return;
  }

  const Places<kOnePage> places(p.k, sequence);
  const float* k = static_cast<const float*>(p.k.data) + head * kHead + lane * kDims;
  const float* v = static_cast<const float*>(p.v.data) + head * kHead + lane * kDims;
  const float* queries = static_cast<const float*>(p.q) +
                         (static_cast<int64_t>(sequence) * p.query_heads + first_head) * kHead + lane * kDims;
  float q[kRows][kDims] = {}, o[kRows][kDims] = {}, m[kRows], l[kRows] = {};
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    m[row] = -INFINITY;
    if (row < rows) widen<f32>(load_chunk<4 * kDims>(queries + row * kHead), q[row]);
  }

  for (uint32_t token = begin + warp; token < end; token += kDecodeConsumers) {
    const uint32_t block = places.block(token), slot = places.slot(token);
    float key[kDims] = {}, value[kDims] = {};
    if (is_assigned(p.k, block)) {
      const Part key_part = load_chunk<4 * kDims>(k + row_offset(p.k, block, slot));
      const Part value_part = load_chunk<4 * kDims>(v + row_offset(p.v, block, slot));
      widen<f32>(key_part, key);
      widen<f32>(value_part, value);
    }
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (row >= rows) break;
      float score = 0;
#pragma unroll
      for (int d = 0; d < kDims; ++d) score += q[row][d] * key[d];
#pragma unroll
      for (int other = 1; other < 32; other *= 2) score += __shfl_xor_sync(0xffffffff, score, other);
      score *= p.scale_log2;
      const float most = fmaxf(m[row], score), base = most == -INFINITY ? 0 : most;
      const float keep = exp2_approx(m[row] - base), weight = exp2_approx(score - base);
      m[row] = most;
      l[row] = l[row] * keep + weight;
#pragma unroll
      for (int d = 0; d < kDims; ++d) o[row][d] = o[row][d] * keep + weight * value[d];
    }
  }

  if (lane == 0)
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      maxima[warp * kDecodeRows + row] = m[row];
      sums[warp * kDecodeRows + row] = l[row];
    }
  __syncthreads();
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    if (row >= rows) break;
    const float weight = weight_of(m[row], max_of_warps(space, row));
    Part part;
#pragma unroll
    for (int d = 0; d < kDims; ++d) part.words[d] = __float_as_uint(o[row][d] * weight);
    store_chunk(partial + (warp * kDecodeRows + row) * (kHead + 4) + lane * kDims, part);
  }
  __syncthreads();
  write_merged<kHead>(p, space, thread, split, static_cast<int>(sequence), first_head, rows, 0);
}

}  // namespace kvscope::gpu
