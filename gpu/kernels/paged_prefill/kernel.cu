// Attention of several queries per sequence over a paged KV cache, by warpgroup products: one CTA for 128 queries of
// one head.
//
//   warpgroup 0, 1   64 queries each:   S = Q K^T   P = 2^(S - max)   O = P V   scores and weights stay in registers
//   warpgroup 2      one warp loads tiles of 128 keys, K and V, into a ring of two stages
//
// A tile in shared memory is panels of 64 elements: [head_size / 64][128 rows][64], rows of 128 bytes whose 16-byte
// chunks the copy engine swizzles, so that products read them without bank conflicts. A page of 128 or more tokens
// is one box per panel; a tile has several smaller pages: page size 16, head size 128: 8 pages x 2 panels =
// 16 boxes of 2048 bytes.
//
//   shared   Q 2 panels | stage 0: K 2, V 2 | stage 1: K 2, V 2 | barriers     panel 16384 bytes; head size 128: 10
//
//   k_full, v_full [stage]     the tile has landed   k_empty, v_empty [stage]    all eight warps have read it
//   v_landed                   the last tile of V has landed; rows past the sequence's end are not yet zero
//
// Slots past the end may have any content. Scores of such keys are replaced, so K does not matter, but a weight of 0
// times NaN is NaN: the loading warp zeroes those rows of V before it signals v_full. Pages past the end are never
// looked up; their boxes are loaded from past the pool, where the copy engine fills with zeros.
//
// A warpgroup issues the scores of tile i + 1 before the softmax of tile i, so that the tensor cores are busy while
// it computes exponentials:
//
//   S[0] | soft[0] | S[1] P[0]V[0] | soft[1] | S[2] P[1]V[1] | soft[2] | ... | P[n-1]V[n-1]
#include <cstdint>

#include "gpu/kernels/common/number.cuh"
#include "gpu/kernels/common/paged_cache.cuh"
#include "gpu/kernels/common/wgmma.cuh"
#include "gpu/kernels/paged_prefill/config.h"
#include "gpu/kernels/paged_prefill/params.h"

namespace kvscope::gpu {
namespace {

using namespace prefill;

constexpr float kLog2e = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
constexpr int kConsumerWarps = 8;

struct Barriers {
  uint64_t q_full, v_landed;
  uint64_t k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
};

extern "C" {
extern __shared__ __align__(1024) unsigned char prefill_shared[];
}

// The work of one CTA.
template <int kDim>
struct Work {
  static constexpr int kPanels = kDim / kPanel;
  static constexpr int kTileBytes = kPanels * kPanelBytes;  // Q, K or V

  int sequence, head, kv_head;
  int first_row, rows;        // queries of the sequence: the CTA's first, and their number
  int first_token;            // of the sequence, among all queries
  int keys, position;         // of the sequence; of this CTA's first query among them, may be negative
  int first_tile, last_tile;  // tiles of keys that any query of the CTA attends to: [first, last)

