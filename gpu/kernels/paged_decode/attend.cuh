// Decode attention of one KV head's query heads over one run of keys: the body of paged_decode and continuous_decode.
//
//   grid     {kv_heads * row_tiles, splits, batch}: the heads of a token are next to each other in memory and in time
//   block    four consumer warps, then the producers (load.cuh): one for tensor copies, two for cp.async
//   a tile   64 keys; warp w has keys 16 w .. 16 w + 15 and keeps its own maximum, sum and output for all query heads
//
//              keys 16 w ..     S^T 16 x 8          P^T            O^T
//   K tile --ldmatrix--> A  x  Q (registers)  -->  exp2, bf16, movmatrix  -->  B
//   V tile --ldmatrix.trans--> A  x  B  -->  O^T [head_size][8 heads] in registers
//
// A lane has columns 2 (lane % 4) and the next of S^T and of O^T alike, so a new maximum scales O in place.
//
// Keys past the end: scores become -infinity, and their V registers zero, because 0 * NaN is NaN.
//
// e4m3: scores times the key's scale; probabilities times the value's scale, before their rounding to bf16; the sum of
// probabilities without it.
#pragma once

#include "gpu/kernels/paged_decode/load.cuh"
#include "gpu/kernels/paged_decode/merge.cuh"
#include "gpu/kernels/paged_decode/tile.cuh"

namespace kvscope::gpu {

// One warp's state. n: heads 8 n .. 8 n + 7 of the CTA; i: of them, this lane's columns 2 (lane % 4) + i.
template <int kHead>
struct Online {
  float m[2][2], l[2][2];     // [n][i] maximum so far; sum over this lane's keys
  float o[kHead / 16][2][4];  // [16-dim block][n]
};

// Query heads as the right operand: [step][n][register]. Rows past the group are zero.
template <class T, int kHead>
DEVICE void load_queries(uint32_t (&q)[kHead / 16][2][2], const void* queries, int64_t first, int rows, int lane) {
  const auto* from = static_cast<const uint16_t*>(queries) + first * kHead;
#pragma unroll
  for (int step = 0; step < kHead / 16; ++step)
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = 8 * n + lane / 4;
        const uint16_t* at = from + row * kHead + Tile<T, kHead>::query_dim(lane, step, r);
        q[step][n][r] = row < rows ? *reinterpret_cast<const uint32_t*>(at) : 0;
      }
}

// 16 keys beginning with `first` of the tile, of which `valid` (> 0) belong to the sequence.
template <class T, int kHead>
DEVICE void attend_keys(Online<kHead>& state, const uint32_t (&q)[kHead / 16][2][2], uint32_t k_tile, int first,
                        int valid, const float* scales, bool scaled, float scale, bool two, int lane) {
  using Tile = Tile<T, kHead>;
  using Product = Product<T>;

  // Even and odd steps have separate sums: two dependency chains of half the length.
  float s[2][2][4] = {};
#pragma unroll
  for (int load = 0; load < Tile::kLoads; ++load) {
    uint32_t a[Tile::kPerLoad][4];
    Tile::keys(a, k_tile, first, load, lane);
#pragma unroll
    for (int i = 0; i < Tile::kPerLoad; ++i) {
      const int step = Tile::kPerLoad * load + i;
      Product::mma(s[0][step % 2], a[i], q[step][0][0], q[step][0][1]);
      if (two) Product::mma(s[1][step % 2], a[i], q[step][1][0], q[step][1][1]);
    }
  }

  // This lane's keys: lane / 4, and the key eight later.
  float k_scale[2] = {scale, scale}, v_scale[2] = {1, 1};
  if (scaled) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      k_scale[r] *= scales[first + lane / 4 + 8 * r];
      v_scale[r] = scales[kDecodeTile + first + lane / 4 + 8 * r];
    }
  }

  uint32_t p[2][2];
  float keep[2][2];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    if (n == 1 && !two) break;
    float x[2][2];  // [key][column]
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        x[r][i] = lane / 4 + 8 * r < valid ? (s[n][0][2 * r + i] + s[n][1][2 * r + i]) * k_scale[r] : -INFINITY;
      float most = fmaxf(x[0][i], x[1][i]);
#pragma unroll
      for (int other = 4; other < 32; other *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, other));
      most = fmaxf(most, state.m[n][i]);
      const float base = most == -INFINITY ? 0 : most;  // all scores may be -infinity
      keep[n][i] = exp2_approx(state.m[n][i] - base);
      state.m[n][i] = most;
#pragma unroll
      for (int r = 0; r < 2; ++r) x[r][i] = exp2_approx(x[r][i] - (base - Product::kLift));
      state.l[n][i] = state.l[n][i] * keep[n][i] + x[0][i] + x[1][i];
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) p[n][r] = movmatrix_trans(Product::pack(x[r][0] * v_scale[r], x[r][1] * v_scale[r]));
    if (__any_sync(0xffffffff, keep[n][0] != 1 || keep[n][1] != 1)) {
#pragma unroll
      for (int block = 0; block < kHead / 16; ++block)
#pragma unroll
        for (int e = 0; e < 4; ++e) state.o[block][n][e] *= keep[n][e % 2];
    }
  }

  uint32_t mask[2];  // of V's registers: keys 2 (lane % 4) and the next; eight later
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int key = lane % 4 * 2 + 8 * r;
    mask[r] = (key < valid ? 0xffffu : 0) | (key + 1 < valid ? 0xffff0000u : 0);
  }
