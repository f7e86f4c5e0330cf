// Decode attention over a latent cache (MLA), by warpgroup products: one CTA for 64 query heads and a part of the keys
// of one sequence. Each row of the cache is read once for all heads and used twice, as key and as value.
//
//   warpgroup 2      loads rows of 64 keys into a ring of two stages, 16 bytes per thread, by lookup table or index
//   warpgroup 0, 1   S = Q K^T of 32 keys each; P = 2^(S - max), shared through memory; O = P V of 256 dims each
//
//   shared    Q 73728 | stage 0 73728 | stage 1 73728 | P 8192 | max, sum | valid | barriers
//
// Q and a stage are nine panels [64 rows][64 elements], rows of 128 bytes in swizzled chunks: chunk c of row r is at
// place c ^ r % 8. Element 300 of key 5: panel 300 / 64 = 4, chunk 44 / 8 = 5 at 5 ^ 5 = 0, so byte 4 * 8192 + 5 * 128
// + 0 + 8. Panels 0 .. 7 are the values.
//
// Invalid keys (past the end, index -1, unassigned block) are zeros in shared memory, and their bits in `valid` are 0:
// they are not read, and their weights are not summed.
//
// e4m3 with a scale per token: elements are converted to bf16, which is exact. A score is multiplied by its key's
// scale; a weight too, before its rounding to bf16, but not in the sum of weights. Example: scale 0.3, product 10,
// weight 0.5: the score is 3, the sum is increased by 0.5, and the value is multiplied by 0.15.
//
//   full [stage]     128 threads have stored their rows, and four of them the bits
//   empty [stage]    eight warps have read
#include <cstdint>

#include "gpu/kernels/common/number.cuh"
#include "gpu/kernels/common/paged_cache.cuh"
#include "gpu/kernels/common/wgmma.cuh"
#include "gpu/kernels/mla_decode/config.h"
#include "gpu/kernels/mla_decode/params.h"

namespace kvscope::gpu {
namespace {

using namespace mla;

constexpr float kLog2e = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
constexpr int kConsumers = 256, kConsumerWarps = 8;

struct Shared {
  unsigned char q[kTileBytes];
  unsigned char keys[kStages][kTileBytes];
  unsigned char weights[kPanelBytes];
  float max[2][kHeads], sum[2][kHeads];  // by warpgroup: of its keys
  float scales[kStages][kKeys];          // e4m3
  uint32_t valid[kStages][2];            // bit k of word w: key 32 w + k of the tile
  uint64_t full[kStages], empty[kStages];
};
static_assert(sizeof(Shared) == kSharedBytes);

extern "C" {
extern __shared__ __align__(1024) unsigned char mla_shared[];
}
DEVICE Shared& shared() {
  return *reinterpret_cast<Shared*>(mla_shared);
}

DEVICE unsigned char* chunk_at(unsigned char* panels, int row, int chunk) {
  return panels + chunk / 8 * kPanelBytes + row * 128 + (chunk % 8 ^ row % 8) * 16;
}

// Tiles of one split: [first, last) of the sequence's.
struct Work {
  int sequence, keys, first, last;
};
DEVICE Work work_of(const MlaDecodeParams& p) {
  Work w;
  w.sequence = blockIdx.z;
  w.keys = p.indices != nullptr ? p.topk : static_cast<int>(p.lengths[w.sequence]);
  const int tiles = (w.keys + kKeys - 1) / kKeys, a_split = (tiles + p.splits - 1) / p.splits;
  w.first = min(tiles, static_cast<int>(blockIdx.x) * a_split);
  w.last = min(tiles, w.first + a_split);
  return w;
}

// --- the fetching warpgroup ------------------------------------------------------------------------------------------

// The three kinds of rows (params.h).
enum class Rows { bf16, fp8, e4m3 };

// First element of the row of key `key` in the cache, or -1. `scale`, if not null: that of its row, 0 if invalid.
DEVICE int64_t row_of(const MlaDecodeParams& p, const Work& w, int key, float* scale) {
  if (scale != nullptr) *scale = 0;
  if (key >= w.keys) return -1;
  uint32_t block, slot;
  if (p.indices != nullptr) {
    const int index = p.indices[static_cast<int64_t>(w.sequence) * p.topk + key];
    if (index < 0) return -1;
    block = page_of(p.cache, index), slot = slot_of(p.cache, index);
  } else {
    block = block_of(p.cache, w.sequence, key), slot = slot_of(p.cache, key);
  }
  if (!is_assigned(p.cache, block)) return -1;
  if (scale != nullptr) *scale = p.cache.scales == nullptr ? 1 : p.cache.scales[scale_offset(p.cache, block, slot, 0)];
  return row_offset(p.cache, block, slot);
}

// Warp w of the four has rows 16 w .. 16 w + 15 of a tile; lane l < 16 computes the place of row 16 w + l.
DEVICE int64_t locate(const MlaDecodeParams& p, const Work& w, int tile, float* scale = nullptr) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  return lane < 16 && tile < w.last ? row_of(p, w, tile * kKeys + 16 * warp + lane, scale) : -1;
}

// Stores the bits of this warp's 16 rows. Its arrival is one of four, in addition to those of the rows.
DEVICE void tell_valid(bool there, int stage) {
  Shared& s = shared();
  const uint32_t bits = __ballot_sync(0xffffffff, there);
  if (threadIdx.x % 32 == 0) {
    reinterpret_cast<uint16_t*>(s.valid[stage])[threadIdx.x / 32 % 4] = static_cast<uint16_t>(bits);
    mbarrier_arrive(&s.full[stage]);
  }
}

// Eight lanes copy 128 bytes of a row, four rows at once. The copies arrive at `full` asynchronously.
DEVICE void fetch_bf16(const MlaDecodeParams& p, int64_t rows, unsigned char* to, uint64_t* full) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const bf16* cache = static_cast<const bf16*>(p.cache.data);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = 4 * i + lane / 8;
    const int64_t at = __shfl_sync(0xffffffff, rows, row);
    const bf16* from = at < 0 ? cache : cache + at;
    const uint32_t bytes = at < 0 ? 0 : 16;
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      const int chunk = 8 * panel + lane % 8;
      cp_async_16(chunk_at(to, 16 * warp + row, chunk), from + chunk * 8, bytes);
    }
  }
  cp_async_arrive(full);
}

