// How a kernel copies one tile of K or V into shared memory: the box copies in the order one lane issues them. A tile
// of rows x depth is pages (sub-tiles inside one page each) by chunks (columns that fill one swizzle row).
//
//   K, BN 64 over pages of 32, bf16, 128B swizzle, depth 128 = 2 chunks of 64 columns; shared memory in elements:
//
//             chunk 0          chunk 1                issue   shared  depth  row        bytes
//   page 0    0 .. 2047        4096 .. 6143           0            0      0  rows[0]     4096
//   page 1    2048 .. 4095     6144 .. 8191           1         4096     64  rows[0]     4096
//             <- chunk_stride rows ->                 2         2048      0  rows[1]     4096
//                                                     3         6144     64  rows[1]     4096
//
//                            K                                            V
//   tile_rows                BN, or BN / 2 in a pair of CTAs              BN / num_v_sub_tiles
//   issue_rows               kv_sub_tile_rows(tile_rows, page)            the same formula
//   pages_per_iter           tile_rows / issue_rows                       the same formula
//   first of rows[]          num_pages / 2 for the peer of a pair         v_idx * pages_per_iter
//   extra row, one page      BN / 2 for the peer                          v_idx * tile_rows
//   chunk_stride [rows]      smem_BN                                      tile_rows
//
//   kind of tile   one issue copies          element (page p, row r of it, depth d) lands at
//   plain          one page, one chunk       (d/gran)*chunk_stride*gran + (p*issue_rows + r)*gran + d%gran
//   fold outer     one page, all chunks      the same; one page, issue_rows == chunk_stride
//   fold inner     one page, all chunks      p*chunks*issue_rows*gran + (r/8)*chunks*8*gran + (d/gran)*8*gran
//                                              + (r%8)*gran + d%gran
//   rope           one page, one chunk       as plain, of the row's bf16 rope values alone
//   gather4        four rows, one chunk      as plain, where a "page" is four rows of any blocks
//   matrix         box rows, one chunk       (r/box)*chunks*box*gran + (d/gran)*box*gran + (r%box)*gran + d%gran
//
// A matrix tile has no pages: its rows follow one another in a continuous cache, and its boxes are all tile_m rows, or
// 8 rows where the tile is MN-major. A "page" of it is one row of boxes.
// Source: Modular's MAX kernels, PagedRowIndices and its copies of K and V (max/kernels/src/kv_cache/types.mojo).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/index.h"
#include "core/cache/paged_row_indices.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

// One box copy of a tile.
struct KvIssue {
  std::int64_t smem = 0;   // [elements] from the tile's first
  TmaCoord at;             // fastest first
  std::int64_t bytes = 0;  // credited to the barrier
  std::int64_t page = 0;   // of this CTA's tile, from 0
  std::int64_t chunk = 0;  // first chunk of columns
  std::int64_t row = 0;    // of the cache's matrix; kKvFillRow when filled
  bool filled = false;     // a page past the valid ones, zero-filled
  friend bool operator==(const KvIssue&, const KvIssue&) = default;
};

// The row coordinate of a page that is filled: outside every map, so a box there is all fill.
inline constexpr std::int64_t kKvFillRow = std::int64_t{1} << 30;

struct KvCopy {
  KOrV operand = KOrV::k;
  TmaKind kind = TmaKind::plain;
  SwizzleMode swizzle = SwizzleMode::none;
  std::int64_t element_bytes = 0;
  std::int64_t tile_rows = 0, issue_rows = 0, pages = 0, chunks = 0, gran = 0, chunk_stride = 0;
  std::int64_t valid_pages = 0;   // pages after them are filled or not copied
  std::int64_t depth_offset = 0;  // column of the cache that is column 0 of the tile
  int cta_group = 1;
  std::vector<KvIssue> issues;
  std::int64_t expected_bytes = 0;  // for the barrier's expect_tx

  [[nodiscard]] std::int64_t smem_elements() const;  // the tile's extent, gaps between chunks included
};

// Options common to K and V. `needs_partial`: only `valid_pages` pages of this CTA's tile exist (the last tile of a
// sequence); without it valid_pages is ignored. Default: all pages that the row list has for this CTA, at least 1.
struct KCopyOptions {
  HeadIdx head;
  DimIdx depth_offset{};
  std::optional<std::int64_t> smem_BN{};  // [rows] from chunk to chunk in shared memory; default: BN
  bool needs_partial = false;
  std::optional<std::int64_t> valid_pages{};
};

