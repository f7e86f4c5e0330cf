// Loads a tile of K or V into shared memory by tensor copies and writes the whole window to global memory, including
// the bytes that no copy has written.
//
//   K, BN 64 over pages of 32, bf16, 128-byte swizzle, 2 chunks of 64 columns; [bytes] of the tile
//
//             chunk 0        chunk 1               copy   shared   column  row
//   page 0    0 .. 4095      8192 .. 12287         0           0        0  of token  0
//   page 1    4096 .. 8191   12288 .. 16383        1        8192       64  of token  0
//                                                  2        4096        0  of token 32
//             <- smem_rows ->                      3       12288       64  of token 32
//
// A copy loads rows of one page only: the row after the page's last one belongs to another layer. There are six kinds
// of map, with different coordinates, fastest first:
//
//   plain       column, head, row                 a page, a chunk; also rope parts, seen as another type
//   fold_outer  0, row, chunk, head               a page, all chunks
//   fold_inner  0, 0, chunk, row / 8, head        likewise, chunks inside groups of 8 rows
//   ragged      column, rows - n, line + n, ..    exactly n rows of a page, followed by zeros
//   page        column, head, slot, block         separate coordinates for slot and block: small even for a large pool
//   matrix      head * head_size + column, row    rows of a continuous cache, consecutive boxes of BN or of 8 rows
//
// Tensor copies move untyped bytes, so one kernel serves all element types.
#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"
#include "gpu/kernels/tma_tile_load/config.h"
#include "gpu/kernels/tma_tile_load/params.h"

extern "C" {  // unmangled, for the names in reports
extern __shared__ __align__(1024) unsigned char window[];
}

