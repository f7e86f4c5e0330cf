// Tensor maps as data, checked with a small interpreter of the copy: a box must contain the elements that direct
// addressing of the cache finds, and zeros outside the map.
#include "core/tma/tma_tile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "core/cache/paged_kv_cache.h"
#include "core/tma/tile_sizes.h"
#include "tests/core/cache/fixtures.h"

namespace kvscope::tma_tile_test {
namespace {

using test::dim;
using test::fix_a;
using test::head;
using test::message_of;
using test::seq;
using test::tok;

// One copy: for each element of the box, in the order of shared memory, its index in memory from the map's base
// pointer; empty where a coordinate is outside the map. Coordinates are fastest first.
std::vector<std::optional<std::int64_t>> copy_box(const TmaTile& tile, const TmaCoord& coord) {
  const int rank = tile.dims.rank;
  EXPECT_EQ(coord.rank, rank);
  std::vector<std::optional<std::int64_t>> smem;
  std::vector<std::int64_t> p(static_cast<std::size_t>(rank), 0);
  const std::int64_t count = tile.box.count();
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t rest = n;
    bool inside = true;
    std::int64_t address = tile.base_offset;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const std::int64_t c = coord.at[static_cast<std::size_t>(rank - 1 - axis)] + rest % tile.box[axis];
      rest /= tile.box[axis];
      inside = inside && c >= 0 && c < tile.dims[axis];
      address += c * tile.strides[axis];
    }
    smem.push_back(inside ? std::optional(address) : std::nullopt);
  }
  return smem;
}

// A box may extend past a page: row 3 belongs to the next layer.
TEST(PlainTile, CopiesRowsOfOneHeadAndZeroesBeyondIt) {
  auto a = fix_a();
  const PagedKVCache k = a.k(1);
  const TmaTile tile = k.create_tma_tile({.mode = SwizzleMode::b128, .BN = 4});
  EXPECT_EQ(tile.kind, TmaKind::plain);
  EXPECT_EQ(tile.dims, (TmaShape{100, 2, 8}));
  EXPECT_EQ(tile.strides, (TmaShape{16, 8, 1}));
  EXPECT_EQ(tile.box, (TmaShape{4, 1, 32}));
  EXPECT_EQ(tile.tile_shape, (TmaShape{4, 1, 32}));
  EXPECT_EQ(tile.desc_shape, (TmaShape{4, 1, 32}));
  EXPECT_EQ(tile.base, k.blocks().data);
  EXPECT_EQ(tile.base_offset, 0);
  EXPECT_EQ(tile.dtype, DType::f32);
  EXPECT_EQ(tile.swizzle, SwizzleMode::b128);
  EXPECT_EQ(tile.oob, OobFill::none);
  EXPECT_EQ(tile.box_bytes(), 512);
  EXPECT_EQ(tile.column_chunks(), 1);

  const auto smem = copy_box(tile, tile_coords(tile, 1, head(1), dim(0)));
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 32; ++c) {
      const auto& value = smem[static_cast<std::size_t>(r * 32 + c)];
      if (c < 8) {
        EXPECT_EQ(64 + *value, 64 + (1 + r) * 16 + 8 + c);  // row 3 of the box is K of layer 2
      } else {
        EXPECT_FALSE(value);
      }
    }
  }
  EXPECT_EQ(64 + *smem[0], 88);
  EXPECT_EQ(64 + *smem[3 * 32], 136);

  const auto above = copy_box(tile, tile_coords(tile, -1, head(1), dim(0)));
  EXPECT_FALSE(above[0]);
  EXPECT_EQ(64 + *above[32], 72);
  const auto below = copy_box(tile, tile_coords(tile, 98, head(0), dim(0)));
  EXPECT_TRUE(below[32]);
  EXPECT_FALSE(below[64]);
  EXPECT_FALSE(copy_box(tile, tile_coords(tile, 0, head(2), dim(0)))[0]);
}

// Without a swizzle BK 16 is two boxes of 8 columns; with 4 rows the second would begin at byte 64.
TEST(PlainTile, RejectsBoxesThatLeaveTheNextUnaligned) {
  std::vector<std::uint64_t> pool(2 * 480 / 4);
  const TmaRows rows{"rows", reinterpret_cast<std::byte*>(pool.data()), DType::bf16, 30, 2, 8};
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)make_tma_tile(rows, {.BN = 4, .BK = 16}); }),
      "tensor map of rows rejected: box: 64 B are not a multiple of 128 B, so the next box would begin unaligned: use "
      "more rows");
  EXPECT_EQ(make_tma_tile(rows, {.BN = 8, .BK = 16}).column_chunks(), 2);
  EXPECT_NO_THROW((void)make_tma_tile(rows, {.BN = 4, .BK = 8}));  // one box has no next
}

