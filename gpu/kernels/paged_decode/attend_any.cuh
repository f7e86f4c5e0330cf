// Decode attention for any head size that is a multiple of 8, up to 256, by fused multiply-adds in f32. Used for f32
// caches, which no matrix instruction multiplies without rounding, and for features that attend.cuh lacks: soft cap,
// first key, ALiBi and several scales per head. All page sizes use the same code.
//
//   a lane    8 dims of a key, of each query head and of its output
//   a key     `lanes` adjacent lanes: the smallest power of two with 8 * lanes >= head_size
//   a warp    32 / lanes keys at once; the four warps of a CTA take turns over the keys of the run
//
// Example: head_size 80, bf16: lanes 16, of which 10 load 16 bytes each; a warp has 2 keys at once, the CTA 8.
//
// Elements of e4m3 are multiplied by their scale, rounded once to f32, before the products. Keys past the end score
// -infinity; neither they nor unassigned pages are read. An unassigned page counts as zeros.
#pragma once

#include "gpu/kernels/paged_decode/load.cuh"
#include "gpu/kernels/paged_decode/merge.cuh"

namespace kvscope::gpu {

using Dims = float[kDecodeAnyDims];

// Eight elements, aligned to 16 bytes, of e4m3 to 8.
template <class T>
DEVICE void load_dims(Dims& out, const T* from) {
  constexpr int kBytes = sizeof(T) == 1 ? 8 : 16, kCount = kBytes / static_cast<int>(sizeof(T));
#pragma unroll
  for (int i = 0; i < kDecodeAnyDims; i += kCount) {
    float part[kCount];
    widen<T, kCount>(load_chunk<kBytes>(from + i), part);
#pragma unroll
    for (int d = 0; d < kCount; ++d) out[i + d] = part[d];
  }
}

// Multiplies by the scales of dims dim .. dim + 7 of a head: one load if they share a granule.
DEVICE void apply_scales(Dims& x, const PagedCache& cache, uint32_t block, uint32_t slot, int head, int dim) {
  if (cache.granularity % kDecodeAnyDims == 0) {
    const float scale = cache.scales[scale_offset(cache, block, slot, head, dim)];
#pragma unroll
    for (int d = 0; d < kDecodeAnyDims; ++d) x[d] *= scale;
  } else {
#pragma unroll
    for (int d = 0; d < kDecodeAnyDims; ++d) x[d] *= cache.scales[scale_offset(cache, block, slot, head, dim + d)];
  }
}

template <class T>
DEVICE void load_element_dims(Dims& out, const PagedCache& cache, uint32_t block, uint32_t slot, int head, int dim) {
  load_dims<T>(out, static_cast<const T*>(cache.data) + element_offset(cache, block, slot, head, dim));
  if constexpr (sizeof(T) == 1)
    if (cache.scales != nullptr) apply_scales(out, cache, block, slot, head, dim);
}

// Queries: bf16 over caches of bf16 and e4m3.
template <class T>
struct QueryOf {
  using Type = T;
};
template <>
struct QueryOf<e4m3> {
  using Type = bf16;
};

// One lane's part of the output, and the complete maxima and sums, over the keys of its lanes.
struct AnyOnline {
  float m[kDecodeAnyRows], l[kDecodeAnyRows] = {};
  Dims o[kDecodeAnyRows] = {};

