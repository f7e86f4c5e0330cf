// gather_rows: copies selected tokens of the cache to a packed output.
//
//   indices   17  -1  40 ...                    page_size 16
//   cache     block 2 slot 1 |  -  | block 8 slot 8 | ...
//   out       row            | 0 0 | row            | ...          [n, heads, head_size]
//
// A CTA works in two phases. First, one thread per row finds its address: list -> sequence -> table -> block, a chain
// of dependent reads that is executed once per row instead of once per chunk. Then all threads copy chunks of 16 bytes,
// adjacent threads adjacent chunks, kChunks loads per thread before the first store.
//
// Quantized elements are multiplied by their granule's scale in f32, then rounded once more to the output's type.
#include "gpu/kernels/common/number.cuh"
#include "gpu/kernels/common/paged_cache.cuh"
#include "gpu/kernels/gather_rows/config.h"
#include "gpu/kernels/gather_rows/params.h"

namespace kvscope::gpu {
namespace {

using gather_rows::chunk_elements;
using gather_rows::kChunks;
using gather_rows::kThreads;
using gather_rows::kWarps;
using gather_rows::rows_of_cta;

constexpr int64_t kNothing = -1;

// --- conversion of indices -------------------------------------------------------------------------------------------

// Index i of all lists, concatenated.
DEVICE int32_t index_at(const GatherRowsParams& p, int64_t i) {
  return p.indices[i / p.list_length * p.list_stride + i % p.list_length * p.index_stride];
}

// The sequence of a list: the number of sequences that end at or before it, by binary search.
DEVICE uint32_t sequence_of(const GatherRowsParams& p, uint32_t list) {
  uint32_t low = 0, high = p.sequences;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (p.offsets[middle + 1] <= list) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A logical index of sequence b as block * page_size + slot. Negative indices are returned unchanged.
DEVICE int64_t encode(const GatherRowsParams& p, int32_t logical, uint32_t sequence) {
  if (logical < 0) return logical;
  const uint32_t token = static_cast<uint32_t>(logical), page = page_of(p.cache, token);
  if (page >= static_cast<uint32_t>(p.cache.table_stride)) return kNothing;
  const uint32_t block = block_of_page(p.cache, sequence, page);
  if (block >= static_cast<uint32_t>(p.invalid)) return kNothing;
  return static_cast<int64_t>(block) * p.cache.page_size + slot_of(p.cache, token);
}

DEVICE int64_t rows_of_block(const PagedCache& cache) {
  return cache.block_stride / cache.token_stride;
}
// Floor division, so that negative indices follow the formula: page_size 4, 24 rows: -1 -> -24 + 3.
DEVICE int32_t tma_row(const PagedCache& cache, int32_t encoded) {
  const int32_t slot = (encoded % cache.page_size + cache.page_size) % cache.page_size;
  const int32_t block = (encoded - slot) / cache.page_size;
  return block * static_cast<int32_t>(rows_of_block(cache)) + slot;
}

// Offsets of a row and its scales from the cache's first element and scale. kNothing: a row of zeros.
struct RowPlace {
  int64_t elements, scales;
};
DEVICE RowPlace row_place(const GatherRowsParams& p, int64_t i) {
  const PagedCache& cache = p.cache;
  constexpr RowPlace nothing{kNothing, kNothing};
  int64_t index = index_at(p, i);
  if (p.kind == IndexKind::row) {
    const int64_t rows = (cache.blocks - 1) * rows_of_block(cache) + cache.page_size;
    if (index < 0 || index >= rows) return nothing;
    const int64_t row_scales = cache.scales == nullptr ? 0 : static_cast<int64_t>(cache.heads) * granules_of(cache);
    return {index * cache.token_stride, index * row_scales};
  }
  if (p.kind == IndexKind::logical) {
    index = encode(p, static_cast<int32_t>(index), sequence_of(p, static_cast<uint32_t>(i / p.list_length)));
  }
  if (index < 0) return nothing;
  const uint32_t block = page_of(cache, static_cast<uint32_t>(index)),
                 slot = slot_of(cache, static_cast<uint32_t>(index));
  if (!is_assigned(cache, block)) return nothing;
  return {row_offset(cache, block, slot), cache.scales == nullptr ? 0 : scale_row_offset(cache, block, slot)};
}

// --- gather ----------------------------------------------------------------------------------------------------------

// First phase: the places of a CTA's rows. Returns the number of rows.
DEVICE int find_rows(const GatherRowsParams& p, int rows_a_cta, RowPlace* places) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * rows_a_cta;
  const int64_t left = static_cast<int64_t>(p.lists) * p.list_length - first;
  const int rows = static_cast<int>(min(static_cast<int64_t>(rows_a_cta), left));
  if (static_cast<int>(threadIdx.x) < rows) places[threadIdx.x] = row_place(p, first + threadIdx.x);
  __syncthreads();
  return rows;
}

template <class In, class Out>
DEVICE void gather(const GatherRowsParams& p) {
  constexpr int kElements = static_cast<int>(chunk_elements(sizeof(In), sizeof(Out)));
  constexpr int kIn = kElements * static_cast<int>(sizeof(In)), kOut = kElements * static_cast<int>(sizeof(Out));
  constexpr bool kConverts = sizeof(In) != sizeof(Out);
  constexpr bool kScaled = kConverts && sizeof(In) == 1;
  __shared__ RowPlace places[kThreads];
  const uint32_t row = static_cast<uint32_t>(p.cache.heads * p.cache.head_size), row_chunks = row / kElements;
  const int rows_a_cta = rows_of_cta(static_cast<int>(row_chunks));
  const uint32_t chunks = find_rows(p, rows_a_cta, places) * row_chunks;

  // If granules divide a head they divide the row, and a column's scale needs one division.
  const uint32_t head_size = p.cache.head_size, granularity = max(p.cache.granularity, 1);
  const bool divides = head_size % granularity == 0;

  Out* out = static_cast<Out*>(p.out) + static_cast<int64_t>(blockIdx.x) * rows_a_cta * row;
  for (uint32_t first = threadIdx.x; first < chunks; first += kThreads * kChunks) {
    Chunk<kIn> in[kChunks];
    float scale[kChunks];
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const uint32_t c = first + i * kThreads, column = c % row_chunks * kElements;
      uint32_t scale_column = column / granularity;
      in[i] = {};
      scale[i] = 1;
      if (c >= chunks) continue;
      const RowPlace place = places[c / row_chunks];
      if (place.elements == kNothing) continue;
      in[i] = load_chunk<kIn>(static_cast<const In*>(p.cache.data) + place.elements + column);
      if constexpr (kScaled) {
        if (p.cache.scales != nullptr) {
          if (!divides) scale_column = column / head_size * granules_of(p.cache) + column % head_size / granularity;
          scale[i] = p.cache.scales[place.scales + scale_column];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const uint32_t c = first + i * kThreads;
      if (c >= chunks) break;
      Chunk<kOut> to;
      if constexpr (kConverts) {
        float f[kElements];
        widen<In>(in[i], f);
        if constexpr (kScaled) {
#pragma unroll
          for (int e = 0; e < kElements; ++e) f[e] = __fmul_rn(f[e], scale[i]);
        }
        to = narrow<Out>(f);
      } else {
        to = in[i];
      }
      store_chunk(out + static_cast<int64_t>(c) * kElements,
                  to);  // the output is packed, so a chunk's index is its offset
    }
  }
}

// The scales of the same rows: [n, heads, granules].
DEVICE void gather_scales(const GatherRowsParams& p) {
  __shared__ RowPlace places[kThreads];
  const uint32_t row = p.cache.heads * granules_of(p.cache);
  const int rows_a_cta = rows_of_cta(static_cast<int>(row));
  const uint32_t count = find_rows(p, rows_a_cta, places) * row;
  float* out = static_cast<float*>(p.out) + static_cast<int64_t>(blockIdx.x) * rows_a_cta * row;
  for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
    const RowPlace place = places[i / row];
    out[i] = place.scales == kNothing ? 0.0f : p.cache.scales[place.scales + i % row];
  }
}

// --- indices ---------------------------------------------------------------------------------------------------------

DEVICE void remap(const GatherRowsParams& p) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= static_cast<int64_t>(p.lists) * p.list_length) return;
  const uint32_t sequence = sequence_of(p, static_cast<uint32_t>(i / p.list_length));
  static_cast<int32_t*>(p.out)[i] = static_cast<int32_t>(encode(p, index_at(p, i), sequence));
}