TEST(PlainTile, RejectsWhatTheDriverWould) {
  std::vector<float> pool(1024);
  const auto rejected = [&](const TmaRows& rows, const TileOptions& options) {
    return message_of<GeometryError>([&] { (void)make_tma_tile(rows, options); });
  };
  const TmaRows rows{"rows", test::bytes_of(pool), DType::f32, 8, 2, 8};
  const auto address = reinterpret_cast<std::uintptr_t>(pool.data()) + 4;
  EXPECT_EQ(rejected({"rows", test::bytes_of(pool) + 4, DType::f32, 8, 2, 8}, {.BN = 4, .BK = 4}),
            fmt::format("tensor map of rows rejected: base (V05): {:#x} is 4 B past a multiple of 16: move the tensor",
                        address));
  EXPECT_EQ(rejected(rows, {.BN = 257, .BK = 4}),
            "tensor map of rows rejected: box[2] (V13): 257 is outside 1 to 256: copy the tile in several boxes");
  EXPECT_EQ(rejected({"rows", test::bytes_of(pool), DType::f32, 8, 1, 6}, {.BN = 4, .BK = 4}),
            "tensor map of rows rejected, 2 faults:\n"
            "  strides[0] (V10): 24 B is not a multiple of 16 B: pad the rows\n"
            "  strides[1] (V10): 24 B is not a multiple of 16 B: pad the rows");
  // The maker's rules come first, then the driver's. 2^32 + 4 rows are not 4.
  EXPECT_EQ(rejected(rows, {.BN = 304, .BK = 10}),
            "tensor map of rows rejected, 2 faults:\n"
            "  BK: 10 columns are not whole boxes of 4: use 12\n"
            "  box[2] (V13): 304 is outside 1 to 256: copy the tile in several boxes");
  EXPECT_THROW((void)make_tma_tile(rows, {.BN = (std::int64_t{1} << 32) + 4, .BK = 4}), OverflowError);
  // No rows at all, and fewer than a folded tile's group of 8.
  EXPECT_EQ(rejected({"rows", test::bytes_of(pool), DType::f32, 0, 2, 8}, {.BN = 4, .BK = 4}),
            "tensor map of rows rejected: dims[2] (V08): 0 is outside 1 to 2^32");
  EXPECT_EQ(rejected({"rows", test::bytes_of(pool), DType::f32, 7, 2, 8},
                     {.BN = 8, .BK = 8, .fold_chunks = 2, .row_major = true}),
            "tensor map of rows rejected: dims[3] (V08): 0 is outside 1 to 2^32");
  EXPECT_EQ(rejected(rows, {.mode = SwizzleMode::b128, .BN = 4, .BK = 40}),
            "tensor map of rows rejected: BK: 40 columns are not whole boxes of 32: use 64");
  EXPECT_EQ(rejected(rows, {.BN = 0}), "tensor map of rows rejected: BN: 0 is not positive: give 1 or more");
  EXPECT_EQ(
      rejected({"rows", test::bytes_of(pool), DType::e5m2, 8, 1, 16}, {.BN = 4}),
      "tensor map of rows rejected: dtype: e5m2 is not supported by TMA: use f32, f16, bf16, e4m3, e8m0, u8, u16, u32, "
      "i32, i64 or u64");
}

// Row numbers of this pool pass 2^31; with the block as a separate coordinate the numbers stay small.
TEST(PlainTile, RejectsRowsThatA32BitCoordinateCannotName) {
  std::vector<float> none(4);
  const std::vector<std::uint32_t> lengths{0}, table(24, 0);
  const PagedKVCache k({.dtype = DType::f32, .kv_params = {1, 8, true}, .page_size = 16},
                       {.blocks = {test::bytes_of(none), DType::f32, {1'840'895, 16, 1, 8}, {1408 * 8, 8, 8, 1}},
                        .cache_lengths = {lengths.data(), {1}},
                        .lookup_table = {table.data(), {1, 24}}});
  EXPECT_EQ(k.num_kv_rows(), std::int64_t{1'840'894} * 1408 + 16);
  EXPECT_EQ(
      message_of<OverflowError>([&] { (void)k.create_tma_tile({.BN = 16}); }),
      "tensor map of PagedKVCache.create_tma_tile: 2591978768 rows do not fit a signed 32-bit coordinate, which ends "
      "below 2147483648: use fewer blocks, or a tile with the block as its own coordinate (create_paged_tma_tile)");
  EXPECT_THROW((void)k.create_gather4_tma_tile({.tile_width = 8}), OverflowError);
  EXPECT_THROW((void)k.create_rope_tma_tile({.BN = 16}), OverflowError);
  EXPECT_THROW((void)k.create_rope_gather4_tma_tile({.tile_width = 8}), OverflowError);
  EXPECT_THROW((void)k.create_ragged_tma_tile({.BN = 16}), OverflowError);
  const TmaTile split = k.create_paged_tma_tile({.BN = 16, .BK = 8});
  EXPECT_EQ(page_coords(split, {15, 1'840'894}, head(0), dim(0)), (TmaCoord{0, 0, 15, 1'840'894}));
}