DEVICE void produce_bf16(const MlaDecodeParams& p, const Work& w) {
  Shared& s = shared();
  int64_t next = locate(p, w, w.first);
  for (int tile = w.first; tile < w.last; ++tile) {
    const int i = tile - w.first, stage = i % kStages;
    const int64_t rows = next;
    mbarrier_wait(&s.empty[stage], (i / kStages & 1) ^ 1);
    tell_valid(rows >= 0, stage);
    fetch_bf16(p, rows, s.keys[stage], &s.full[stage]);
    next = locate(p, w, tile + 1);
  }
}

// 16 e4m3 times a power of two: exact in bf16. Lanes 0 .. 3 of a row begin with the first half, 4 .. 7 with the second:
// eight addresses of 16 bytes in different banks.
DEVICE void store_scaled(unsigned char* to, int row, int chunk, const Chunk<16>& bytes, float scale) {
  float x[16];
  widen<e4m3>(bytes, x);
  Chunk<16> half[2];
#pragma unroll
  for (int i = 0; i < 8; ++i) half[i / 4].words[i % 4] = pack_bf16(x[2 * i] * scale, x[2 * i + 1] * scale);
  const bool second = chunk % 8 >= 4;
  store_chunk(chunk_at(to, row, 2 * chunk + second), second ? half[1] : half[0]);
  store_chunk(chunk_at(to, row, 2 * chunk + !second), second ? half[0] : half[1]);
}

// A step is four rows per warp, a quarter of a tile. Eight lanes share a row: each loads four of its 32 chunks of e4m3,
// 128 elements and one scale apart, and one chunk of rope.
struct Fp8Step {
  Chunk<16> content[4], rope;
  float scales[4];
  DEVICE void load(const MlaDecodeParams& p, int64_t rows, int quarter) {
    const int lane = threadIdx.x % 32;
    const int64_t at = __shfl_sync(0xffffffff, rows, 4 * quarter + lane / 8);
    const unsigned char* from = static_cast<const unsigned char*>(p.cache.data) + at;
    const Chunk<16> none{};
    const Chunk<16> four = at < 0 ? none : load_chunk<16>(from + 512);
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      content[g] = at < 0 ? none : load_chunk<16>(from + g * 128 + lane % 8 * 16);
      scales[g] = __uint_as_float(four.words[g]);
    }
    rope = at < 0 ? none : load_chunk<16>(from + 528 + lane % 8 * 16);
  }
  DEVICE void store(unsigned char* to, int quarter) const {
    const int lane = threadIdx.x % 32, row = 16 * (threadIdx.x / 32 % 4) + 4 * quarter + lane / 8;
#pragma unroll
    for (int g = 0; g < 4; ++g) store_scaled(to, row, 8 * g + lane % 8, content[g], scales[g]);
    store_chunk(chunk_at(to, row, 64 + lane % 8), rope);
  }
};

