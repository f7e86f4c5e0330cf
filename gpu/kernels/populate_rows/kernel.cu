// populate_rows: for each page of a tile, the row of its first token. A producer warp computes this before it issues
// the copies of a tile.
//
//   tile of 128 tokens at base 256, pages of 16     table row of the sequence   ... | 5 9 2 7 1 0 3 8 | ...
//                                                                             entries 16 to 23, 32 bytes
//   rows of a block 64                              rows  320 576 128 448 64 0 192 512
//
// The table is read kWidth entries at a time: 4, 8 or 16 bytes per instruction, 8 entries as two of 16 bytes, which is
// the widest load of sm_90. This is why its rows are padded, and why a mask promises an alignment of bases: a read is
// aligned if the first page's index is a multiple of kWidth. One thread per tile, so a warp's loads touch 32 tiles
// and a sector each: with 8 pages, 8 loads of one entry touch 256 sectors, 4 of two 128, 2 of four 64.
#include "gpu/kernels/common/number.cuh"
#include "gpu/kernels/common/paged_cache.cuh"
#include "gpu/kernels/populate_rows/config.h"
#include "gpu/kernels/populate_rows/params.h"

namespace kvscope::gpu {
namespace {

using populate_rows::kThreads;

// kWidth words, with that alignment: one access, or two of 16 bytes.
template <int kWidth>
struct Words {
  static constexpr int kPart = kWidth < 4 ? kWidth : 4, kParts = kWidth / kPart;
  Chunk<4 * kPart> parts[kParts];
  DEVICE explicit Words(const uint32_t* from) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) parts[i] = load_chunk<4 * kPart>(from + i * kPart);
  }
  DEVICE uint32_t& operator[](int i) {
    return parts[i / kPart].words[i % kPart];
  }
  DEVICE void store(uint32_t* to) const {
#pragma unroll
    for (int i = 0; i < kParts; ++i) store_chunk(to + i * kPart, parts[i]);
  }
};

DEVICE uint32_t rows_of_block(const PagedCache& cache) {
  return static_cast<uint32_t>(cache.block_stride / cache.token_stride);
}

// The tile begins at the beginning of a page.
template <int kWidth>
DEVICE void populate_pages(const PopulateRowsParams& p) {
  const int tile = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (tile >= p.tiles) return;
  const uint32_t* entries =
      p.cache.table + static_cast<int64_t>(p.sequences[tile]) * p.cache.table_stride + page_of(p.cache, p.bases[tile]);
  uint32_t* rows = p.rows + static_cast<int64_t>(tile) * p.sub_tiles;
  const uint32_t stride = rows_of_block(p.cache);
  for (int i = 0; i < p.sub_tiles; i += kWidth) {
    Words<kWidth> words(entries + i);
#pragma unroll
    for (int w = 0; w < kWidth; ++w) words[w] *= stride;
    words.store(rows + i);
  }
}

// The tile is inside one page, at any offset.
DEVICE void populate_inside(const PopulateRowsParams& p) {
  const int tile = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (tile >= p.tiles) return;
  const uint32_t base = p.bases[tile];
  p.rows[tile] = block_of(p.cache, p.sequences[tile], base) * rows_of_block(p.cache) + slot_of(p.cache, base);
}

}  // namespace

#define POPULATE_ROWS(entry, body)                                                                             \
  extern "C" __global__ void __launch_bounds__(kThreads) entry(const __grid_constant__ PopulateRowsParams p) { \
    body(p);                                                                                                   \
  }

POPULATE_ROWS(populate_rows_w1, populate_pages<1>)
POPULATE_ROWS(populate_rows_w2, populate_pages<2>)
POPULATE_ROWS(populate_rows_w4, populate_pages<4>)
POPULATE_ROWS(populate_rows_w8, populate_pages<8>)
POPULATE_ROWS(populate_rows_inside, populate_inside)

}  // namespace kvscope::gpu