// Both folded maps copy the bytes of the plain boxes, in another order: chunk, row, column; and row group,
// chunk, row, column.
TEST(FoldedTiles, BringThePlainBoxesElementsInTheirOwnOrder) {
  std::vector<float> pool = test::counting(64 * 2 * 24);
  const TmaRows rows{"rows", test::bytes_of(pool), DType::f32, 64, 2, 24};
  const std::int64_t BN = 16, gran = 8, n = 3;
  const TmaTile plain = make_tma_tile(rows, {.mode = SwizzleMode::b32, .BN = BN, .BK = 24});
  const TmaTile outer = make_tma_tile(rows, {.mode = SwizzleMode::b32, .BN = BN, .BK = 24, .fold_chunks = n});
  const TmaTile inner =
      make_tma_tile(rows, {.mode = SwizzleMode::b32, .BN = BN, .BK = 24, .fold_chunks = n, .row_major = true});
  EXPECT_EQ(outer.dims, (TmaShape{2, 3, 64, 8}));
  EXPECT_EQ(outer.strides, (TmaShape{24, 8, 48, 1}));
  EXPECT_EQ(outer.box, (TmaShape{1, 3, 16, 8}));
  EXPECT_EQ(inner.dims, (TmaShape{2, 8, 3, 8, 8}));
  EXPECT_EQ(inner.strides, (TmaShape{24, 384, 8, 48, 1}));
  EXPECT_EQ(inner.box, (TmaShape{1, 2, 3, 8, 8}));
  EXPECT_EQ(plain.column_chunks(), 3);
  EXPECT_EQ(outer.column_chunks(), 1);
  EXPECT_EQ(tile_coords(outer, 24, head(1), dim(8)), (TmaCoord{0, 24, 1, 1}));
  EXPECT_EQ(tile_coords(inner, 24, head(1), dim(8)), (TmaCoord{0, 0, 1, 3, 1}));

  for (int h = 0; h < 2; ++h) {
    const auto from_outer = copy_box(outer, tile_coords(outer, 24, head(h), dim(0)));
    const auto from_inner = copy_box(inner, tile_coords(inner, 24, head(h), dim(0)));
    for (std::int64_t c = 0; c < n; ++c) {
      const auto from_plain = copy_box(plain, tile_coords(plain, 24, head(h), DimIdx{c * gran}));
      for (std::int64_t r = 0; r < BN; ++r) {
        for (std::int64_t g = 0; g < gran; ++g) {
          const std::int64_t element = ((24 + r) * 2 + h) * 24 + c * gran + g;
          EXPECT_EQ(from_plain[static_cast<std::size_t>(r * gran + g)], element);
          EXPECT_EQ(from_outer[static_cast<std::size_t>(c * BN * gran + r * gran + g)], element);
          EXPECT_EQ(from_inner[static_cast<std::size_t>((r / 8) * n * 8 * gran + c * 8 * gran + (r % 8) * gran + g)],
                    element);
        }
      }
    }
  }
}

TEST(FoldedTiles, RejectPartsOfATileAndRaggedGroups) {
  std::vector<float> pool(64 * 2 * 24);
  const TmaRows rows{"rows", test::bytes_of(pool), DType::f32, 64, 2, 24};
  const auto rejected = [](const TmaRows& r, const TileOptions& options) {
    return message_of<GeometryError>([&] { (void)make_tma_tile(r, options); });
  };
  EXPECT_EQ(
      rejected(rows, {.mode = SwizzleMode::b32, .BN = 16, .BK = 24, .fold_chunks = 2}),
      "tensor map of rows rejected: fold_chunks: 2 chunks of 8 columns are 16, not the tile's 24: fold all of them or "
      "none");
  EXPECT_EQ(rejected(rows, {.mode = SwizzleMode::b32, .BN = 12, .BK = 24, .fold_chunks = 3, .row_major = true}),
            "tensor map of rows rejected: BN: 12 rows are not whole groups of 8: use 16");
  EXPECT_EQ(rejected({"rows", test::bytes_of(pool), DType::f32, 64, 2, 20},
                     {.mode = SwizzleMode::b32, .BN = 16, .BK = 24, .fold_chunks = 3}),
            "tensor map of rows rejected: depth: 20 columns of a head are not whole chunks of 8: do not fold");
  const TmaTile inner =
      make_tma_tile(rows, {.mode = SwizzleMode::b32, .BN = 16, .BK = 24, .fold_chunks = 3, .row_major = true});
  EXPECT_EQ(message_of<GeometryError>([&] { (void)tile_coords(inner, 12, head(0), dim(0)); }),
            "coordinates of a fold-inner tile: row 12 is not a multiple of 8, the rows of one group: use 8");
  EXPECT_EQ(message_of<GeometryError>([&] { (void)tile_coords(inner, 8, head(0), dim(4)); }),
            "coordinates of a fold-inner tile: depth 4 is not a multiple of 8, the columns of one chunk: use 0");
}

