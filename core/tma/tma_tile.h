// Tiles of packed rows as tensor maps: the map that a cache would pass to the driver for TMA copies of its rows, and
// the coordinates of each copy. This file executes no copy. Every list runs slow -> fast and counts elements;
// tile_map.h turns a tile into the encoder's TensorMap, which is fastest first and counts bytes. Coordinates are
// fastest first here too.
//
// A load at coordinates c brings the whole box: element p of it is memory at base + sum (c_i + p_i) * stride_i where
// every 0 <= c_i + p_i < dim_i, and 0 elsewhere. It lands at linear box offset sum p_i * (product of the faster
// axes' box extents).
//
// maker      dims                         strides                  box                   coordinates
// plain      [rows, H, D]                 [H*D, D, 1]              [BN, 1, gran]         depth, head, row
// fold outer [H, D/gran, rows, gran]      [D, gran, H*D, 1]        [1, n, BN, gran]      0, row, depth/gran, head
// fold inner [H, rows/8, D/gran, 8, gran] [D, 8*H*D, gran, H*D, 1] [1, BN/8, n, 8, gran] 0, 0, depth/gran, row/8, head
// page       [NB, P, H, D]                [block, H*D, D, 1]       [1, BN, 1, BK]        depth, head, slot, block
// ragged     [H*(rows+1), BM, D]          [D, H*D, 1]              [1, BM, gran]         depth, BM-n, (row+n)*H+head
// gather4    [rows, tile_stride]          [tile_stride, 1]         [1, box width]        column, four rows
// rope       [rows, H, W]                 [H*W, W, 1]              [BN, 1, gran]         depth, head, row
// matrix     [rows, H*D]                  [H*D, 1]                 [box rows, gran]      column, row
// scales     [1, total] or [NB, P]        [line, 1]                [1, BMN]              offset, line
//
// GeometryError when a rule of the maker or of the driver is broken (tensor_map_rules.h, checked for the tile's map):
// all faults at once, the maker's first. OverflowError: 2^31 rows or more, because coordinates are signed 32-bit
// numbers. Example: f32, H 2, D 8, 100 rows, BN 4, b128: dims [100,2,8], strides [16,8,1], box [4,1,32].
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/index.h"
#include "core/layout/strided_view.h"
#include "core/layout/swizzle.h"
#include "core/tma/tensor_map.h"

namespace kvscope {

enum class TmaKind : std::uint8_t { plain, fold_outer, fold_inner, page, ragged, gather4, rope, matrix, scales };

[[nodiscard]] std::string_view name(TmaKind kind);

// Up to five extents, slow -> fast.
struct TmaShape {
  int rank = 0;
  std::array<std::int64_t, 5> extents{};

