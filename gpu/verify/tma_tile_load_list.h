// The tiles that tma_tile_load is tested with, as data: the fault that each detects, and the bytes that its copies must
// load.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/tma/tma_tile.h"
#include "gpu/kernels/tma_tile_load/params.h"
#include "gpu/verify/cache_fixture.h"

namespace kvscope::gpu {

// Settings that most tiles leave at their defaults.
struct SpecialTile {
  std::int64_t ctas = 1;                // K: 2 share a tile
  std::int64_t smem_rows = 0;           // K: rows from chunk to chunk; 0: those of one block
  std::int64_t parts = 1, part = 0;     // V
  std::int64_t depth = 0, columns = 0;  // the first, and how many; 0: all, padded to whole chunks
  std::int64_t padded_depth = 0;        // rope: bytes of content before it
  std::int64_t tile_at = 0;             // [bytes] of the window
  bool mn_major = false;                // matrix: the tile is the transpose, boxes of 8 rows
  bool demo = false;
};

struct TileCase {
  const char* name;
  const char* what;
  CacheShape shape;
  Slot slot;
  std::int64_t layer, head;
  TmaKind kind;
  SwizzleMode mode;
  std::int64_t BN;
  PastEnd past_end;
  std::int64_t tma_bytes;  // computed by hand, in the comment above each
  SpecialTile special{};
};

inline CacheShape tile_cache(DType dtype, std::int64_t page_size, std::int64_t kv_heads, std::int64_t head_size,
                             std::vector<std::int64_t> lengths, std::int64_t layers = 2) {
  return {.dtype = dtype,
          .page_size = page_size,
          .layers = layers,
          .kv_heads = kv_heads,
          .head_size = head_size,
          .lengths = std::move(lengths),
          .room = {}};
}

inline CacheShape with_sentinels(CacheShape shape) {
  shape.sentinels = true;
  return shape;
}
inline CacheShape latent(CacheShape shape) {
  shape.mla = true;
  return shape;
}

// The last number of each is the bytes that the copies must load: rows * bytes of a row's chunks, of the pages copied.
inline std::vector<TileCase> tile_cases() {
  constexpr auto bf16 = DType::bf16, f16 = DType::f16, f32 = DType::f32, e4m3 = DType::e4m3;
  constexpr auto none = SwizzleMode::none, b32 = SwizzleMode::b32, b64 = SwizzleMode::b64, b128 = SwizzleMode::b128;
  constexpr auto K = Slot::key, V = Slot::value;
  constexpr auto plain = TmaKind::plain;
  return {
      // 2 pages of 16 rows of 128 B.
      {"k_bf16_b128_page16_tiny",
       "a tile over two pages that are not adjacent, the second of 4 tokens",
       tile_cache(bf16, 16, 2, 64, {20}),
       K,
       1,
       1,
       plain,
       b128,
       32,
       PastEnd::skip,
       4096,
       {.demo = true}},
      // 51 tokens, 256 B each.
      {"k_f16_b128_page1", "a copy for each token and chunk: rows are at unrelated places in the pool",
       tile_cache(f16, 1, 2, 128, {0, 1, 17, 33}), K, 1, 0, plain, b128, 16, PastEnd::skip, 51 * 256},
      // 1 + 1 + 2 + 7 pages of 16 rows, 3 chunks of 64 B.
      {"k_bf16_b64_page16_padded", "80 columns in chunks of 32: the last 16 are zeros, not the next head",
       tile_cache(bf16, 16, 3, 80, {15, 16, 17, 100}), K, 0, 1, plain, b64, 64, PastEnd::skip, 11 * 16 * 192},
      // 1 + 1 + 2 pages of 64 rows, 2 chunks of 32 B.
      {"k_e4m3_b32_page64_third_layer",
       "a tile as tall as a page, at an offset that is not a multiple of 1024",
       tile_cache(e4m3, 64, 2, 64, {63, 64, 65}, 3),
       K,
       2,
       1,
       plain,
       b32,
       64,
       PastEnd::skip,
       4 * 64 * 64,
       {.tile_at = 256}},
      // 1 + 2 + 3 tiles of 64 rows, 8 chunks of 16 B.
      {"k_f32_none_page128_below", "tiles that end inside a page: poison after the last token is copied unchanged",
       tile_cache(f32, 128, 2, 32, {1, 127, 129}), K, 1, 1, plain, none, 64, PastEnd::skip, 6 * 64 * 128},
      // 4 tiles of 64 rows, 2 chunks of 128 B.
      {"k_bf16_b128_page256_gap",
       "chunks 96 rows apart: the 32 rows between them do not change",
       tile_cache(bf16, 256, 1, 128, {200}),
       K,
       0,
       0,
       plain,
       b128,
       64,
       PastEnd::copy,
       4 * 64 * 256,
       {.smem_rows = 96}},
      // 1 tile of 256 rows of 128 B.
      {"k_e4m3_b128_page256_mqa", "the tallest possible box, one head", tile_cache(e4m3, 256, 1, 128, {255}), K, 1, 0,
       plain, b128, 256, PastEnd::copy, 256 * 128},
      // 4 sequences, 2 tiles, 32 rows of 2 chunks: pages without tokens are fetched as zeros and counted.
      {"v_bf16_b128_page16_parts_fill",
       "the second half of V's tile; pages past the end are zeros, not poison",
       tile_cache(bf16, 16, 2, 128, {0, 31, 40, 97}),
       V,
       1,
       1,
       plain,
       b128,
       64,
       PastEnd::fill,
       8 * 32 * 256,
       {.parts = 2, .part = 1}},
      // 2 sequences, 3 tiles, 32 rows of 128 B.
      {"v_bf16_b64_page256_part_of_page",
       "the third quarter of a tile that is inside one page",
       tile_cache(bf16, 256, 2, 64, {100, 321}),
       V,
       0,
       1,
       plain,
       b64,
       128,
       PastEnd::copy,
       6 * 32 * 128,
       {.parts = 4, .part = 2}},
      // 0 + 1 + 2 + 3 pages of 64 rows, 3 chunks of 32 B.
      {"v_f16_b32_page64_skip",
       "columns 48..95 of zero, one, two and three pages; skipped bytes keep 0xCD",
       tile_cache(f16, 64, 2, 96, {0, 64, 65, 130}),
       V,
       1,
       0,
       plain,
       b32,
       128,
       PastEnd::skip,
       6 * 64 * 96,
       {.depth = 48, .columns = 48, .tile_at = 512}},
      // 2 sequences, 3 tiles, 16 rows of 128 B.
      {"v_bf16_none_page16_null_pages",
       "the null page is a page: its poison is copied unless pages past the end are skipped",
       tile_cache(bf16, 16, 2, 64, {16, 33}), V, 0, 1, plain, none, 16, PastEnd::copy, 6 * 16 * 128},
      // 4 pages of 16 rows of 128 B, of which two are rows that the map does not have.
      {"k_bf16_b128_page16_sentinels", "table entries past the pool: zeros past the map's end, no fault",
       with_sentinels(tile_cache(bf16, 16, 2, 64, {20})), K, 1, 1, plain, b128, 64, PastEnd::copy, 64 * 128},
      // 4 and 0, 4 and 3, 8 and 8 pages of 16 rows, 2 chunks of 128 B.
      {"k_bf16_b128_page16_pair",
       "each of two blocks has half the pages; the second has 0, 3 or all of them",
       tile_cache(bf16, 16, 2, 128, {64, 100, 250}),
       K,
       1,
       0,
       plain,
       b128,
       128,
       PastEnd::skip,
       27 * 16 * 256,
       {.ctas = 2}},
      // 2 tiles, 2 blocks, 64 rows of 2 chunks.
      {"k_bf16_b128_page128_pair_half_page",
       "one page for two blocks: the second begins at its row 64",
       tile_cache(bf16, 128, 2, 128, {130}),
       K,
       0,
       1,
       plain,
       b128,
       128,
       PastEnd::copy,
       4 * 64 * 256,
       {.ctas = 2}},
      // 2 blocks, 128 rows of 128 B.
      {"k_f16_b64_page128_pair_pages",
       "two pages for two blocks: the second has the second",
       tile_cache(f16, 128, 2, 64, {200}),
       K,
       1,
       1,
       plain,
       b64,
       256,
       PastEnd::copy,
       2 * 128 * 128,
       {.ctas = 2}},
      // 2 tiles of 64 rows, 2 chunks of 128 B in one copy.
      {"k_bf16_b128_page128_fold_outer",
       "columns 128..255 of a head in one copy",
       tile_cache(bf16, 128, 2, 256, {70}),
       K,
       1,
       1,
       TmaKind::fold_outer,
       b128,
       64,
       PastEnd::copy,
       2 * 64 * 256,
       {.depth = 128, .columns = 128}},
      // 2 + 4 pages of 16 rows, 4 chunks of 64 B.
      {"k_bf16_b64_page16_fold_inner",
       "chunks inside groups of 8 rows, one copy per page; columns 128..255",
       tile_cache(bf16, 16, 2, 256, {17, 64}),
       K,
       1,
       1,
       TmaKind::fold_inner,
       b64,
       64,
       PastEnd::skip,
       6 * 16 * 256,
       {.depth = 128, .columns = 128}},
      // 4 pages of 8 rows, 2 chunks of 128 B.
      {"v_bf16_b128_page8_fold_inner_fill", "zeros from a group of rows past the last one",
       tile_cache(bf16, 8, 2, 128, {9}), V, 1, 0, TmaKind::fold_inner, b128, 32, PastEnd::fill, 32 * 256},
      // 1 + 3 pages of 64 rows of 64 rope values.
      {"k_rope_b128_page64",
       "bf16 after 512 bytes of content, rows 640 bytes apart",
       latent(tile_cache(e4m3, 64, 1, 640, {30, 130})),
       K,
       1,
       0,
       TmaKind::rope,
       b128,
       64,
       PastEnd::skip,
       4 * 64 * 128,
       {.padded_depth = 512}},
      // 3 pages of 16 rows of 32 rope values in 2 chunks.
      {"k_rope_b32_page16_heads",
       "rope values of the second head, after its content",
       tile_cache(e4m3, 16, 2, 128, {40}),
       K,
       0,
       1,
       TmaKind::rope,
       b32,
       32,
       PastEnd::skip,
       3 * 16 * 64,
       {.padded_depth = 64}},
      // 6 sequences, 64 rows of 2 chunks, however many of them are valid.
      {"k_ragged_b128_page16", "rows after the last token are zeros although memory there is poison",
       tile_cache(bf16, 16, 2, 128, {0, 1, 15, 16, 17, 40}), K, 1, 1, TmaKind::ragged, b128, 64, PastEnd::copy,
       6 * 64 * 256},
      // 2 sequences, 2 tiles, 32 rows of 2 chunks of 64 B.
      {"k_ragged_b64_page64_below", "a ragged tile in the second half of a page", tile_cache(f16, 64, 3, 64, {33, 63}),
       K, 0, 2, TmaKind::ragged, b64, 32, PastEnd::copy, 4 * 32 * 128},
      // 1 + 3 tiles of 32 rows of 128 B.
      {"v_page_map_b128_page64", "slot and block as separate coordinates", tile_cache(bf16, 64, 2, 64, {30, 65}), V, 1,
       1, TmaKind::page, b128, 32, PastEnd::skip, 4 * 32 * 128},
      // 3 sequences, 2 tiles of 64 rows, 2 chunks of 128 B.
      {"k_bf16_b128_matrix",
       "a continuous cache as a matrix: the second tile ends past its block, in the rows of the next layer",
       tile_cache(bf16, 100, 2, 128, {100, 1, 65}), K, 1, 1, TmaKind::matrix, b128, 64, PastEnd::copy,
       3 * 2 * 64 * 256},
      // 2 sequences, 3 tiles of 24 rows, 2 chunks of 128 B, in boxes of 8 rows.
      {"v_f16_b128_matrix_mn_major",
       "V's tile as the transpose: boxes of 8 rows, all columns of eight rows before the next eight",
       tile_cache(f16, 70, 3, 128, {70, 9}),
       V,
       0,
       1,
       TmaKind::matrix,
       b128,
       24,
       PastEnd::copy,
       2 * 3 * 24 * 256,
       {.mn_major = true}},
      // 1 sequence, 3 tiles of 16 rows, 2 chunks of 64 B: half of a head's columns.
      {"k_f32_b64_matrix_half",
       "the second half of a head's columns; the matrix ends with the pool's last block",
       tile_cache(f32, 40, 2, 64, {40}, 3),
       K,
       2,
       1,
       TmaKind::matrix,
       b64,
       16,
       PastEnd::copy,
       3 * 16 * 128,
       {.depth = 32, .columns = 32, .tile_at = 512}},
  };
}

}  // namespace kvscope::gpu