// A flat box that overruns a page reads another layer; the split map reads zero there. Compared with direct addressing
// for each token of both sequences.
TEST(SplitTile, ReadsItsPageAndNothingPastIt) {
  auto a = fix_a();
  const PagedKVCache v = a.v(1);
  const TmaTile tile = v.create_paged_tma_tile({.BN = 2, .BK = 8});
  EXPECT_EQ(tile.dims, (TmaShape{5, 4, 2, 8}));
  EXPECT_EQ(tile.strides, (TmaShape{384, 16, 8, 1}));
  EXPECT_EQ(tile.box, (TmaShape{1, 2, 1, 8}));
  const std::int64_t base = a.flat(v.blocks().data);
  for (int t = 0; t < 12; ++t) {
    const auto smem = copy_box(tile, page_coords(tile, v.kv_tma_coords(seq(0), tok(t)), head(1), dim(0)));
    for (int c = 0; c < 8; ++c) {
      EXPECT_EQ(base + *smem[static_cast<std::size_t>(c)],
                a.flat(v.block_paged_ptr<1>(seq(0), tok(t), head(1), dim(c))));
      EXPECT_EQ(smem[static_cast<std::size_t>(8 + c)].has_value(), t % 4 != 3);
    }
  }
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)v.create_paged_tma_tile({.BN = 3, .BK = 8}); }),
      "tensor map of PagedKVCache.create_paged_tma_tile rejected: BN: 3 rows do not divide a page of 4: use a divisor "
      "of 4");
}

// 20 rows from row 10 on; the other 44 rows of the box are zero on load and unchanged on store.
TEST(RaggedTile, CopiesExactlyItsRows) {
  std::vector<float> pool(100 * 2 * 64);
  const TmaTile tile = make_ragged_tma_tile({"rows", test::bytes_of(pool), DType::f32, 100, 2, 64},
                                            {.mode = SwizzleMode::b128, .BN = 64, .BK = 64});
  EXPECT_EQ(tile.dims, (TmaShape{202, 64, 64}));
  EXPECT_EQ(tile.strides, (TmaShape{64, 128, 1}));
  EXPECT_EQ(tile.box, (TmaShape{1, 64, 32}));
  EXPECT_EQ(tile.base_offset, -64 * 128);
  EXPECT_EQ(tile.column_chunks(), 2);
  EXPECT_EQ(ragged_coords(tile, 10, 20, head(1), dim(0)), (TmaCoord{0, 44, 61}));
  const auto smem = copy_box(tile, ragged_coords(tile, 10, 20, head(1), dim(32)));
  for (int r = 0; r < 64; ++r) {
    for (int c = 0; c < 32; ++c) {
      const auto& value = smem[static_cast<std::size_t>(r * 32 + c)];
      if (r < 20) {
        EXPECT_EQ(*value, ((10 + r) * 2 + 1) * 64 + 32 + c);
      } else {
        EXPECT_FALSE(value);
      }
    }
  }
  EXPECT_EQ(*copy_box(tile, ragged_coords(tile, 10, 20, head(1), dim(0)))[0], 1344);
  for (const auto& value : copy_box(tile, ragged_coords(tile, 10, 0, head(1), dim(0)))) EXPECT_FALSE(value);
  const auto last = copy_box(tile, ragged_coords(tile, 80, 20, head(0), dim(0)));  // ends exactly at row 100
  EXPECT_EQ(*last[19 * 32], 99 * 128);
  EXPECT_FALSE(last[20 * 32]);
  EXPECT_EQ(message_of<GeometryError>([&] { (void)ragged_coords(tile, 0, 65, head(0), dim(0)); }),
            "coordinates of a ragged tile: 65 rows are outside [0, 64], the rows of the box");
}