DEVICE void to_tma_rows(const GatherRowsParams& p) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= static_cast<int64_t>(p.lists) * p.list_length) return;
  const int32_t encoded = index_at(p, i);
  const bool stays = p.keep_only_minus_one != 0 ? encoded == -1 : encoded < 0;
  static_cast<int32_t*>(p.out)[i] = stays ? encoded : tma_row(p.cache, encoded);
}

// Moves the valid entries of a list to its front in the same order, followed by -1. One warp per list, 32 entries at a
// time: an entry's place is the number of entries kept before them, plus the number of lower lanes with a valid entry.
DEVICE void compact(const GatherRowsParams& p) {
  const int list = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (list >= p.lists) return;
  int32_t* out = static_cast<int32_t*>(p.out) + static_cast<int64_t>(list) * p.list_length;
  int kept = 0;
  for (int first = 0; first < p.list_length; first += 32) {
    const int i = first + lane;
    const int32_t index = i < p.list_length ? index_at(p, static_cast<int64_t>(list) * p.list_length + i) : -1;
    const uint32_t have = __ballot_sync(0xffffffffu, index >= 0);
    if (index >= 0) out[kept + __popc(have & ((1u << lane) - 1))] = index;
    kept += __popc(have);
  }
  for (int i = kept + lane; i < p.list_length; i += 32) out[i] = -1;
}

}  // namespace