  TmaShape() = default;
  TmaShape(std::initializer_list<std::int64_t> list) : rank(static_cast<int>(list.size())) {
    std::size_t axis = 0;
    for (const std::int64_t extent : list) extents.at(axis++) = extent;
  }
  [[nodiscard]] std::int64_t operator[](int axis) const { return extents[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::int64_t fastest() const { return extents[static_cast<std::size_t>(rank - 1)]; }
  [[nodiscard]] std::int64_t count() const;  // product
  friend bool operator==(const TmaShape&, const TmaShape&) = default;
};

// Coordinates of one copy, fast-first, as the instruction takes them.
struct TmaCoord {
  int rank = 0;
  std::array<std::int32_t, 5> at{};

  TmaCoord() = default;
  TmaCoord(std::initializer_list<std::int32_t> list) : rank(static_cast<int>(list.size())) {
    std::size_t axis = 0;
    for (const std::int32_t coordinate : list) at.at(axis++) = coordinate;
  }
  friend bool operator==(const TmaCoord&, const TmaCoord&) = default;
};

// The place of a token when the block is a separate axis: both numbers stay small where a flat row would pass 2^31.
struct PageCoords {
  std::int32_t row = 0;  // in the page
  std::int32_t block = 0;
  friend bool operator==(const PageCoords&, const PageCoords&) = default;
};

struct TmaTile {
  TmaKind kind = TmaKind::plain;
  std::byte* base = nullptr;     // of the view the tile was made from
  std::int64_t base_offset = 0;  // [elements of dtype] from there to the map's base; negative for ragged
  DType dtype = DType::f32;      // of the map: gather4 and rope may read the rows as another type
  TmaShape dims, strides, box;   // strides [elements]
  SwizzleMode swizzle = SwizzleMode::none;
  L2Promotion l2 = L2Promotion::none;
  OobFill oob = OobFill::none;  // interleave is none in every map
  TmaShape tile_shape;          // the shared-memory tile that several boxes fill
  TmaShape desc_shape;          // the part of it that one copy fills
  std::int64_t heads = 1;       // H, for ragged and matrix coordinates
  std::int64_t columns = 0;     // columns a whole tile covers: BK, or the gather's tile_width
  std::int64_t depth_end = 0;   // tile_coords rejects columns from here on (rope: the next row); 0: no limit

  [[nodiscard]] std::int64_t column_chunks() const;  // boxes side by side in a tile
  [[nodiscard]] std::int64_t box_bytes() const;
};
static_assert(std::is_trivially_copyable_v<TmaTile> && std::is_trivially_destructible_v<TmaTile>);

// --- coordinates -----------------------------------------------------------------------------------------------------

// plain, rope, fold_outer, fold_inner, matrix. Rows, heads and columns outside the map are legal: they read as
// zero. GeometryError: fold_inner and row % 8; a fold and depth % gran; rope and depth >= BK; another kind.
// OverflowError: 32 bits.
[[nodiscard]] TmaCoord tile_coords(const TmaTile& tile, std::int64_t row, HeadIdx head, DimIdx depth);
// page: GeometryError for another kind. Example: token (1, 3), head 1, depth 0 -> (0, 1, 1, 3).
[[nodiscard]] TmaCoord page_coords(const TmaTile& tile, PageCoords token, HeadIdx head, DimIdx depth);
// ragged: exactly `n` rows from `row` on, n in [0, BM]. Example: BM 64, H 2, row 10, n 20, head 1 -> (0, 44, 61).
[[nodiscard]] TmaCoord ragged_coords(const TmaTile& tile, std::int64_t row, std::int64_t n, HeadIdx head, DimIdx depth);
// gather4: column group `group` of four rows. IndexError for a group the tile does not have.
[[nodiscard]] TmaCoord gather4_coords(const TmaTile& tile, const std::array<std::int32_t, 4>& rows, std::int64_t group);
// Where gather (group, four_rows) of a whole tile lands [elements]. Example: 64 x 576 bf16, b128: (2, 3) -> 8960.
[[nodiscard]] std::int64_t gather4_smem_offset(const TmaTile& tile, std::int64_t group, std::int64_t four_rows);

// One box of a whole `matrix` tile.
struct MatrixBox {
  std::int64_t smem_offset = 0;                    // [elements]
  std::int64_t column_offset = 0, row_offset = 0;  // from the tile's first element
  friend bool operator==(const MatrixBox&, const MatrixBox&) = default;
};
// Example: bf16, b128, 16 x 128, K-major: {0, 0, 0}, {1024, 64, 0}.
[[nodiscard]] std::vector<MatrixBox> matrix_boxes(const TmaTile& tile);

// --- makers ----------------------------------------------------------------------------------------------------------

// The input of the makers: rows of heads * depth packed elements. `object` names the caller in messages.
struct TmaRows {
  std::string_view object;
  std::byte* base = nullptr;
  DType dtype = DType::f32;
  std::int64_t rows = 0, heads = 0, depth = 0;
};

struct TileOptions {
  SwizzleMode mode = SwizzleMode::none;
  std::int64_t BN = 0;  // rows of a box: kv_sub_tile_rows(tile, page); more would copy rows of other layers
  std::optional<std::int64_t> BK{};  // default: padded_depth of the rows
  std::int64_t fold_chunks = 1;      // column chunks of one copy: 1, or all of them (kv_tma_fold_chunks)
  bool row_major = false;            // folded chunks inside 8-row groups
};

struct Gather4Options {
  std::int64_t tile_height = 4;  // rows of a whole tile
  std::int64_t tile_width = 0;   // columns of a whole tile
  // Default: tile_width. Counts elements of tma_dtype and covers a whole row of the cache.
  std::optional<std::int64_t> tile_stride{};
  SwizzleMode mode = SwizzleMode::none;
  std::optional<DType> tma_dtype{};  // default: the cache's. i64 for fp8 rows gives fewer, wider columns
  L2Promotion l2 = L2Promotion::none;
};

struct RopeOptions {
  SwizzleMode mode = SwizzleMode::none;
  std::int64_t BN = 0;
  std::optional<std::int64_t> BK{};  // rope values of a row; default: the rest of the row after padded_depth
  std::int64_t padded_depth = 0;     // [bytes] of fp8 content before the bf16 rope values
};

struct RopeGather4Options {
  std::int64_t tile_height = 4;
  std::int64_t tile_width = 0;  // the whole row in bf16 units: content and rope
  std::int64_t padded_depth = 0;
  SwizzleMode mode = SwizzleMode::none;  // must be set: without a swizzle the box would extend into the next row
  L2Promotion l2 = L2Promotion::none;
};

[[nodiscard]] TmaTile make_tma_tile(const TmaRows& rows, const TileOptions& options);
[[nodiscard]] TmaTile make_matrix_tma_tile(const TmaRows& rows, std::int64_t tile_m, std::int64_t tile_n,
                                           SwizzleMode mode, bool is_k_major);
[[nodiscard]] TmaTile make_paged_tma_tile(std::string_view object, const AnyView<4>& blocks,
                                          const TileOptions& options);
[[nodiscard]] TmaTile make_ragged_tma_tile(const TmaRows& rows, const TileOptions& options);
[[nodiscard]] TmaTile make_gather4_tma_tile(const TmaRows& rows, const Gather4Options& options);
[[nodiscard]] TmaTile make_rope_tma_tile(const TmaRows& rows, const RopeOptions& options);
[[nodiscard]] TmaTile make_rope_gather4_tma_tile(const TmaRows& rows, const RopeGather4Options& options);

// `total` scales in one line, BMN at a time; total % 4 == 0.
[[nodiscard]] TmaTile make_scale_tma_tile(std::string_view object, std::byte* base, DType dtype, std::int64_t total,
                                          std::int64_t BMN);
// Scales as `lines` x `length`, BMN of one line at a time.
[[nodiscard]] TmaTile make_scale_lines_tma_tile(std::string_view object, std::byte* base, DType dtype,
                                                std::int64_t lines, std::int64_t length, std::int64_t line_stride,
                                                std::int64_t BMN);

// The number of scales in one 16-byte chunk: a window of `tile` scales may begin inside a chunk, so its box
// is tile + align wide.
// Example: f32, tile 128: align 4, box 132; e8m0: align 16, box 144.
[[nodiscard]] std::int64_t index_scale_align(DType dtype);
// One scale per row, all rows in one line. The outer stride is rounded up to `align` and affects no address.
[[nodiscard]] TmaTile make_index_scale_tma_tile(std::string_view object, std::byte* base, DType dtype,
                                                std::int64_t rows, std::int64_t tile);
// One scale per row, one line per block: scales [NB, P, 1, 1].
[[nodiscard]] TmaTile make_paged_index_scale_tma_tile(std::string_view object, const AnyView<4>& scales,
                                                      std::int64_t tile);

}  // namespace kvscope
