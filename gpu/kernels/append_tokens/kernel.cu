// append_tokens: copies the K and V of a step's new tokens from packed rows into the pages of the cache.
//
//   in    token 0 | token 1 | token 2 | ...            row = heads * head_size elements
//           |         |          \                     sequence 0 has 15 tokens, a page 16
//   pool  ... block 9: slot 15 |  block 2: slot 0 | slot 1 ...
//
// A row is contiguous in input and cache, so the work is a copy of rows in chunks of 16 bytes: adjacent threads copy
// adjacent chunks, and every sector is used in full on both sides. Chunk c of a sequence belongs to its token
// c / row_chunks. A thread first issues all its loads, then all table lookups, so their latencies overlap.
//
// Quantizing needs the largest magnitude of a granule before its first element can be stored. A few lanes of a warp
// hold a granule in registers and reduce it with shuffles, so the input is read once.
//
//   scale = max |x| / 448, 1 when all are 0      element = x / scale, to the nearest e4m3, ties to even
#include "gpu/kernels/append_tokens/config.h"
#include "gpu/kernels/append_tokens/params.h"
#include "gpu/kernels/common/number.cuh"
#include "gpu/kernels/common/paged_cache.cuh"

namespace kvscope::gpu {
namespace {

using append_tokens::chunk_elements;
using append_tokens::granule_lanes;
using append_tokens::kChunks;
using append_tokens::kGranuleChunks;
using append_tokens::kThreads;

// The work of one CTA: K or V of one sequence.
struct Work {
  const PagedCache& cache;
  const char* in;       // first new token of the sequence
  const float* scales;  // its scales, if the input is quantized
  int64_t stride;       // [elements] of the input
  uint32_t sequence;
  uint32_t tokens;    // new tokens
  uint32_t position;  // of the first in its sequence
  uint32_t row;       // elements
  uint32_t* drops;
};

template <class In>
DEVICE Work work_of(const AppendTokensParams& p) {
  const bool is_key = blockIdx.z == 0;
  const PagedCache& cache = is_key ? p.key : p.value;
  const uint32_t sequence = blockIdx.y;
  const uint32_t begin = p.offsets[sequence];
  const int64_t stride = is_key ? p.key_stride : p.value_stride;
  const uint32_t row = static_cast<uint32_t>(cache.heads * cache.head_size);
  const float* scales = is_key ? p.key_scales : p.value_scales;
  return {
      .cache = cache,
      .in = static_cast<const char*>(is_key ? p.keys : p.values) + begin * stride * static_cast<int64_t>(sizeof(In)),
      .scales = scales,
      .stride = stride,
      .sequence = sequence,
      .tokens = p.offsets[sequence + 1] - begin,
      .position = p.cache_lengths[sequence],
      .row = row,
      .drops = p.drops == nullptr ? nullptr : p.drops + (is_key ? 0 : 1)};
}

struct Place {
  uint32_t block, slot;
  bool assigned;
};
// The place of a new token of the sequence.
DEVICE Place place_of(const Work& work, uint32_t token) {
  const uint32_t at = work.position + token, page = page_of(work.cache, at);
  if (page >= static_cast<uint32_t>(work.cache.table_stride)) return {.block = 0, .slot = 0, .assigned = false};
  const uint32_t block = block_of_page(work.cache, work.sequence, page);
  return {.block = block, .slot = slot_of(work.cache, at), .assigned = is_assigned(work.cache, block)};
}

// Called once per token.
DEVICE void count_drop(const Work& work) {
  if (work.drops != nullptr) atomicAdd(work.drops, 1u);
}

// --- copy: the same type, or converted with one rounding -------------------------------------------------------------

// Scales of the granules that begin in elements [first, first + count) of a row.
DEVICE void copy_scales(const Work& work, const Place& place, uint32_t begin_token, uint32_t token, uint32_t first,
                        uint32_t count) {
  const uint32_t granularity = static_cast<uint32_t>(work.cache.granularity), granules = granules_of(work.cache);
  const uint32_t head = first / static_cast<uint32_t>(work.cache.head_size);
  const uint32_t dim = first % static_cast<uint32_t>(work.cache.head_size);
  const float* from =
      work.scales + static_cast<int64_t>(begin_token + token) * work.cache.heads * granules + head * granules;
  float* to = work.cache.scales + scale_offset(work.cache, place.block, place.slot, head);
  for (uint32_t granule = (dim + granularity - 1) / granularity; granule * granularity < dim + count; ++granule) {
    to[granule] = from[granule];
  }
}

template <class In, class Out>
DEVICE void copy_tokens(const AppendTokensParams& p) {
  constexpr int kElements = static_cast<int>(chunk_elements(sizeof(In), sizeof(Out)));
  constexpr int kIn = kElements * static_cast<int>(sizeof(In)), kOut = kElements * static_cast<int>(sizeof(Out));
  const Work work = work_of<In>(p);
  const uint32_t row_chunks = work.row / kElements, chunks = work.tokens * row_chunks;
  const uint32_t first = blockIdx.x * (kThreads * kChunks) + threadIdx.x;

  Chunk<kIn> in[kChunks];
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const uint32_t c = first + i * kThreads, token = c / row_chunks, column = c % row_chunks * kElements;
    if (c < chunks)
      in[i] = load_chunk<kIn>(work.in + (token * work.stride + column) * static_cast<int64_t>(sizeof(In)));
  }
  Place places[kChunks];
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const uint32_t c = first + i * kThreads;
    places[i] = {};
    if (c < chunks) places[i] = place_of(work, c / row_chunks);
  }
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const uint32_t c = first + i * kThreads, token = c / row_chunks, column = c % row_chunks * kElements;
    if (c >= chunks) break;
    const Place& place = places[i];
    if (!place.assigned) {
      if (column == 0) count_drop(work);
      continue;
    }
    Chunk<kOut> out;
    if constexpr (sizeof(In) == sizeof(Out)) {
      out = in[i];
    } else {
      float f[kElements];
      widen<In>(in[i], f);
      out = narrow<Out>(f);
    }
    store_chunk(static_cast<Out*>(work.cache.data) + row_offset(work.cache, place.block, place.slot) + column, out);
    if constexpr (sizeof(In) == 1) {
      if (work.cache.scales != nullptr) copy_scales(work, place, p.offsets[work.sequence], token, column, kElements);
    }
  }
}

