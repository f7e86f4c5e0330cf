// Three paged attention kernels in the manner of serving engines, each with faults that `fault` chooses. They were written
// from the pages of docs/ alone, before the causes and messages that now name these faults.
//
//   split_decode, merge_splits   a decode over splits of 64 keys, one CTA each, then their merge; e4m3 cache, scales by head
//   prefill                      cp.async in two stages, swizzled rows, ldmatrix and mma.m16n8k16, causal; bf16
//   ring_decode                  one warp copies pages by TMA into three stages, four warps multiply them; bf16
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

enum Fault {
  right,
  // split_decode
  heads_before_slots,
  slot_too_many,
  scales_exchanged,
  scales_by_sequence,
  no_barrier_after_maximum,
  no_barrier_before_output,
  // merge_splits
  no_common_maximum,
  log2_of_sum,
  last_split_lost,
  // prefill
  last_wait_missing,
  no_barrier_before_refill,
  no_barrier_after_wait,
  output_not_rescaled,
  mask_from_the_top,
  maximum_in_base_2,
  v_not_transposed,
  sums_of_lanes,
  v_swizzle_of_two_bits,
  one_entry_for_a_tile,
  own_key_masked,
  // ring_decode
  swizzle_of_the_wrong_bits,
  parity_never_flips,
  bytes_of_k_alone,
  no_wait_for_the_readers,
  k_of_head_0,
  no_warp_barrier,
  bytes_of_a_whole_tile,
  v_row_is_the_block,
  warps_without_a_common_maximum,
};

constexpr int kDim = 64, kPage = 16, kTile = 64;