// The same for 576 e4m3 without scales between them: 32 chunks of 16 for eight lanes, then 8 elements each.
struct E4m3Step {
  Chunk<16> content[4];
  Chunk<8> rest;
  DEVICE void load(const MlaDecodeParams& p, int64_t rows, int quarter) {
    const int lane = threadIdx.x % 32;
    const int64_t at = __shfl_sync(0xffffffff, rows, 4 * quarter + lane / 8);
    const unsigned char* from = static_cast<const unsigned char*>(p.cache.data) + at;
#pragma unroll
    for (int g = 0; g < 4; ++g) content[g] = at < 0 ? Chunk<16>{} : load_chunk<16>(from + g * 128 + lane % 8 * 16);
    rest = at < 0 ? Chunk<8>{} : load_chunk<8>(from + 512 + lane % 8 * 8);
  }
  DEVICE void store(unsigned char* to, int quarter) const {
    const int lane = threadIdx.x % 32, row = 16 * (threadIdx.x / 32 % 4) + 4 * quarter + lane / 8;
#pragma unroll
    for (int g = 0; g < 4; ++g) store_scaled(to, row, 8 * g + lane % 8, content[g], 1);
    float x[8];
    widen<e4m3>(rest, x);
    store_chunk(chunk_at(to, row, 64 + lane % 8), narrow<bf16>(x));
  }
};

// Three steps are in registers: two are in flight while one is converted, also across tiles.
template <class Step, bool kScaled>
DEVICE void produce_fp8(const MlaDecodeParams& p, const Work& w) {
  constexpr int kAhead = 3;
  Shared& s = shared();
  const int steps = 4 * (w.last - w.first);
  Step ring[kAhead];
  float scale = 0, next_scale = 0;  // e4m3: of row 16 w + l of the tile being loaded, of the next
  int64_t rows = locate(p, w, w.first, kScaled ? &scale : nullptr);
  int64_t next = locate(p, w, w.first + 1, kScaled ? &next_scale : nullptr);
#pragma unroll
  for (int u = 0; u < kAhead; ++u) ring[u].load(p, rows, u);
#pragma unroll 1
  for (int from = 0; from < steps; from += kAhead) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int step = from + u, i = step / 4, stage = i % kStages;
      if (step >= steps) break;
      if (step % 4 == 0) {  // loads are still of this tile
        mbarrier_wait(&s.empty[stage], (i / kStages & 1) ^ 1);
        tell_valid(rows >= 0, stage);
        if (kScaled && threadIdx.x % 32 < 16) s.scales[stage][16 * (threadIdx.x / 32 % 4) + threadIdx.x % 32] = scale;
      }
      ring[u].store(s.keys[stage], step % 4);
      if (step % 4 == 3) mbarrier_arrive(&s.full[stage]);
      const int ahead = step + kAhead;
      if (ahead % 4 == 0) {
        rows = next, scale = next_scale;
        next = locate(p, w, w.first + ahead / 4 + 1, kScaled ? &next_scale : nullptr);
      }
      ring[u].load(p, rows, ahead % 4);
    }
  }
}

// --- the multiplying warpgroups --------------------------------------------------------------------------------------

// Queries of this CTA's heads; heads past the last are zeros.
DEVICE void load_queries(const MlaDecodeParams& p, const Work& w, int first_head) {
  const bf16* q =
      static_cast<const bf16*>(p.q) + (static_cast<int64_t>(w.sequence) * p.query_heads + first_head) * kRow;
  for (int i = threadIdx.x; i < kHeads * kRow / 8; i += kConsumers) {
    const int head = i / (kRow / 8), chunk = i % (kRow / 8);
    const bool there = first_head + head < p.query_heads;
    store_chunk(chunk_at(shared().q, head, chunk), there ? load_chunk<16>(q + head * kRow + chunk * 8) : Chunk<16>{});
  }
}