  DEVICE uint32_t q() const { return shared_address(prefill_shared); }
  DEVICE uint32_t k(int stage) const { return q() + (1 + 2 * stage) * kTileBytes; }
  DEVICE uint32_t v(int stage) const { return k(stage) + kTileBytes; }
  DEVICE Barriers& barriers() const {
    return *reinterpret_cast<Barriers*>(prefill_shared + (1 + 2 * kStages) * kTileBytes);
  }
};

// Queries of later CTAs attend to more tiles, so these CTAs have more work: they begin first.
template <int kDim>
DEVICE Work<kDim> work_of(const PagedPrefillParams& p) {
  Work<kDim> w;
  w.sequence = blockIdx.z;
  w.head = blockIdx.y;
  w.kv_head = w.head / (p.query_heads / p.cache.heads);
  w.first_row = (gridDim.x - 1 - blockIdx.x) * kQueries;
  w.first_token = p.query_offsets[w.sequence];
  w.rows = p.query_offsets[w.sequence + 1] - w.first_token;
  w.keys = static_cast<int>(p.lengths[w.sequence]);
  w.position = w.keys - w.rows + w.first_row;
  const int last_row = min(w.first_row + kQueries, w.rows) - 1;
  const int end = p.causal ? min(w.keys, w.position + last_row - w.first_row + 1) : w.keys;
  const int begin = p.window_left >= 0 ? max(0, w.position - p.window_left) : 0;
  w.first_tile = begin / kKeys;
  w.last_tile = end > begin ? (end + kKeys - 1) / kKeys : w.first_tile;
  return w;
}

// --- the loading warp ------------------------------------------------------------------------------------------------

// Loads all panels of a tile of K or V with all lanes: a box for each page, or for a part of a page.
template <int kDim>
DEVICE void fetch(const PagedPrefillParams& p, const Work<kDim>& w, const TensorMapSlot* map, int tile, uint32_t to,
                  uint64_t* barrier) {
  const int lane = threadIdx.x % 32;
  const int box_rows = min(p.cache.page_size, kKeys), boxes = kKeys / box_rows;
  if (lane == 0) mbarrier_arrive_expect_tx(barrier, w.kTileBytes);
  __syncwarp();
  for (int i = lane; i < boxes * w.kPanels; i += 32) {
    const int box = i % boxes, panel = i / boxes;
    const int key = tile * kKeys + box * box_rows;
    const int block = key < w.keys ? static_cast<int>(block_of(p.cache, w.sequence, key)) : p.cache.blocks;
    tensor_load_4d(to + panel * kPanelBytes + box * box_rows * 128, map, panel * kPanel, w.kv_head,
                   static_cast<int>(slot_of(p.cache, key)), block, barrier);
  }
}

template <int kDim>
DEVICE void produce(const PagedPrefillParams& p, const Work<kDim>& w) {
  Barriers& b = w.barriers();
  const int lane = threadIdx.x % 32;
  if (lane == 0) {
    mbarrier_arrive_expect_tx(&b.q_full, w.kTileBytes);
    for (int panel = 0; panel < w.kPanels; ++panel) {
      tensor_load_3d(w.q() + panel * kPanelBytes, &p.queries, panel * kPanel, w.head, w.first_token + w.first_row,
                     &b.q_full);
    }
  }
  for (int tile = w.first_tile; tile < w.last_tile; ++tile) {
    const int i = tile - w.first_tile, stage = i % kStages, round = i / kStages & 1;
    mbarrier_wait(&b.k_empty[stage], round ^ 1);
    fetch(p, w, &p.keys, tile, w.k(stage), &b.k_full[stage]);
    mbarrier_wait(&b.v_empty[stage], round ^ 1);

    const int valid = w.keys - tile * kKeys;
    if (valid >= kKeys) {
      fetch(p, w, &p.values, tile, w.v(stage), &b.v_full[stage]);
      continue;
    }
    // The sequence ends in this tile: zeros from there to the end of its page.
    fetch(p, w, &p.values, tile, w.v(stage), &b.v_landed);
    mbarrier_wait(&b.v_landed, 0);
    const int box_rows = min(p.cache.page_size, kKeys), end = (valid + box_rows - 1) / box_rows * box_rows;
    for (int c = lane; c < (end - valid) * 8 * w.kPanels; c += 32) {
      const int row = valid + c / 8 % (end - valid), panel = c / 8 / (end - valid);
      unsigned char* chunk = prefill_shared + (w.v(stage) - w.q()) + panel * kPanelBytes + row * 128 + c % 8 * 16;
      store_chunk(chunk, Chunk<16>{});
    }
    fence_proxy_async();  // the products read the zeros stored here
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&b.v_full[stage]);
  }
}

// --- the multiplying warpgroups --------------------------------------------------------------------------------------

DEVICE float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// 1 - 2 / (e^2x + 1): an error of 2^-22; tanh.approx has 2^-11, which a cap of 50 would amplify.
DEVICE float tanh_exact(float x) {
  return 1 - 2 * reciprocal(exp2_approx(x * (2 * kLog2e)) + 1);
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

// A thread's two rows: row[0] and row[0] + 8 of the CTA's 128.
struct Softmax {
  float cap, pre, factor;  // cap * tanh(pre * s), then times `factor` for powers of two; cap 0: only `factor`
  float max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};  // sum: of this thread's columns
  int first[2], last[2];                                   // visible keys of a row: [first, last)

  // Converts the scores of a tile to weights; `shrink` is the factor for the earlier sums.
  DEVICE void take(float (&s)[64], int tile, bool masked, float (&shrink)[2]) {
    if (cap > 0) {
#pragma unroll
      for (int i = 0; i < 64; ++i) s[i] = cap * tanh_exact(pre * s[i]);
    }
    if (masked) {
#pragma unroll
      for (int i = 0; i < 64; ++i) {
        const int key = tile * kKeys + 8 * (i / 4) + threadIdx.x % 4 * 2 + i % 2, row = i / 2 % 2;
        if (key < first[row] || key >= last[row]) s[i] = -INFINITY;
      }
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float most = max[row];
#pragma unroll
      for (int i = 0; i < 64; i += 4) most = fmaxf(most, fmaxf(s[i + 2 * row], s[i + 2 * row + 1]));
      most = row_max(most);
      const float shift = most == -INFINITY ? 0 : most * factor;  // no visible key yet: weights are 2^-inf = 0
      shrink[row] = exp2_approx(max[row] * factor - shift);
      max[row] = most;
      float total = 0;
#pragma unroll
      for (int i = 0; i < 64; i += 4) {
        s[i + 2 * row] = exp2_approx(s[i + 2 * row] * factor - shift);
        s[i + 2 * row + 1] = exp2_approx(s[i + 2 * row + 1] * factor - shift);
        total += s[i + 2 * row] + s[i + 2 * row + 1];
      }
      sum[row] = sum[row] * shrink[row] + total;
    }
  }
};

template <class T>
DEVICE uint32_t pack(float low, float high) {
  if constexpr (kIsBf16<T>) {
    return pack_bf16(low, high);
  } else {
    return pack_f16(low, high);
  }
}

// S = Q K^T: 64 queries, 128 keys.
template <class T, int kDim>
DEVICE void issue_scores(float (&s)[64], uint32_t q, uint32_t k) {
#pragma unroll
  for (int d = 0; d < kDim; d += 16) {
    const uint32_t at = d / kPanel * kPanelBytes + d % kPanel * 2;
    product_n128<T>(s, k_major(q + at), k_major(k + at), d != 0);
  }
  wgmma_commit();
}
// O += P V.
template <class T, int kCount>
DEVICE void issue_values(float (&o)[kCount], const uint32_t (&weights)[8][4], uint32_t v) {
#pragma unroll
  for (int k = 0; k < 8; ++k) weigh<T>(o, weights[k], n_major(v + k * 16 * 128, kPanelBytes));
  wgmma_commit();
}

template <class T, int kDim>
DEVICE void consume(const PagedPrefillParams& p, const Work<kDim>& w) {
  Barriers& b = w.barriers();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = warp / 4;
  const int row = 16 * warp + lane / 4;  // and row + 8
  const uint32_t q = w.q() + group * 64 * 128;

  Softmax soft;
  soft.cap = p.soft_cap;
  soft.pre = p.soft_cap > 0 ? p.scale / p.soft_cap : 0;
  soft.factor = p.soft_cap > 0 ? kLog2e : p.scale * kLog2e;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int position = w.position + row + 8 * r;
    soft.last[r] = p.causal ? min(w.keys, position + 1) : w.keys;
    soft.first[r] = p.window_left >= 0 ? position - p.window_left : 0;
  }
  // Tiles that every row of this warpgroup attends to in full: [clear_from, clear_to).
  const int top = w.position + 64 * group, bottom = top + 63;
  const int clear_from = p.window_left >= 0 ? (max(0, bottom - p.window_left) + kKeys - 1) / kKeys : 0;
  const int clear_to = max(0, p.causal ? min(w.keys, top + 1) : w.keys) / kKeys;