// 64 rows by 576 columns: 9 column groups by 16 groups of four rows.
TEST(Gather4Tile, IsGroupsOfColumnsByQuadsOfRows) {
  std::vector<std::uint64_t> pool(10 * 576 / 4);
  const TmaTile tile =
      make_gather4_tma_tile({"rows", reinterpret_cast<std::byte*>(pool.data()), DType::bf16, 10, 1, 576},
                            {.tile_height = 64, .tile_width = 576, .mode = SwizzleMode::b128});
  EXPECT_EQ(tile.dims, (TmaShape{10, 576}));
  EXPECT_EQ(tile.strides, (TmaShape{576, 1}));
  EXPECT_EQ(tile.box, (TmaShape{1, 64}));
  EXPECT_EQ(tile.tile_shape, (TmaShape{64, 64}));
  EXPECT_EQ(tile.desc_shape, (TmaShape{1, 64}));
  EXPECT_EQ(tile.column_chunks() * tile.tile_shape[0] / 4, 144);  // gathers of the whole tile
  EXPECT_EQ(gather4_smem_offset(tile, 2, 3), 8960);
  EXPECT_EQ(gather4_coords(tile, {7, -1, 3, 7}, 2), (TmaCoord{128, 7, -1, 3, 7}));
  EXPECT_EQ(tile.tile_shape[0] * tile.columns * 2, 73728);  // [bytes] the barrier expects
  EXPECT_EQ(message_of<IndexError>([&] {
              (void)gather4_coords(tile, {0, 0, 0, 0}, 9);
            }),
            "gather4 column group 9 is outside [0, 9): a tile has tile_width / box width groups");
  EXPECT_EQ(message_of<IndexError>([&] { (void)gather4_smem_offset(tile, 0, 16); }),
            "gather4 row quad 16 is outside [0, 16): a tile has tile_height / 4 of them");
}

// 640 bytes of fp8 read as 80 i64, of which the content is the first 64.
TEST(Gather4Tile, ReadsRowsAsAWiderType) {
  std::vector<std::uint64_t> pool(10 * 80);
  const TmaRows rows{"rows", reinterpret_cast<std::byte*>(pool.data()), DType::e4m3, 10, 1, 640};
  const TmaTile tile = make_gather4_tma_tile(
      rows, {.tile_width = 64, .tile_stride = 80, .tma_dtype = DType::i64, .l2 = L2Promotion::b256});
  EXPECT_EQ(tile.dims, (TmaShape{10, 80}));
  EXPECT_EQ(tile.box, (TmaShape{1, 64}));
  EXPECT_EQ(tile.column_chunks(), 1);
  EXPECT_EQ(tile.dtype, DType::i64);
  EXPECT_EQ(tile.l2, L2Promotion::b256);
}

TEST(Gather4Tile, RejectsRowsThatAreNotTheCaches) {
  std::vector<std::uint64_t> pool(1600);
  const TmaRows rows{"rows", reinterpret_cast<std::byte*>(pool.data()), DType::bf16, 10, 1, 320};
  const auto rejected = [&](const Gather4Options& options) {
    return message_of<GeometryError>([&] { (void)make_gather4_tma_tile(rows, options); });
  };
  EXPECT_EQ(
      rejected({.tile_width = 64, .mode = SwizzleMode::b128}),
      "tensor map of rows rejected: tile_stride: 64 x bf16 = 128 B, but a row of the cache is 640 B: with another "
      "stride, row numbers would not name cache rows");
  EXPECT_EQ(rejected({.tile_height = 6, .tile_width = 320, .mode = SwizzleMode::b128}),
            "tensor map of rows rejected: tile_height: 6 rows are not whole gathers of 4: use 8");
  EXPECT_EQ(
      rejected({.tile_width = 100, .tile_stride = 320, .mode = SwizzleMode::b64}),
      "tensor map of rows rejected: tile_width: 100 columns are not whole boxes of 32, so more bytes would arrive than "
      "the barrier expects: use 128");
  EXPECT_EQ(
      rejected({.tile_width = 384, .tile_stride = 320, .mode = SwizzleMode::b128}),
      "tensor map of rows rejected: tile_stride: 320 is less than the tile's 384 columns: give the elements of a whole "
      "row");
  EXPECT_EQ(rejected({.tile_width = 0}), "tensor map of rows rejected: tile_width: 0 is not positive: give 1 or more");
  EXPECT_EQ(rejected({.tile_width = 320}),
            "tensor map of rows rejected: box[0] (V13): 320 is outside 1 to 256: copy the tile in several boxes");
}