// Reduces over the four lanes that share a row.
DEVICE float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
DEVICE float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// Barriers of the two warpgroups: maxima are stored, weights are stored.
enum : int { kMaxima = 1, kWeights = 2 };

template <bool kScaled>
DEVICE void consume(const MlaDecodeParams& p, const Work& w) {
  Shared& s = shared();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = warp / 4;
  const int row = 16 * (warp % 4) + lane / 4;  // and row + 8: heads of this CTA
  const int first_head = blockIdx.y * kHeads;
  const uint32_t q = shared_address(s.q), weights = shared_address(s.weights);
  const float factor = p.scale * kLog2e;

  load_queries(p, w, first_head);
  fence_proxy_async();
  named_barrier_sync(kMaxima, kConsumers);

  float o[128] = {}, most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
#pragma unroll 1
  for (int tile = w.first; tile < w.last; ++tile) {
    const int i = tile - w.first, stage = i % kStages;
    const uint32_t keys = shared_address(s.keys[stage]);
    mbarrier_wait(&s.full[stage], i / kStages & 1);
    fence_proxy_async();  // threads stored the rows; products read them

    // Scores of 64 heads and this warpgroup's 32 keys.
    float x[16];
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < kRow; d += 16) {
      const uint32_t at = d / kPanel * kPanelBytes + d % kPanel * 2;
      product_n32<bf16>(x, k_major(q + at), k_major(keys + group * 32 * 128 + at), d != 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    keep(x);

    float2 scales[4];  // of this lane's keys: 8 i + 2 (lane % 4) and the next
    if constexpr (kScaled) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scales[i] = *reinterpret_cast<const float2*>(&s.scales[stage][32 * group + 8 * i + lane % 4 * 2]);
#pragma unroll
        for (int j = 4 * i; j < 4 * i + 4; ++j) x[j] *= j % 2 == 0 ? scales[i].x : scales[i].y;
      }
    }
    const uint32_t valid = s.valid[stage][group];
#pragma unroll
    for (int j = 0; j < 16; ++j)
      if ((valid >> (8 * (j / 4) + lane % 4 * 2 + j % 2) & 1) == 0) x[j] = -INFINITY;

    // The maximum of both warpgroups' keys.
    float top[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      top[r] = most[r];
#pragma unroll
      for (int j = 0; j < 16; j += 4) top[r] = fmaxf(top[r], fmaxf(x[j + 2 * r], x[j + 2 * r + 1]));
      top[r] = row_max(top[r]);
      if (lane % 4 == 0) s.max[group][row + 8 * r] = top[r];
    }
    named_barrier_sync(kMaxima, kConsumers);

    float shrink[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      top[r] = fmaxf(top[r], s.max[1 - group][row + 8 * r]);
      const float shift = top[r] == -INFINITY ? 0 : top[r] * factor;  // no key yet: weights are 2^-inf = 0
      shrink[r] = exp2_approx(most[r] * factor - shift);
      most[r] = top[r];
      float total = 0;
#pragma unroll
      for (int j = 0; j < 16; j += 4) {
        const float a = exp2_approx(x[j + 2 * r] * factor - shift), b = exp2_approx(x[j + 2 * r + 1] * factor - shift);
        total += a + b;
        unsigned char* at = chunk_at(s.weights, row + 8 * r, 4 * group + j / 4) + lane % 4 * 4;
        *reinterpret_cast<uint32_t*>(at) =
            kScaled ? pack_bf16(a * scales[j / 4].x, b * scales[j / 4].y) : pack_bf16(a, b);
      }
      sum[r] = sum[r] * shrink[r] + total;
    }
    fence_proxy_async();
    named_barrier_sync(kWeights, kConsumers);

    // Weights of 64 keys times this warpgroup's 256 dims of them.
#pragma unroll
    for (int j = 0; j < 128; ++j) o[j] *= shrink[j / 2 % 2];
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kKeys; k += 16) {
      product_n256<bf16>(o, k_major(weights + k * 2), n_major(keys + group * 4 * kPanelBytes + k * 128, kPanelBytes),
                         1);
    }
    wgmma_commit();
    wgmma_wait<0>();
    keep(o);
    if (lane == 0) mbarrier_arrive(&s.empty[stage]);
  }

  // Each warpgroup has summed the weights of its 32 keys.
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] = row_sum(sum[r]);
    if (lane % 4 == 0) s.sum[group][row + 8 * r] = sum[r];
  }
  named_barrier_sync(kMaxima, kConsumers);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int head = first_head + row + 8 * r;
    const float total = sum[r] + s.sum[1 - group][row + 8 * r], inverse = total > 0 ? 1 / total : 0;
    if (head >= p.query_heads) continue;
    const int64_t part = (static_cast<int64_t>(w.sequence) * p.splits + blockIdx.x) * p.query_heads + head;
    if (group == 0 && lane % 4 == 0) p.part_lse[part] = total > 0 ? most[r] * factor + log2_approx(total) : -INFINITY;
    float* to = p.part + part * kValue + group * 256 + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      *reinterpret_cast<float2*>(to + 8 * n) = make_float2(o[4 * n + 2 * r] * inverse, o[4 * n + 2 * r + 1] * inverse);
    }
  }
}