  float s[64], o[kDim / 2] = {}, shrink[2];
  uint32_t weights[8][4];
  const auto make_weights = [&] {
#pragma unroll
    for (int i = 0; i < 32; ++i) weights[i / 4][i % 4] = pack<T>(s[2 * i], s[2 * i + 1]);
  };
  const auto arrive = [&](uint64_t* barrier) {
    if (lane == 0) mbarrier_arrive(barrier);
  };
  const int tiles = w.last_tile - w.first_tile;

  if (tiles > 0) {
    mbarrier_wait(&b.q_full, 0);
    mbarrier_wait(&b.k_full[0], 0);
    wgmma_fence();
    issue_scores<T, kDim>(s, q, w.k(0));
    wgmma_wait<0>();
    keep(s);
    arrive(&b.k_empty[0]);
    soft.take(s, w.first_tile, w.first_tile < clear_from || w.first_tile >= clear_to, shrink);
    make_weights();
  }
#pragma unroll 1
  for (int i = 1; i < tiles; ++i) {
    const int tile = w.first_tile + i, stage = i % kStages, before = (i - 1) % kStages;
    mbarrier_wait(&b.k_full[stage], i / kStages & 1);
    keep(o);
    wgmma_fence();
    issue_scores<T, kDim>(s, q, w.k(stage));
    mbarrier_wait(&b.v_full[before], (i - 1) / kStages & 1);
    wgmma_fence();
    issue_values<T>(o, weights, w.v(before));
    wgmma_wait<1>();
    keep(s);
    arrive(&b.k_empty[stage]);
    soft.take(s, tile, tile < clear_from || tile >= clear_to, shrink);
    wgmma_wait<0>();
    keep(o);
    arrive(&b.v_empty[before]);
#pragma unroll
    for (int j = 0; j < kDim / 2; ++j) o[j] *= shrink[j / 2 % 2];
    make_weights();
  }
  if (tiles > 0) {
    const int last = tiles - 1;
    mbarrier_wait(&b.v_full[last % kStages], last / kStages & 1);
    keep(o);
    wgmma_fence();
    issue_values<T>(o, weights, w.v(last % kStages));
    wgmma_wait<0>();
    keep(o);
  }