// Rope value i of row r is at byte 640 r + 512 + 2 i.
TEST(RopeTiles, BeginAfterTheContentAndStepWholeRows) {
  std::vector<std::uint64_t> pool(12 * 80);
  const TmaRows rows{"rows", reinterpret_cast<std::byte*>(pool.data()), DType::e4m3, 12, 1, 640};
  const TmaTile plain = make_rope_tma_tile(rows, {.mode = SwizzleMode::b128, .BN = 4, .padded_depth = 512});
  EXPECT_EQ(plain.dtype, DType::bf16);
  EXPECT_EQ(plain.dims, (TmaShape{12, 1, 320}));
  EXPECT_EQ(plain.strides, (TmaShape{320, 320, 1}));
  EXPECT_EQ(plain.box, (TmaShape{4, 1, 64}));
  EXPECT_EQ(plain.tile_shape, (TmaShape{4, 1, 64}));
  const auto smem = copy_box(plain, tile_coords(plain, 3, head(0), dim(0)));
  for (std::int64_t r = 0; r < 4; ++r) {
    for (std::int64_t i = 0; i < 64; ++i) {
      EXPECT_EQ(2 * *smem[static_cast<std::size_t>(r * 64 + i)], 640 * (3 + r) + 512 + 2 * i);
    }
  }
  EXPECT_EQ(message_of<GeometryError>([&] { (void)tile_coords(plain, 3, head(0), dim(64)); }),
            "coordinates of a rope tile: depth 64 is outside [0, 64): the columns after the rope values are the next "
            "row's content");

  const TmaTile gather =
      make_rope_gather4_tma_tile(rows, {.tile_width = 320, .padded_depth = 512, .mode = SwizzleMode::b128});
  EXPECT_EQ(gather.dims, (TmaShape{12, 320}));
  EXPECT_EQ(gather.strides, (TmaShape{320, 1}));
  EXPECT_EQ(gather.box, (TmaShape{1, 64}));
  EXPECT_EQ(gather.base_offset, 256);
  EXPECT_EQ(gather.column_chunks(), 1);
  EXPECT_EQ(2 * *copy_box(gather, {5, 0})[0] - 2 * 5, 512);  // row 0, value 5
  EXPECT_EQ(2 * *copy_box(gather, {0, 1})[0], 640 + 512);    // the next row is a whole row further
}

// Boxes and coordinates that would read the next row.
TEST(RopeTiles, RejectWhatWouldReadTheNextRow) {
  std::vector<std::uint64_t> pool(12 * 80);
  const TmaRows rows{"rows", reinterpret_cast<std::byte*>(pool.data()), DType::e4m3, 12, 1, 640};
  const auto gather = [&](const TmaRows& r, const RopeGather4Options& options) {
    return message_of<GeometryError>([&] { (void)make_rope_gather4_tma_tile(r, options); });
  };
  const auto plain = [&](const TmaRows& r, const RopeOptions& options) {
    return message_of<GeometryError>([&] { (void)make_rope_tma_tile(r, options); });
  };
  EXPECT_EQ(gather(rows, {.tile_width = 64, .padded_depth = 512, .mode = SwizzleMode::b128}),
            "tensor map of rows rejected: tile_width: 64 bf16 are 128 B, but the whole row is 640 B: use 320");
  EXPECT_THAT(gather(rows, {.tile_width = 320, .padded_depth = 512}),
              testing::HasSubstr(
                  "swizzle: without a swizzle the box is the whole row and runs into the next row's content: use "
                  "128B swizzle"));
  EXPECT_EQ(
      gather(rows, {.tile_width = 320, .padded_depth = 576, .mode = SwizzleMode::b128}),
      "tensor map of rows rejected: padded_depth: 32 rope values are not whole boxes of 64, so the last box would run "
      "into the next row");
  EXPECT_EQ(gather(rows, {.tile_height = 2, .tile_width = 320, .padded_depth = 512, .mode = SwizzleMode::b128}),
            "tensor map of rows rejected: tile_height: 2 rows are not whole gathers of 4: use 4");
  TmaRows two_heads = rows;
  two_heads.heads = 2;
  EXPECT_EQ(
      gather(two_heads, {.tile_width = 320, .padded_depth = 512, .mode = SwizzleMode::b128}),
      "tensor map of rows rejected: heads: 2 heads: a gathered rope row is the row of one head, so the cache must have "
      "1");
  EXPECT_EQ(
      plain(rows, {.mode = SwizzleMode::b128, .BN = 4, .BK = 128, .padded_depth = 512}),
      "tensor map of rows rejected: BK: 512 B of content and 128 rope values of 2 B are 768 B, but a row of a head is "
      "640 B: use 64");
  EXPECT_THAT(plain(rows, {.mode = SwizzleMode::b128, .BN = 4, .padded_depth = 520}),
              testing::HasSubstr("padded_depth: 520 B of content are not whole chunks of 16 B: use 528"));
  for (const std::int64_t content : {-16, 640, 656, 511}) {
    EXPECT_THAT(plain(rows, {.mode = SwizzleMode::b128, .BN = 4, .padded_depth = content}),
                testing::HasSubstr(fmt::format(
                    "padded_depth: {} B of content in a row of 640 B leave no whole bf16 values: give [0, 640) with an "
                    "even rest",
                    content)))
        << content;
  }
  // Three rows of 32 B: the second box of the row would begin at byte 96.
  EXPECT_EQ(plain(rows, {.mode = SwizzleMode::b32, .BN = 3, .padded_depth = 512}),
            "tensor map of rows rejected: box: 96 B are not a multiple of 128 B, so the next box would begin "
            "unaligned: use more rows");
  TmaRows bf16_rows = rows;
  bf16_rows.dtype = DType::bf16;
  EXPECT_EQ(
      plain(bf16_rows, {.mode = SwizzleMode::b128, .BN = 4, .padded_depth = 512}),
      "tensor map of rows rejected: dtype: bf16 elements are 2 B: rope-aware rows need a cache of 1-byte elements");
}