namespace kvscope::gpu {
namespace {

constexpr int kNoRow = 1 << 30;  // past the last row, or group of rows, of every map

enum class Map { plain, fold_outer, fold_inner, ragged, page, matrix };

// The rows that this block stages: `rows` rows of the sequence from token `first`.
struct Share {
  int first, rows, chunk_stride, page_rows, pages;
};

DEVICE Share share_of(const TmaTileLoadParams& p) {
  Share share;
  const int tile = static_cast<int>(blockIdx.y) * p.BN;
  if (p.is_value) {
    share.rows = p.BN / p.parts;
    share.first = tile + p.part * share.rows;
    share.chunk_stride = share.rows;
  } else {
    share.rows = p.BN / static_cast<int>(gridDim.x);
    share.first = tile + static_cast<int>(blockIdx.x) * share.rows;
    share.chunk_stride = p.smem_rows;
  }
  share.page_rows = min(share.rows, p.cache.page_size);
  share.pages = share.rows / share.page_rows;
  return share;
}

// The place of a token: its block, its row in the block, and its row among all blocks of the view.
struct Where {
  int block, slot, row;
};

DEVICE Where locate(const PagedCache& cache, int sequence, int token) {
  const int page = token / cache.page_size;
  const int rows_of_a_block = static_cast<int>(cache.block_stride / cache.token_stride);
  Where at;
  at.block = static_cast<int>(cache.table[sequence * cache.table_stride + page]);
  at.slot = token - page * cache.page_size;
  at.row = at.block * rows_of_a_block + at.slot;
  return at;
}

// The copies of one page. `valid`: rows of it that belong to the sequence; 0 and `where` of kNoRow: loads zeros.
template <Map kMap>
DEVICE void copy_page(const TmaTileLoadParams& p, const Share& share, int page, Where where, int valid, uint32_t tile,
                      uint64_t* full) {
  const int page_bytes = share.page_rows * p.chunk_bytes;  // of one chunk
  const int chunk = p.depth / p.chunk_columns;
  if constexpr (kMap == Map::fold_outer) {
    tensor_load_4d(tile + page * page_bytes, &p.map, 0, where.row, chunk, p.head, full);
  } else if constexpr (kMap == Map::fold_inner) {
    const int group = where.row == kNoRow ? kNoRow : where.row / 8;
    tensor_load_5d(tile + page * p.chunks * page_bytes, &p.map, 0, 0, chunk, group, p.head, full);
  } else if constexpr (kMap == Map::matrix) {
    uint32_t to = tile;
    for (int first = 0; first < share.rows; first += p.box_rows)
      for (int c = 0; c < p.chunks; ++c, to += p.box_rows * p.chunk_bytes) {
        const int column = p.head * p.cache.head_size + p.depth + c * p.chunk_columns;
        tensor_load_2d(to, &p.map, column, where.row + first, full);
      }
  } else {
    for (int c = 0; c < p.chunks; ++c) {
      const uint32_t to = tile + c * share.chunk_stride * p.chunk_bytes + page * page_bytes;
      const int column = p.depth + c * p.chunk_columns;
      if constexpr (kMap == Map::plain) tensor_load_3d(to, &p.map, column, p.head, where.row, full);
      if constexpr (kMap == Map::page) tensor_load_4d(to, &p.map, column, p.head, where.slot, where.block, full);
      if constexpr (kMap == Map::ragged) {
        const int line = (valid == 0 ? 0 : where.row + valid) * p.cache.heads + p.head;
        tensor_load_3d(to, &p.map, column, share.page_rows - valid, line, full);
      }
    }
  }
}

template <Map kMap>
DEVICE void load_tile(const TmaTileLoadParams& p) {
  const int thread = static_cast<int>(threadIdx.x);
  uint64_t* const full = reinterpret_cast<uint64_t*>(window + p.window_bytes);
  uint4* const chunks_of_16 = reinterpret_cast<uint4*>(window);
  constexpr uint32_t kPoisonWord = kTileLoadPoison * 0x01010101U;
  for (int i = thread; i < p.window_bytes / 16; i += kTileLoadThreads)
    chunks_of_16[i] = make_uint4(kPoisonWord, kPoisonWord, kPoisonWord, kPoisonWord);
  fence_proxy_async();  // each thread, for its own stores: the copies follow
  if (thread == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  if (thread == 0) {
    const int sequence = static_cast<int>(blockIdx.z);
    Share share = share_of(p);
    if constexpr (kMap == Map::matrix) share.page_rows = share.rows, share.pages = 1;
    const int valid = static_cast<int>(p.lengths[sequence]) - share.first;  // rows of the share, and later ones
    int pages = share.pages;
    if (p.past_end == PastEnd::skip) pages = min(pages, max(0, valid + share.page_rows - 1) / share.page_rows);

    // Announced once for all copies. With fewer bytes, the phase would complete before the last of them has landed.
    mbarrier_arrive_expect_tx(full, static_cast<uint32_t>(pages * share.page_rows * p.chunks * p.chunk_bytes));
    for (int page = 0; page < pages; ++page) {
      const int valid_of_page = min(max(valid - page * share.page_rows, 0), share.page_rows);
      const bool zeros = valid_of_page == 0 && (p.past_end == PastEnd::fill || kMap == Map::ragged);
      const Where where =
          zeros ? Where{kNoRow, 0, kNoRow} : locate(p.cache, sequence, share.first + page * share.page_rows);
      copy_page<kMap>(p, share, page, where, valid_of_page, shared_address(window) + p.tile_at, full);
    }
  }
  mbarrier_wait(full, 0);

  const int64_t number = (static_cast<int64_t>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  uint4* const out = reinterpret_cast<uint4*>(p.windows + number * p.window_bytes);
  for (int i = thread; i < p.window_bytes / 16; i += kTileLoadThreads) out[i] = chunks_of_16[i];
}

}  // namespace

#define TILE_LOAD_KERNEL(kind)                                                                                   \
  KERNEL __launch_bounds__(kTileLoadThreads) tma_tile_load_##kind(const __grid_constant__ TmaTileLoadParams p) { \
    load_tile<Map::kind>(p);                                                                                     \
  }
TILE_LOAD_KERNEL(plain)
TILE_LOAD_KERNEL(fold_outer)
TILE_LOAD_KERNEL(fold_inner)
TILE_LOAD_KERNEL(ragged)
TILE_LOAD_KERNEL(page)
TILE_LOAD_KERNEL(matrix)

}  // namespace kvscope::gpu