  // Outputs pass through the queries' shared memory, so that rows are written in 16-byte chunks. After the barrier no
  // product of the warpgroup reads the queries, and a warp uses only its sixteen rows.
  named_barrier_sync(1 + group, 128);
  unsigned char* rows = prefill_shared + 16 * warp * 128;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float total = row_sum(soft.sum[r]), inverse = total > 0 ? 1 / total : 0;
    const int in_sequence = w.first_row + row + 8 * r;
    if (lane % 4 == 0 && in_sequence < w.rows) {
      const float lse = total > 0 ? (soft.max[r] * soft.factor + log2_approx(total)) * kLn2 : -INFINITY;
      p.lse[static_cast<int64_t>(w.first_token + in_sequence) * p.query_heads + w.head] = lse;
    }
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      unsigned char* at =
          rows + n / 8 * kPanelBytes + (lane / 4 + 8 * r) * 128 + (n % 8 ^ lane / 4) * 16 + lane % 4 * 4;
      *reinterpret_cast<uint32_t*>(at) = pack<T>(o[4 * n + 2 * r] * inverse, o[4 * n + 2 * r + 1] * inverse);
    }
  }
  __syncwarp();
  constexpr int kChunks = kDim / 8;  // per row
#pragma unroll
  for (int i = 0; i < 16 * kChunks / 32; ++i) {
    const int r = (32 * i + lane) / kChunks, chunk = (32 * i + lane) % kChunks,
              in_sequence = w.first_row + 16 * warp + r;
    if (in_sequence < w.rows) {
      const int64_t to =
          (static_cast<int64_t>(w.first_token + in_sequence) * p.query_heads + w.head) * kDim + chunk * 8;
      store_chunk(static_cast<T*>(p.out) + to,
                  load_chunk<16>(rows + chunk / 8 * kPanelBytes + r * 128 + (chunk % 8 ^ r % 8) * 16));
    }
  }
}

template <class T, int kDim>
DEVICE void prefill_tile(const PagedPrefillParams& p) {
  const Work<kDim> w = work_of<kDim>(p);
  if (w.first_row >= w.rows) return;
  Barriers& b = w.barriers();
  if (threadIdx.x == 0) {
    mbarrier_init(&b.q_full, 1);
    mbarrier_init(&b.v_landed, 1);
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(&b.k_full[stage], 1);
      mbarrier_init(&b.v_full[stage], 1);
      mbarrier_init(&b.k_empty[stage], kConsumerWarps);
      mbarrier_init(&b.v_empty[stage], kConsumerWarps);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x >= 32 * kConsumerWarps) {
    registers_down<kFetchRegisters>();
    if (threadIdx.x < 32 * (kConsumerWarps + 1) && w.first_tile < w.last_tile) produce(p, w);
  } else {
    registers_up<kMultiplyRegisters>();
    consume<T>(p, w);
  }
}

}  // namespace

#define PAGED_PREFILL(dtype, head_size)                                                    \
  extern "C" __global__ void __launch_bounds__(prefill::kThreads, 1)                       \
      paged_prefill_##dtype##_d##head_size(const __grid_constant__ PagedPrefillParams p) { \
    prefill_tile<dtype, head_size>(p);                                                     \
  }
PAGED_PREFILL(bf16, 128)
PAGED_PREFILL(bf16, 64)
PAGED_PREFILL(f16, 128)
PAGED_PREFILL(f16, 64)

}  // namespace kvscope::gpu