// The older 2-D tile, K-major and MN-major.
TEST(MatrixTile, IsColumnChunksWhenKMajorAndEightRowStripsWhenMnMajor) {
  std::vector<std::uint64_t> pool(40 * 256 / 4);
  const TmaRows rows{"rows", reinterpret_cast<std::byte*>(pool.data()), DType::bf16, 40, 2, 128};
  const TmaTile k_major = make_matrix_tma_tile(rows, 16, 128, SwizzleMode::b128, true);
  EXPECT_EQ(k_major.dims, (TmaShape{40, 256}));
  EXPECT_EQ(k_major.strides, (TmaShape{256, 1}));
  EXPECT_EQ(k_major.box, (TmaShape{16, 64}));
  EXPECT_EQ(matrix_boxes(k_major), (std::vector<MatrixBox>{{0, 0, 0}, {1024, 64, 0}}));
  const TmaTile mn_major = make_matrix_tma_tile(rows, 16, 128, SwizzleMode::b128, false);
  EXPECT_EQ(mn_major.box, (TmaShape{8, 64}));
  EXPECT_EQ(matrix_boxes(mn_major), (std::vector<MatrixBox>{{0, 0, 0}, {512, 64, 0}, {1024, 0, 8}, {1536, 64, 8}}));
  EXPECT_EQ(make_matrix_tma_tile(rows, 12, 64, SwizzleMode::b128, false).box, (TmaShape{12, 64}));
  EXPECT_EQ(tile_coords(k_major, 9, head(1), dim(64)), (TmaCoord{192, 9}));

  const auto rejected = [&](std::int64_t m, std::int64_t n, SwizzleMode mode, bool is_k_major) {
    return message_of<GeometryError>([&] { (void)make_matrix_tma_tile(rows, m, n, mode, is_k_major); });
  };
  EXPECT_EQ(rejected(16, 128, SwizzleMode::b64, false),
            "tensor map of rows rejected: swizzle: 64B swizzle with an MN-major tile: only the 128B swizzle is defined "
            "there");
  EXPECT_EQ(rejected(12, 128, SwizzleMode::b128, false),
            "tensor map of rows rejected: tile_m: 12 rows are not whole boxes of 8: use 16");
  EXPECT_EQ(rejected(16, 100, SwizzleMode::b128, true),
            "tensor map of rows rejected: tile_n: 100 columns are not whole boxes of 64: use 128");
  EXPECT_EQ(
      rejected(4, 16, SwizzleMode::none, true),
      "tensor map of rows rejected: box: 64 B are not a multiple of 128 B, so the next box would begin unaligned: use "
      "more rows");
}

// The extents of the window for each type of scale.
TEST(IndexScaleWindow, IsOneChunkWiderThanItsTile) {
  EXPECT_EQ(index_scale_align(DType::f32), 4);
  EXPECT_EQ(index_scale_align(DType::e8m0), 16);
  std::vector<std::uint64_t> scales(512);
  auto* base = reinterpret_cast<std::byte*>(scales.data());
  const TmaTile f32 = make_index_scale_tma_tile("scales", base, DType::f32, 1002, 128);
  EXPECT_EQ(f32.box, (TmaShape{1, 132}));
  EXPECT_EQ(f32.dims, (TmaShape{1, 1002}));
  EXPECT_EQ(f32.strides, (TmaShape{1004, 1}));
  EXPECT_EQ(make_index_scale_tma_tile("scales", base, DType::e8m0, 1000, 128).box, (TmaShape{1, 144}));
}