template <Rows kRows>
DEVICE void decode(const MlaDecodeParams& p) {
  Shared& s = shared();
  const Work w = work_of(p);
  if (w.first >= w.last) {  // no keys for this split: no output, and weight 0
    const int head = blockIdx.y * kHeads + threadIdx.x;
    if (threadIdx.x < kHeads && head < p.query_heads)
      p.part_lse[(static_cast<int64_t>(w.sequence) * p.splits + blockIdx.x) * p.query_heads + head] = -INFINITY;
    return;
  }
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(&s.full[stage], 128 + 4);
      mbarrier_init(&s.empty[stage], kConsumerWarps);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x >= kConsumers) {
    registers_down<kFetchRegisters>();
    if constexpr (kRows == Rows::fp8) {
      produce_fp8<Fp8Step, false>(p, w);
    } else if constexpr (kRows == Rows::e4m3) {
      produce_fp8<E4m3Step, true>(p, w);
    } else {
      produce_bf16(p, w);
    }
  } else {
    registers_up<kMultiplyRegisters>();
    consume<kRows == Rows::e4m3>(p, w);
  }
}

}  // namespace

KERNEL __launch_bounds__(mla::kThreads, 1) mla_decode_bf16(const __grid_constant__ MlaDecodeParams p) {
  decode<Rows::bf16>(p);
}
KERNEL __launch_bounds__(mla::kThreads, 1) mla_decode_fp8(const __grid_constant__ MlaDecodeParams p) {
  decode<Rows::fp8>(p);
}
KERNEL __launch_bounds__(mla::kThreads, 1) mla_decode_e4m3(const __grid_constant__ MlaDecodeParams p) {
  decode<Rows::e4m3>(p);
}

// Combines the outputs of the splits, weighted by the sums of their keys: four dims per thread. The output of a split
// without keys is undefined and not read.
KERNEL __launch_bounds__(mla::kCombineThreads) mla_combine(const __grid_constant__ MlaDecodeParams p) {
  const int head = blockIdx.x, sequence = blockIdx.y;
  const int64_t first = static_cast<int64_t>(sequence) * p.splits * p.query_heads + head;
  float most = -INFINITY;
  for (int i = 0; i < p.splits; ++i) most = fmaxf(most, p.part_lse[first + static_cast<int64_t>(i) * p.query_heads]);
  float total = 0, o[4] = {};
  for (int i = 0; i < p.splits; ++i) {
    const int64_t part = first + static_cast<int64_t>(i) * p.query_heads;
    const float lse = p.part_lse[part];
    if (lse == -INFINITY) continue;
    const float weight = exp2_approx(lse - most);
    const Chunk<16> x = load_chunk<16>(p.part + part * kValue + threadIdx.x * 4);
    total += weight;
#pragma unroll
    for (int d = 0; d < 4; ++d) o[d] += weight * __uint_as_float(x.words[d]);
  }
  const float inverse = total > 0 ? 1 / total : 0;
  const int64_t row = static_cast<int64_t>(sequence) * p.query_heads + head;
  Chunk<8> packed;
  packed.words[0] = pack_bf16(o[0] * inverse, o[1] * inverse);
  packed.words[1] = pack_bf16(o[2] * inverse, o[3] * inverse);
  store_chunk(static_cast<bf16*>(p.out) + row * kValue + threadIdx.x * 4, packed);
  if (threadIdx.x == 0) p.lse[row] = total > 0 ? (most + log2_approx(total)) * kLn2 : -INFINITY;
}

}  // namespace kvscope::gpu