struct VCopyOptions {
  HeadIdx head;
  DimIdx depth_offset{};
  std::int64_t num_v_sub_tiles = 1;  // V may be copied in pieces of BN / num_v_sub_tiles rows
  std::int64_t v_idx = 0;            // the piece to copy
  bool needs_partial = false;
  std::optional<std::int64_t> valid_pages{};
  bool oob_fill_pages = false;  // pages past the valid ones are copied from kKvFillRow: zeros, and counted
};

// `rows` is the list of the whole tile of BN rows, also for one CTA of a pair.
// A tile of ContinuousBatchingKVCache::create_tma_tile(tile_m, tile_n, ..): tile_m rows from `row` on, tile_n columns
// from (head, depth_offset) on. Every box is copied whole: rows past the sequence's last token hold what the block, or
// the next layer, stores there; rows and columns outside the map are zeros. GeometryError: another kind of tile, a
// depth below 0. IndexError: head. Example: bf16, H 2, D 128, b128, MN-major 16 x 128, row 40, head 1: four issues of
// 1024 B at (128, 40), (192, 40), (128, 48), (192, 48), which land at elements 0, 512, 1024, 1536.
[[nodiscard]] KvCopy tma_copy_matrix(const TmaTile& tile, KOrV operand, RowIdx row, HeadIdx head, DimIdx depth_offset);

// A tile whose rows are gathered, four by one instruction: row i of the tile is row rows[i] of the matrix.
// Rows of the last instruction that `rows` lacks get the coordinate -1, which is filled with zeros.
// `oob_fill_rows`: so are all rows up to the end of the tile; without it these are not copied. The map is
// two-dimensional, so the column counts from the row's first head. GeometryError: another kind of tile, columns past
// the head, more rows than the tile has. Example: bf16, H 2, D 64, 16 rows, rows {196, 208, 220, 232, 244}, head 1:
// (64, 196, 208, 220, 232) and (64, 244, -1, -1, -1), which land at elements 0 and 256.
inline constexpr std::int64_t kGatheredRows = 4;  // of one instruction
[[nodiscard]] KvCopy tma_copy_gather4(const TmaTile& tile, KOrV operand, const std::vector<std::int32_t>& rows,
                                      HeadIdx head, std::int64_t head_size, DimIdx depth_offset, bool oob_fill_rows);

// GeometryError (all faults): tile_rows not whole issues; a pair's odd page count; num_pages not a multiple of the V
// sub-tiles; smem_BN below tile_rows; a box that is not one issue; a depth that is not whole chunks; a fold that its
// layout does not allow; valid pages out of range (0 is legal for a pair's peer and for V). IndexError: head, v_idx.
// UnsupportedError: a tile that is neither plain nor rope nor folded.
[[nodiscard]] KvCopy tma_copy_k(const TmaTile& tile, const PagedRowIndices& rows, const KCopyOptions& options);
[[nodiscard]] KvCopy tma_copy_v(const TmaTile& tile, const PagedRowIndices& rows, const VCopyOptions& options);

// Offset of element (row of this CTA's tile, column of the tile) [elements], before the swizzle. IndexError outside.
// Example: the K tile above: (33, 70) -> 6144 + 64 + 6 = 6214.
[[nodiscard]] std::int64_t kv_smem_offset(const KvCopy& copy, std::int64_t row, std::int64_t depth);

// The inverse: an element and the issue that copied it.
struct KvElement {
  std::int64_t page = 0;        // of the tile
  std::int64_t row = 0;         // of the tile
  std::int64_t depth = 0;       // column of the tile
  std::int64_t issue = 0;       // the copy that wrote it; -1: its page was skipped
  std::int64_t matrix_row = 0;  // of the cache; kKvFillRow + .. when filled, -1 when skipped
  friend bool operator==(const KvElement&, const KvElement&) = default;
};
// Empty: the offset is outside the tile, or in the gap between two chunks.
[[nodiscard]] std::optional<KvElement> kv_element_at(const KvCopy& copy, std::int64_t smem);

}  // namespace kvscope