// --- quantize: one scale per granule ---------------------------------------------------------------------------------

// x / scale, prepared for rounding: a float that compares with every e4m3 rounding boundary like the exact quotient,
// and equals a boundary only if the quotient does. The nearest float is not sufficient: 0.375 / float(1 / 448) is
// slightly off 168, halfway between 160 and 176, and its nearest float is 168.
//
//   q       the nearest float, or an adjacent one   rest = x - q * scale, exact: 0 when q is the quotient
//   rest    toward 0 or away from it                one bit that way, then the last bit set: rounding to odd
//
// inverse is 1 / scale, rounded.
DEVICE float quotient(float x, float scale, float inverse) {
  const float guess = __fmul_rn(x, inverse);
  // Restores the sign: for -0 the sums give +0.
  const float q = copysignf(__fmaf_rn(__fmaf_rn(-guess, scale, x), inverse, guess), x);
  const float rest = __fmaf_rn(-q, scale, x);
  const uint32_t towards_zero = (__float_as_uint(rest) ^ __float_as_uint(x)) >> 31;
  return rest == 0 ? q : __uint_as_float((__float_as_uint(q) - towards_zero) | 1u);
}

DEVICE float scale_of(float largest) {
  if (largest == 0) return 1;
  return fmaxf(__fdiv_rn(largest, 448.0f), 0x1p-149f);  // never 0, so that the division is defined
}