// The window of a token begins at its chunk and holds `tile` scales from the token on, for any place in the chunk.
TEST(IndexScaleWindow, HoldsThePagesScalesFromAnyToken) {
  auto f = test::paged_fixture({1, 4, true}, {3, 1, 2, 16, 1, 4}, {2}, test::table_of({{1, 0}}, 24, 2), 24, 1, 2);
  f.params.scale_dtype = DType::f32;
  f.params.quantization_granularity = 4;
  f.scales_extents = {3, 1, 2, 16, 1, 1};
  f.scale_pool = test::counting(96);
  const PagedKVCache k = f.k(1);
  const TmaTile tile = k.create_index_scale_tma_tile(8);
  EXPECT_EQ(tile.dims, (TmaShape{3, 16}));
  EXPECT_EQ(tile.strides, (TmaShape{32, 1}));
  EXPECT_EQ(tile.box, (TmaShape{1, 12}));
  for (int t = 0; t < 24; ++t) {
    const PageCoords at = k.scale_tma_coords(seq(0), tok(t));
    const auto smem = copy_box(tile, {at.row, at.block});
    const std::int64_t skew = t % 16 - at.row;
    for (int i = 0; i < 8 && t % 16 + i < 16; ++i) {
      const std::int64_t scale = f.flat_scale(k.scales_block_paged_ptr(seq(0), tok(t + i), head(0)));
      EXPECT_EQ(f.flat_scale(tile.base) + *smem[static_cast<std::size_t>(skew + i)], scale) << t << " " << i;
    }
  }
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)k.create_index_scale_tma_tile(5); }),
      "tensor map of PagedKVCache.create_index_scale_tma_tile rejected: TILE: 5 rows do not divide a page of 16: use a "
      "divisor");
  f.params.quantization_granularity = 2;
  f.scales_extents[5] = 2;
  f.scale_pool = test::counting(192);
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)f.k(1).create_index_scale_tma_tile(8); }),
      "tensor map of PagedKVCache.create_index_scale_tma_tile rejected: scales: 2 scales a row: an index-scale window "
      "needs exactly 1");
  EXPECT_THROW((void)fix_a().k(0).create_index_scale_tma_tile(4), UnsupportedError);
}

TEST(IndexScaleWindow, RejectsABlockStrideOfBrokenChunks) {
  std::vector<float> scales(64);
  const AnyView<4> view(test::bytes_of(scales), DType::f32, {3, 16, 1, 1}, {18, 1, 1, 1});
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)make_paged_index_scale_tma_tile("scales", view, 8); }),
      "tensor map of scales rejected: page stride: 18 scales from block to block are not whole chunks of 4: use 20");
}

TEST(Coordinates, RejectATileOfAnotherKindAndNumbersPast32Bits) {
  auto a = fix_a();
  const TmaTile plain = a.k(0).create_tma_tile({.BN = 4, .BK = 4});
  const TmaTile split = a.k(0).create_paged_tma_tile({.BN = 4, .BK = 8});
  EXPECT_EQ(message_of<GeometryError>([&] { (void)tile_coords(split, 0, head(0), dim(0)); }),
            "tile_coords was asked of a page tile: use the function for that kind");
  EXPECT_THROW((void)page_coords(plain, {}, head(0), dim(0)), GeometryError);
  EXPECT_THROW((void)ragged_coords(plain, 0, 0, head(0), dim(0)), GeometryError);
  EXPECT_THROW((void)gather4_coords(plain, {}, 0), GeometryError);
  EXPECT_THROW((void)gather4_smem_offset(plain, 0, 0), GeometryError);
  EXPECT_THROW((void)matrix_boxes(plain), GeometryError);
  EXPECT_THROW((void)tile_coords(plain, std::int64_t{1} << 31, head(0), dim(0)), OverflowError);
  EXPECT_EQ(name(TmaKind::scales), "scales");
}

// Boxes of whole sub-tiles, at the rows populate gives, are the tokens of the tile: cache, table, rows and
// map in one chain.
TEST(PlainTile, AtPopulatedRowsBringsTheTilesTokens) {
  auto a = fix_a();
  const PagedKVCache k = a.k(2);
  const std::int64_t rows_of_box = kv_sub_tile_rows(8, k.page_size());
  const TmaTile tile = k.create_tma_tile({.mode = SwizzleMode::none, .BN = rows_of_box, .BK = 4});
  const PagedRowIndices rows = k.populate({.BN = 8, .base_alignment = 4}, seq(0), tok(4));
  const std::int64_t base = a.flat(k.blocks().data);
  for (int i = 0; i < 8; i += 4) {
    const auto smem = copy_box(tile, tile_coords(tile, rows.get_row(i).value, head(1), dim(4)));
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 4; ++c) {
        EXPECT_EQ(base + *smem[static_cast<std::size_t>(r * 4 + c)],
                  a.flat(k.block_paged_ptr<1>(seq(0), tok(4 + i + r), head(1), dim(4 + c))));
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::tma_tile_test