  DEVICE void take(int row, float score, const Dims& value) {
    const float most = fmaxf(m[row], score), base = most == -INFINITY ? 0 : most;
    const float keep = exp2_approx(m[row] - base), weight = exp2_approx(score - base);
    m[row] = most;
    l[row] = l[row] * keep + weight;
#pragma unroll
    for (int d = 0; d < kDecodeAnyDims; ++d) o[row][d] = o[row][d] * keep + weight * value[d];
  }
  // Merges with the lanes that processed other keys, `other` lanes away.
  DEVICE void merge(int row, int other) {
    const float theirs = __shfl_xor_sync(0xffffffff, m[row], other);
    const float most = fmaxf(m[row], theirs), weight = weight_of(m[row], most), their_weight = weight_of(theirs, most);
    m[row] = most;
    l[row] = l[row] * weight + __shfl_xor_sync(0xffffffff, l[row], other) * their_weight;
#pragma unroll
    for (int d = 0; d < kDecodeAnyDims; ++d)
      o[row][d] = o[row][d] * weight + __shfl_xor_sync(0xffffffff, o[row][d], other) * their_weight;
  }
};

template <class T, bool kOnePage>
DEVICE void decode_attend_any(const DecodeParams& p) {
  constexpr int kRows = kDecodeAnyRows;
  using Query = typename QueryOf<T>::Type;
  extern __shared__ __align__(1024) unsigned char shared[];
  const int head_size = p.k.head_size;
  auto* partial = reinterpret_cast<float*>(shared);
  float* maxima = partial + kDecodeConsumers * kRows * (head_size + 4);
  const MergeSpace space{partial, maxima, maxima + kDecodeConsumers * kRows};

  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int head = static_cast<int>(blockIdx.x) / p.row_tiles, split = static_cast<int>(blockIdx.y);
  const int first_row = static_cast<int>(blockIdx.x) % p.row_tiles * kRows;
  const int rows = min(p.group - first_row, kRows), first_head = head * p.group + first_row;
  const uint32_t sequence = blockIdx.z, from = p.firsts == nullptr ? 0 : p.firsts[sequence];
  const uint32_t begin = from + blockIdx.y * static_cast<uint32_t>(p.keys_per_split);
  const uint32_t end = min(p.lengths[sequence], begin + static_cast<uint32_t>(p.keys_per_split));
  if (begin >= end) {
    write_nothing(p, thread, split, static_cast<int>(sequence), first_head, rows);
    return;
  }

  int lanes = 1;  // per key
  while (lanes * kDecodeAnyDims < head_size) lanes *= 2;
  const int keys = 32 / lanes, dim = lane % lanes * kDecodeAnyDims;
  const bool has_dims = dim < head_size;

  const Places<kOnePage> places(p.k, sequence);
  const Query* queries =
      static_cast<const Query*>(p.q) + (static_cast<int64_t>(sequence) * p.query_heads + first_head) * head_size + dim;
  Dims q[kRows] = {};
  AnyOnline state;
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    state.m[row] = -INFINITY;
    if (row < rows && has_dims) load_dims<Query>(q[row], queries + row * head_size);
  }

  // Loops to the warp's first token past the end, so that all lanes execute the same number of turns.
  for (uint32_t turn = begin + warp * keys; turn < end; turn += kDecodeConsumers * keys) {
    const uint32_t token = turn + lane / lanes;
    const bool there = token < end;
    Dims key = {}, value = {};
    if (there && has_dims) {
      const uint32_t block = places.block(token), slot = places.slot(token);
      if (is_assigned(p.k, block)) {
        load_element_dims<T>(key, p.k, block, slot, head, dim);
        load_element_dims<T>(value, p.v, block, slot, head, dim);
      }
    }
    float distance = 0;
    if (p.slopes_log2 != nullptr) distance = static_cast<float>(static_cast<int>(token) - p.positions[sequence]);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (row >= rows) break;
      float score = 0;
#pragma unroll
      for (int d = 0; d < kDecodeAnyDims; ++d) score += q[row][d] * key[d];
#pragma unroll 1
      for (int other = 1; other < lanes; other *= 2) score += __shfl_xor_sync(0xffffffff, score, other);
      score = p.cap_log2 > 0 ? p.cap_log2 * tanhf(score * p.cap_scale) : score * p.scale_log2;
      if (p.slopes_log2 != nullptr) score += p.slopes_log2[first_head + row] * distance;
      state.take(row, there ? score : -INFINITY, value);
    }
  }

#pragma unroll 1
  for (int other = lanes; other < 32; other *= 2)
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (row >= rows) break;
      state.merge(row, other);
    }
  if (lane == 0)
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      maxima[warp * kRows + row] = state.m[row];
      space.sums[warp * kRows + row] = state.l[row];
    }
  __syncthreads();
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    if (row >= rows) break;
    const float weight = weight_of(state.m[row], max_of_warps<kRows>(space, row));
    Chunk<16> half[2];
#pragma unroll
    for (int d = 0; d < kDecodeAnyDims; ++d) half[d / 4].words[d % 4] = __float_as_uint(state.o[row][d] * weight);
    if (lane < lanes && has_dims) {  // four lanes begin with the first half, the next four with the second: all banks
      const bool second = lane / 4 % 2 == 1;
      float* to = partial + (warp * kRows + row) * (head_size + 4) + dim;
      store_chunk(to + 4 * second, second ? half[1] : half[0]);
      store_chunk(to + 4 * !second, second ? half[0] : half[1]);
    }
  }
  __syncthreads();
  write_merged<kRows>(p, space, head_size, thread, split, static_cast<int>(sequence), first_head, rows, 0);
}

}  // namespace kvscope::gpu