template <class In>
DEVICE void quantize_tokens(const AppendTokensParams& p) {
  constexpr int kElements = static_cast<int>(chunk_elements(sizeof(In), sizeof(e4m3)));
  const Work work = work_of<In>(p);
  const PagedCache& cache = work.cache;
  const uint32_t granules = granules_of(cache), row_granules = cache.heads * granules;
  const uint32_t lanes = static_cast<uint32_t>(granule_lanes(cache.granularity / kElements, kElements));
  const uint32_t unit = (blockIdx.x * kThreads + threadIdx.x) / lanes;  // granule of the sequence's new tokens
  const uint32_t lane = threadIdx.x % lanes;
  const uint32_t token = unit / row_granules, head = unit % row_granules / granules, granule = unit % granules;
  const bool live = token < work.tokens;

  // The last granule of a head may be short.
  const uint32_t dim = granule * cache.granularity;
  const uint32_t size = min(static_cast<uint32_t>(cache.granularity), cache.head_size - dim);
  const uint32_t column = head * cache.head_size + dim;  // column of its first element in the row
  Chunk<16> in[kGranuleChunks];
  float largest = 0;
#pragma unroll
  for (int i = 0; i < kGranuleChunks; ++i) {
    const uint32_t element = (lane + i * lanes) * kElements;
    in[i] = {};
    if (live && element < size) {
      in[i] = load_chunk<16>(work.in + (token * work.stride + column + element) * static_cast<int64_t>(sizeof(In)));
    }
  }
#pragma unroll
  for (int i = 0; i < kGranuleChunks; ++i) {
    float f[kElements];
    widen<In>(in[i], f);
#pragma unroll
    for (int e = 0; e < kElements; ++e) largest = fmaxf(largest, fabsf(f[e]));
  }
  for (uint32_t other = lanes / 2; other > 0; other /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, other));
  }
  if (!live) return;

  const Place place = place_of(work, token);
  if (!place.assigned) {
    if (column == 0 && lane == 0) count_drop(work);
    return;
  }
  const float scale = scale_of(largest);
  if (lane == 0) cache.scales[scale_offset(cache, place.block, place.slot, head, dim)] = scale;

  // Very small granules are scaled up, so that the inverse does not overflow and no remainder is lost. Powers of two do
  // not change the quotient, and the scaled numbers are exact in their type.
  float divisor = scale;
  if (largest < 0x1p-60f) {
    divisor *= 0x1p64f;
#pragma unroll
    for (int i = 0; i < kGranuleChunks; ++i) {
      float f[kElements];
      widen<In>(in[i], f);
#pragma unroll
      for (int e = 0; e < kElements; ++e) f[e] *= 0x1p64f;
      in[i] = narrow<In>(f);
    }
  }
  const float inverse = __frcp_rn(divisor);
  e4m3* to = static_cast<e4m3*>(cache.data) + row_offset(cache, place.block, place.slot) + column;
#pragma unroll
  for (int i = 0; i < kGranuleChunks; ++i) {
    const uint32_t element = (lane + i * lanes) * kElements;
    if (element >= size) break;
    float f[kElements];
    widen<In>(in[i], f);
#pragma unroll
    for (int e = 0; e < kElements; ++e) f[e] = quotient(f[e], divisor, inverse);
    store_chunk(to + element, narrow<e4m3>(f));
  }
}

}  // namespace

#define APPEND_TOKENS(entry, body)                                                                             \
  extern "C" __global__ void __launch_bounds__(kThreads) entry(const __grid_constant__ AppendTokensParams p) { \
    body(p);                                                                                                   \
  }

// append_tokens_IN_OUT: the same bits, or one rounding; to e4m3 without scales it saturates at 448.
APPEND_TOKENS(append_tokens_bf16_bf16, (copy_tokens<bf16, bf16>))
APPEND_TOKENS(append_tokens_f16_f16, (copy_tokens<f16, f16>))
APPEND_TOKENS(append_tokens_f32_f32, (copy_tokens<f32, f32>))
APPEND_TOKENS(append_tokens_e4m3_e4m3, (copy_tokens<e4m3, e4m3>))  // and their scales
APPEND_TOKENS(append_tokens_f32_bf16, (copy_tokens<f32, bf16>))
APPEND_TOKENS(append_tokens_f32_f16, (copy_tokens<f32, f16>))
APPEND_TOKENS(append_tokens_bf16_e4m3, (copy_tokens<bf16, e4m3>))
// append_tokens_quantize_IN: to e4m3 with one scale per granule.
APPEND_TOKENS(append_tokens_quantize_bf16, quantize_tokens<bf16>)
APPEND_TOKENS(append_tokens_quantize_f16, quantize_tokens<f16>)
APPEND_TOKENS(append_tokens_quantize_f32, quantize_tokens<f32>)

}  // namespace kvscope::gpu