#define GATHER_ROWS(entry, body)                                                                             \
  extern "C" __global__ void __launch_bounds__(kThreads) entry(const __grid_constant__ GatherRowsParams p) { \
    body(p);                                                                                                 \
  }

// gather_rows_CACHE_OUT: the same bits, or one rounding; e4m3 times its scale if there are scales.
GATHER_ROWS(gather_rows_bf16_bf16, (gather<bf16, bf16>))
GATHER_ROWS(gather_rows_f16_f16, (gather<f16, f16>))
GATHER_ROWS(gather_rows_f32_f32, (gather<f32, f32>))
GATHER_ROWS(gather_rows_e4m3_e4m3, (gather<e4m3, e4m3>))
GATHER_ROWS(gather_rows_bf16_f32, (gather<bf16, f32>))
GATHER_ROWS(gather_rows_f16_f32, (gather<f16, f32>))
GATHER_ROWS(gather_rows_f32_bf16, (gather<f32, bf16>))
GATHER_ROWS(gather_rows_e4m3_bf16, (gather<e4m3, bf16>))
GATHER_ROWS(gather_rows_e4m3_f16, (gather<e4m3, f16>))
GATHER_ROWS(gather_rows_e4m3_f32, (gather<e4m3, f32>))
GATHER_ROWS(gather_rows_scales, gather_scales)
GATHER_ROWS(gather_rows_remap, remap)          // logical -> encoded
GATHER_ROWS(gather_rows_tma_row, to_tma_rows)  // encoded -> row
GATHER_ROWS(gather_rows_compact, compact)      // encoded -> encoded, without gaps

}  // namespace kvscope::gpu