#pragma unroll
  for (int load = 0; load < Tile::kLoads; ++load) {
    uint32_t a[Tile::kPerLoad][4];
    Tile::values(a, k_tile + Tile::kBytes, first, load, lane);
#pragma unroll
    for (int i = 0; i < Tile::kPerLoad; ++i) {
      const int block = Tile::kPerLoad * load + i;
      a[i][0] &= mask[0], a[i][1] &= mask[0], a[i][2] &= mask[1], a[i][3] &= mask[1];
      Product::mma(state.o[block][0], a[i], p[0][0], p[0][1]);
      if (two) Product::mma(state.o[block][1], a[i], p[1][0], p[1][1]);
    }
  }
}

template <class T, int kHead>
DEVICE void consume(const DecodeParams& p, const Ring& ring, const MergeSpace& space, const Keys& keys, int split,
                    int first_head, int rows) {
  using Tile = Tile<T, kHead>;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const bool two = rows > 8, scaled = sizeof(T) == 1 && p.k.scales != nullptr;

  uint32_t q[kHead / 16][2][2];
  load_queries<T, kHead>(q, p.q, static_cast<int64_t>(keys.sequence) * p.query_heads + first_head, rows, lane);
  Online<kHead> state{};
#pragma unroll
  for (int n = 0; n < 2; ++n) state.m[n][0] = state.m[n][1] = -INFINITY;

  Turn turn;
  int left = static_cast<int>(keys.end - keys.begin) - 16 * warp;  // keys from this warp's first key in the tile
  for (int tile = 0; tile < keys.tiles(); ++tile, left -= kDecodeTile, turn.next(ring.stages)) {
    mbarrier_wait(&ring.full[turn.stage], turn.parity);
    if (left > 0)
      attend_keys<T, kHead>(state, q, shared_address(ring.tiles) + turn.stage * 2 * Tile::kBytes, 16 * warp, left,
                            ring.scales + turn.stage * 2 * kDecodeTile, scaled, p.scale_log2, two, lane);
    __syncwarp();  // all lanes have read
    if (lane == 0) mbarrier_arrive(&ring.empty[turn.stage]);
  }

#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int other = 4; other < 32; other *= 2) state.l[n][i] += __shfl_xor_sync(0xffffffff, state.l[n][i], other);
      if (lane < 4) {
        const int row = 8 * n + 2 * lane + i;
        space.maxima[warp * kDecodeRows + row] = state.m[n][i];
        space.sums[warp * kDecodeRows + row] = state.l[n][i];
      }
    }
  named_barrier_sync(1, 32 * kDecodeConsumers);  // all reads of the ring are complete: it is reused for outputs
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    if (n == 1 && !two) break;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = 8 * n + lane % 4 * 2 + i;
      const float weight = weight_of(state.m[n][i], max_of_warps<kDecodeRows>(space, row));
      float* to = space.partial + (warp * kDecodeRows + row) * (kHead + 4);
#pragma unroll
      for (int block = 0; block < kHead / 16; ++block) {
        const float low = state.o[block][n][i] * weight, high = state.o[block][n][2 + i] * weight;
        if constexpr (sizeof(T) == 1) {  // adjacent dims
          *reinterpret_cast<float2*>(to + Tile::value_dim(lane, block, 0)) = make_float2(low, high);
        } else {
          to[Tile::value_dim(lane, block, 0)] = low;
          to[Tile::value_dim(lane, block, 1)] = high;
        }
      }
    }
  }
  named_barrier_sync(1, 32 * kDecodeConsumers);
  write_merged<kDecodeRows>(p, space, kHead, thread, split, static_cast<int>(keys.sequence), first_head, rows,
                            Product<T>::kLift);
}

template <class T, int kHead, bool kOnePage>
DEVICE void decode_attend(const DecodeParams& p) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int head = static_cast<int>(blockIdx.x) / p.row_tiles, split = static_cast<int>(blockIdx.y);
  const int first_row = static_cast<int>(blockIdx.x) % p.row_tiles * kDecodeRows;
  const int rows = min(p.group - first_row, kDecodeRows), first_head = head * p.group + first_row;
  const uint32_t sequence = blockIdx.z, begin = blockIdx.y * static_cast<uint32_t>(p.keys_per_split);
  const Keys keys{sequence, begin, min(p.lengths[sequence], begin + static_cast<uint32_t>(p.keys_per_split))};
  if (keys.begin >= keys.end) {
    write_nothing(p, thread, split, static_cast<int>(sequence), first_head, rows);
    return;
  }

  auto* barriers = reinterpret_cast<uint64_t*>(shared + p.barriers_at);
  const Ring ring{shared, reinterpret_cast<float*>(shared + p.scales_at), barriers, barriers + kDecodeMaxStages,
                  p.stages};
  auto* sums = reinterpret_cast<float*>(barriers + 2 * kDecodeMaxStages);
  const MergeSpace space{reinterpret_cast<float*>(shared), sums, sums + kDecodeConsumers * kDecodeRows};

  const bool boxes = p.box_rows > 0, scaled = sizeof(T) == 1 && p.k.scales != nullptr;
  if (thread == 0) {
    const int copying = boxes ? (scaled ? 32 * kDecodeBoxProducers : 0) : 32 * kDecodeCopyProducers;
    for (int stage = 0; stage < p.stages; ++stage) {
      mbarrier_init(&ring.full[stage], (boxes ? 1 : 0) + copying);
      mbarrier_init(&ring.empty[stage], kDecodeConsumers);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (warp < kDecodeConsumers)
    consume<T, kHead>(p, ring, space, keys, split, first_head, rows);
  else if (boxes)
    produce_by_tensor_copies<T, kHead, kOnePage>(p, ring, keys, head);
  else if (p.copy_bytes == 16)
    produce_by_cp_async<T, kHead, kOnePage, 16>(p, ring, keys, head, warp - kDecodeConsumers);
  else
    produce_by_cp_async<T, kHead, kOnePage, 4>(p, ring, keys, head, warp - kDecodeConsumers);
}

}  // namespace kvscope::gpu