DEVICE uint32_t pack(float low, float high) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
DEVICE void load_matrices(uint32_t (&r)[4], uint32_t address, bool transposed) {
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  }
}
DEVICE void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE float largest_of_quad(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
DEVICE float sum_of_quad(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}
// Byte of a 16-byte chunk in a tile of 128-byte rows.
DEVICE uint32_t place(int row, int chunk) {
  return row * 128 + ((chunk ^ (row & 7)) << 4);
}

// --- split_decode ----------------------------------------------------------------------------------------------------

constexpr int kGroup = 4, kThreads = 128, kWarps = kThreads / 32;

DEVICE float largest_of_block(float x, float* shared, int fault) {
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  x = shared[threadIdx.x % kWarps];
  for (int step = kWarps / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  if (fault != no_barrier_after_maximum) __syncthreads();
  return x;
}
DEVICE float sum_of_block(float x, float* shared) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  x = shared[threadIdx.x % kWarps];
  for (int step = kWarps / 2; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  __syncthreads();
  return x;
}

// Grid [sequence, KV head, split]; part_o [sequence, query head, split, dim], the other parts without dim.
KERNEL split_decode(float* part_o, float* part_maximum, float* part_sum, const __nv_bfloat16* q, const __nv_fp8_e4m3* k,
                    const __nv_fp8_e4m3* v, const int* table, const int* lengths, const float* k_scale,
                    const float* v_scale, int columns, int splits, int heads, float scale, int fault) {
  const int b = blockIdx.x, kv_head = blockIdx.y, split = blockIdx.z, first_head = kv_head * kGroup;
  const int query_heads = heads * kGroup, length = lengths[b], begin = split * kTile;
  if (begin >= length) return;
  const int end = min(begin + kTile, length + (fault == slot_too_many ? 1 : 0));
  __shared__ float queries[kGroup][kDim], scores[kGroup][kTile], halves[2][kGroup][kDim], shared[kWarps];
  const int thread = threadIdx.x, lane = thread % 32;
  for (int i = thread; i < kGroup * kDim; i += kThreads) {
    queries[i / kDim][i % kDim] = __bfloat162float(q[(b * query_heads + first_head) * kDim + i]);
  }
  __syncthreads();
  const long head_stride = fault == heads_before_slots ? kPage * kDim : kDim;
  const long slot_stride = fault == heads_before_slots ? kDim : heads * kDim;
  const long block_stride = static_cast<long>(kPage) * heads * kDim;
  const int scale_of = fault == scales_by_sequence ? b % heads : kv_head;
  const float of_k = fault == scales_exchanged ? v_scale[scale_of] : k_scale[scale_of];
  const float of_v = fault == scales_exchanged ? k_scale[scale_of] : v_scale[scale_of];
  const auto row = [&](int t) {
    return table[b * columns + t / kPage] * block_stride + t % kPage * slot_stride + kv_head * head_stride;
  };
  for (int t = begin + thread / 4; t < end; t += kThreads / 4) {  // 4 lanes a key
    const long at = row(t);
    float sums[kGroup] = {};
    for (int d = lane % 4 * 16; d < lane % 4 * 16 + 16; ++d) {
      const float element = static_cast<float>(k[at + d]) * of_k;
      for (int g = 0; g < kGroup; ++g) sums[g] += queries[g][d] * element;
    }
    const unsigned quad = 0xfu << (lane & ~3);
    for (int g = 0; g < kGroup; ++g) {
      sums[g] += __shfl_xor_sync(quad, sums[g], 1);
      sums[g] += __shfl_xor_sync(quad, sums[g], 2);
      if (lane % 4 == 0) scores[g][t - begin] = sums[g] * scale;
    }
  }
  __syncthreads();
  float maximum[kGroup], sum[kGroup];
  for (int g = 0; g < kGroup; ++g) {
    float x = -INFINITY;
    for (int i = thread; i < end - begin; i += kThreads) x = fmaxf(x, scores[g][i]);
    maximum[g] = largest_of_block(x, shared, fault);
    x = 0;
    for (int i = thread; i < end - begin; i += kThreads) {
      const float p = __expf(scores[g][i] - maximum[g]);
      scores[g][i] = p;
      x += p;
    }
    sum[g] = sum_of_block(x, shared);
  }
  const int half = thread / kDim, d = thread % kDim;
  float o[kGroup] = {};
  for (int i = half; i < end - begin; i += 2) {
    const float element = static_cast<float>(v[row(begin + i) + d]) * of_v;
    for (int g = 0; g < kGroup; ++g) o[g] += scores[g][i] * element;
  }
  for (int g = 0; g < kGroup; ++g) halves[half][g][d] = o[g];
  if (fault != no_barrier_before_output) __syncthreads();
  for (int g = 0; g < kGroup && half == 0; ++g) {
    const long part = static_cast<long>(b * query_heads + first_head + g) * splits + split;
    part_o[part * kDim + d] = (halves[0][g][d] + halves[1][g][d]) / sum[g];
    if (d == 0) {
      part_maximum[part] = maximum[g];
      part_sum[part] = sum[g];
    }
  }
}

// Grid [sequence, query head], a thread for each dim.
KERNEL merge_splits(__nv_bfloat16* o, float* lse, const float* part_o, const float* part_maximum, const float* part_sum,
                    const int* lengths, int splits, int fault) {
  const int row = blockIdx.x * gridDim.y + blockIdx.y, d = threadIdx.x, length = lengths[blockIdx.x];
  const int used = fault == last_split_lost ? max(1, length / kTile) : (length + kTile - 1) / kTile;
  const long first = static_cast<long>(row) * splits;
  float maximum = -INFINITY, sum = 0, out = 0;
  for (int i = 0; i < used; ++i) maximum = fmaxf(maximum, part_maximum[first + i]);
  for (int i = 0; i < used; ++i) {
    const float factor = fault == no_common_maximum ? 1.0f : __expf(part_maximum[first + i] - maximum);
    sum += part_sum[first + i] * factor;
    out += part_sum[first + i] * factor * part_o[(first + i) * kDim + d];
  }
  o[row * kDim + d] = __float2bfloat16(out / sum);
  if (d == 0) lse[row] = maximum + (fault == log2_of_sum ? log2f(sum) : logf(sum));
}

// --- prefill ---------------------------------------------------------------------------------------------------------

// Grid [tile of 64 queries, query head, sequence], 128 threads; cache [block, 2, slot, head, dim].
KERNEL prefill(__nv_bfloat16* o, float* lse, const __nv_bfloat16* q, const __nv_bfloat16* cache, const int* table,
               const int* lengths, const int* offsets, int columns, int heads, float scale, int fault) {
  __shared__ __align__(1024) unsigned char q_tile[kTile * 128], k_tiles[2][kTile * 128], v_tiles[2][kTile * 128];
  const int tile = blockIdx.x, head = blockIdx.y, b = blockIdx.z, query_heads = gridDim.y;
  const int kv_head = head / (query_heads / heads);
  const int first = offsets[b], queries = offsets[b + 1] - first, length = lengths[b];
  if (tile * kTile >= queries) return;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int position = fault == mask_from_the_top ? 0 : length - queries;  // of query 0
  const auto copy = [](uint32_t to, const void* from, bool bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes ? 16 : 0) : "memory");
  };
  for (int i = thread; i < kTile * 8; i += 128) {
    const int row = i / 8, query = tile * kTile + row;
    copy(shared_address(q_tile) + place(row, i % 8),
         q + (static_cast<long>(first + min(query, queries - 1)) * query_heads + head) * kDim + i % 8 * 8,
         query < queries);
  }
  const auto load = [&](int number, int stage) {
    for (int i = thread; i < kTile * 8; i += 128) {
      const int row = i / 8, t = number * kTile + row, in = min(t, length - 1);
      const int block = fault == one_entry_for_a_tile ? table[b * columns + number * (kTile / kPage)] + row / kPage
                                                      : table[b * columns + in / kPage];
      const long at = (static_cast<long>(block) * 2 * kPage + in % kPage) * heads * kDim + kv_head * kDim + i % 8 * 8;
      copy(shared_address(k_tiles[stage]) + place(row, i % 8), cache + at, t < length);
      copy(shared_address(v_tiles[stage]) + place(row, i % 8), cache + at + static_cast<long>(kPage) * heads * kDim,
           t < length);
    }
  };
  const int tiles = (min(length, (tile + 1) * kTile + position) + kTile - 1) / kTile;
  load(0, 0);
  asm volatile("cp.async.commit_group;" ::: "memory");
  uint32_t q_part[4][4];
  float out[8][4] = {}, maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  for (int number = 0; number < tiles; ++number) {
    const int stage = number % 2;
    if (number + 1 < tiles) load(number + 1, 1 - stage);
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (fault != last_wait_missing || number + 1 < tiles) asm volatile("cp.async.wait_group 1;" ::: "memory");
    if (fault != no_barrier_after_wait) __syncthreads();
    if (number == 0) {
      for (int n = 0; n < 4; ++n) {
        load_matrices(q_part[n], shared_address(q_tile) + place(warp * 16 + lane % 16, n * 2 + lane / 16), false);
      }
    }
    float p[8][4] = {};
    for (int n = 0; n < 4; ++n) {
      for (int keys = 0; keys < kTile; keys += 16) {
        uint32_t part[4];
        const int row = keys + lane / 16 * 8 + lane % 8;
        load_matrices(part, shared_address(k_tiles[stage]) + place(row, n * 2 + lane / 8 % 2), false);
        multiply(p[keys / 8], q_part[n], part[0], part[1]);
        multiply(p[keys / 8 + 1], q_part[n], part[2], part[3]);
      }
    }
    for (int half = 0; half < 2; ++half) {
      const int own = tile * kTile + warp * 16 + half * 8 + lane / 4 + position - (fault == own_key_masked ? 1 : 0);
      float largest = maximum[half];
      for (int i = 0; i < 16; ++i) {
        float& x = p[i / 2][half * 2 + i % 2];
        const int key = number * kTile + i / 2 * 8 + lane % 4 * 2 + i % 2;
        x = key <= own && key < length ? x * scale : -INFINITY;
        largest = fmaxf(largest, x);
      }
      largest = largest_of_quad(largest);
      const float from = largest == -INFINITY ? 0 : largest, shrink = exp2f(maximum[half] - from);
      maximum[half] = largest;
      sum[half] *= shrink;
      for (int i = 0; i < 16; ++i) {
        float& x = p[i / 2][half * 2 + i % 2];
        x = exp2f(x - from);
        sum[half] += x;
        if (fault != output_not_rescaled) out[i / 2][half * 2 + i % 2] *= shrink;
      }
    }
    for (int n = 0; n < 4; ++n) {
      const uint32_t weights[4] = {pack(p[2 * n][0], p[2 * n][1]), pack(p[2 * n][2], p[2 * n][3]),
                                   pack(p[2 * n + 1][0], p[2 * n + 1][1]), pack(p[2 * n + 1][2], p[2 * n + 1][3])};
      for (int dims = 0; dims < kDim; dims += 16) {
        uint32_t part[4];
        const int row = n * 16 + lane % 16, chunk = dims / 8 + lane / 16;
        const uint32_t at = fault == v_swizzle_of_two_bits ? row * 128 + ((chunk ^ (row & 3)) << 4) : place(row, chunk);
        load_matrices(part, shared_address(v_tiles[stage]) + at, fault != v_not_transposed);
        multiply(out[dims / 8], weights, part[0], part[1]);
        multiply(out[dims / 8 + 1], weights, part[2], part[3]);
      }
    }
    if (fault != no_barrier_before_refill) __syncthreads();
  }
  for (int half = 0; half < 2; ++half) {
    const float all = fault == sums_of_lanes ? sum[half] : sum_of_quad(sum[half]);
    const int query = tile * kTile + warp * 16 + half * 8 + lane / 4;
    if (query >= queries) continue;
    const long row = static_cast<long>(first + query) * query_heads + head;
    for (int i = 0; i < 8; ++i) {
      *reinterpret_cast<uint32_t*>(o + row * kDim + i * 8 + lane % 4 * 2) =
          pack(out[i][half * 2] / all, out[i][half * 2 + 1] / all);
    }
    if (lane % 4 == 0) lse[row] = maximum[half] * (fault == maximum_in_base_2 ? 1.0f : 0.69314718f) + logf(all);
  }
}

// --- ring_decode -----------------------------------------------------------------------------------------------------

constexpr int kStages = 3, kRows = 8;  // query heads of a KV head

// Grid [sequence, KV head], 160 threads. The maps are of [row, head, dim], in boxes of a page of one head.
KERNEL ring_decode(const __grid_constant__ CUtensorMap k_map, const __grid_constant__ CUtensorMap v_map,
                   __nv_bfloat16* o, float* lse, const __nv_bfloat16* q, const int* table, const int* lengths,
                   int columns, float scale, int fault) {
  extern __shared__ __align__(1024) unsigned char tiles[];  // K and V of each stage
  __shared__ float maxima[4][kRows], sums[4][kRows], parts[4][kRows][kDim];
  __shared__ uint64_t full[kStages], empty[kStages];
  constexpr int kTileBytes = kTile * 128;
  const int b = blockIdx.x, kv_head = blockIdx.y, length = lengths[b], count = (length + kTile - 1) / kTile;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, row = lane / 4, column = lane % 4;
  const long first_head = (static_cast<long>(b) * gridDim.y + kv_head) * kRows;
  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) {
      mbarrier_init(&full[i], 1);
      mbarrier_init(&empty[i], 4);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warp == 4) {
    for (int n = 0; n < count && lane == 0; ++n) {
      const int stage = n % kStages, pages = min(kTile / kPage, (length - n * kTile + kPage - 1) / kPage);
      if (fault != no_wait_for_the_readers) mbarrier_wait(&empty[stage], n / kStages % 2 ^ 1);
      int bytes = 2 * pages * kPage * 128;
      if (fault == bytes_of_k_alone) bytes /= 2;
      if (fault == bytes_of_a_whole_tile) bytes = 2 * kTileBytes;
      mbarrier_arrive_expect_tx(&full[stage], bytes);
      for (int page = 0; page < pages; ++page) {
        const int block = table[b * columns + n * (kTile / kPage) + page];
        const auto copy = [&](const CUtensorMap& map, int which, int head, int first_row) {
          asm volatile(
              "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
              "[%2];" ::"r"(shared_address(tiles + (2 * stage + which) * kTileBytes + page * kPage * 128)),
              "l"(&map), "r"(shared_address(&full[stage])), "r"(0), "r"(head), "r"(first_row)
              : "memory");
        };
        copy(k_map, 0, fault == k_of_head_0 ? 0 : kv_head, block * kPage);
        copy(v_map, 1, kv_head, fault == v_row_is_the_block ? block : block * kPage);
      }
    }
  } else {
    uint32_t q_part[4][4] = {};  // rows 8 to 15 are zeros
    for (int n = 0; n < 4; ++n) {
      const auto* words = reinterpret_cast<const uint32_t*>(q + (first_head + row) * kDim);
      q_part[n][0] = words[n * 8 + column];
      q_part[n][2] = words[n * 8 + 4 + column];
    }
    const auto at = [&](int r, int chunk) {
      return fault == swizzle_of_the_wrong_bits ? r * 128 + ((chunk ^ (r >> 1 & 7)) << 4) : place(r, chunk);
    };
    float out[8][4] = {}, maximum = -INFINITY, sum = 0;
    for (int n = 0; n < count; ++n) {
      const int stage = n % kStages, first = n * kTile + warp * 16;  // key of this warp
      mbarrier_wait(&full[stage], fault == parity_never_flips ? 0 : n / kStages % 2);
      const uint32_t k_tile = shared_address(tiles + 2 * stage * kTileBytes), v_tile = k_tile + kTileBytes;
      float p[2][4] = {};
      for (int i = 0; i < 4; ++i) {
        uint32_t part[4];
        load_matrices(part, k_tile + at(warp * 16 + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2), false);
        multiply(p[0], q_part[i], part[0], part[1]);
        multiply(p[1], q_part[i], part[2], part[3]);
      }
      float largest = maximum;
      for (int i = 0; i < 4; ++i) {
        float& x = p[i / 2][i % 2];
        x = first + i / 2 * 8 + column * 2 + i % 2 < length ? x * scale : -INFINITY;
        largest = fmaxf(largest, x);
      }
      largest = largest_of_quad(largest);
      const float from = largest == -INFINITY ? 0 : largest, shrink = exp2f(maximum - from);
      maximum = largest;
      sum *= shrink;
      for (int i = 0; i < 4; ++i) {
        p[i / 2][i % 2] = exp2f(p[i / 2][i % 2] - from);
        sum += p[i / 2][i % 2];
      }
      for (int i = 0; i < 8; ++i) {
        out[i][0] *= shrink;
        out[i][1] *= shrink;
      }
      const uint32_t weights[4] = {pack(p[0][0], p[0][1]), 0, pack(p[1][0], p[1][1]), 0};
      for (int dims = 0; dims < kDim && first < length; dims += 16) {  // pages past the end are not copied
        uint32_t part[4];
        load_matrices(part, v_tile + at(warp * 16 + lane % 16, dims / 8 + lane / 16), true);
        multiply(out[dims / 8], weights, part[0], part[1]);
        multiply(out[dims / 8 + 1], weights, part[2], part[3]);
      }
      if (fault != no_warp_barrier) __syncwarp();
      if (lane == 0) mbarrier_arrive(&empty[stage]);
    }
    sum = sum_of_quad(sum);
    if (column == 0) {
      maxima[warp][row] = maximum;
      sums[warp][row] = sum;
    }
    for (int i = 0; i < 16; ++i) parts[warp][row][i / 2 * 8 + column * 2 + i % 2] = out[i / 2][i % 2];
  }
  __syncthreads();
  for (int i = thread; i < kRows * kDim; i += 160) {
    const int r = i / kDim, d = i % kDim;
    float maximum = -INFINITY, sum = 0, out = 0;
    for (int w = 0; w < 4; ++w) maximum = fmaxf(maximum, maxima[w][r]);
    for (int w = 0; w < 4; ++w) {
      const float factor = fault == warps_without_a_common_maximum ? 1.0f : exp2f(maxima[w][r] - maximum);
      sum += factor * sums[w][r];
      out += factor * parts[w][r][d];
    }
    o[(first_head + r) * kDim + d] = __float2bfloat16(out / sum);
    if (d == 0) lse[first_head + r] = maximum * 0.69314718f + logf(sum);
  }
}
