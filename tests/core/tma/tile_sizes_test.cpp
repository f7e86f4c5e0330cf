#include "core/tma/tile_sizes.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/core/cache/fixtures.h"

namespace kvscope::tile_sizes_test {
namespace {

using test::message_of;

// 127 and 576 detect rounding down and rounding to a fixed width.
TEST(PaddedDepth, RoundsUpToWholeSwizzleRows) {
  EXPECT_EQ(padded_depth(DType::bf16, SwizzleMode::b128, 64), 64);
  EXPECT_EQ(padded_depth(DType::bf16, SwizzleMode::b128, 80), 128);
  EXPECT_EQ(padded_depth(DType::bf16, SwizzleMode::b128, 127), 128);
  EXPECT_EQ(padded_depth(DType::bf16, SwizzleMode::b128, 576), 576);
  EXPECT_EQ(padded_depth(DType::e4m3, SwizzleMode::b128, 512), 512);
  EXPECT_EQ(padded_depth(DType::e4m3, SwizzleMode::b128, 576), 640);
  EXPECT_EQ(padded_depth(DType::e4m3, SwizzleMode::b64, 576), 576);
  // No swizzle still means chunks of 16 bytes.
  EXPECT_EQ(padded_depth(DType::bf16, SwizzleMode::none, 70), 72);
  EXPECT_EQ(padded_depth(DType::bf16, SwizzleMode::none, 72), 72);
}

TEST(PaddedDepth, RejectsANegativeDepth) {
  EXPECT_EQ(message_of<GeometryError>([] { (void)padded_depth(DType::bf16, SwizzleMode::b128, -1); }),
            "depth -1 is negative: give the elements of a head");
}

// Pages smaller than, equal to and larger than the tile, and no pages.
TEST(SubTiles, AreThePageOrTheWholeTileWhicheverIsSmaller) {
  const auto both = [](std::int64_t tile, std::int64_t page) {
    return std::array{kv_sub_tile_rows(tile, page), kv_num_sub_tiles(tile, page)};
  };
  EXPECT_EQ(both(128, 0), (std::array<std::int64_t, 2>{128, 1}));
  EXPECT_EQ(both(128, -1), (std::array<std::int64_t, 2>{128, 1}));
  EXPECT_EQ(both(128, 128), (std::array<std::int64_t, 2>{128, 1}));
  EXPECT_EQ(both(128, 256), (std::array<std::int64_t, 2>{128, 1}));
  EXPECT_EQ(both(128, 64), (std::array<std::int64_t, 2>{64, 2}));
  EXPECT_EQ(both(128, 16), (std::array<std::int64_t, 2>{16, 8}));
  EXPECT_EQ(both(192, 16), (std::array<std::int64_t, 2>{16, 12}));
  EXPECT_EQ(both(256, 16), (std::array<std::int64_t, 2>{16, 16}));
  EXPECT_EQ(both(64, 128), (std::array<std::int64_t, 2>{64, 1}));
}

// A kernel that divides (100, 64) down would silently leave 36 rows out.
TEST(SubTiles, RejectATileThatIsNotWholePages) {
  EXPECT_EQ(message_of<GeometryError>([] { (void)kv_num_sub_tiles(100, 64); }),
            "a tile of 100 rows is not a whole number of pages of 64 rows: use 64 or 128 rows");
  EXPECT_EQ(message_of<GeometryError>([] { (void)kv_num_sub_tiles(0, 64); }),
            "a tile of 0 rows is empty: give 1 or more");
}

// The box of one gather.
TEST(Gather4, TakesTheWholeWidthWithoutASwizzleAndOneSwizzleRowWithOne) {
  EXPECT_EQ(gather4_box_width(DType::bf16, 576, SwizzleMode::b128), 64);
  EXPECT_EQ(gather4_box_width(DType::i64, 72, SwizzleMode::none), 72);
  EXPECT_EQ(gather4_box_width(DType::e4m3, 576, SwizzleMode::b64), 64);
  EXPECT_EQ(gather4_box_width(DType::bf16, 320, SwizzleMode::b128), 64);
  EXPECT_EQ(gather4_box_width(DType::bf16, 100, SwizzleMode::b64), 32);
  EXPECT_EQ(message_of<GeometryError>([] { (void)gather4_box_width(DType::bf16, 0, SwizzleMode::none); }),
            "gather4 tile width 0 is not positive");
}

// Only the last extent of tile and box changes.
TEST(SplitTileShapes, ChangeOnlyTheLastExtent) {
  const std::array<std::int64_t, 3> tile{64, 1, 80};
  EXPECT_EQ(padded_shape(DType::bf16, SwizzleMode::b128, tile), (std::array<std::int64_t, 3>{64, 1, 128}));
  EXPECT_EQ(ragged_shape(DType::bf16, SwizzleMode::b128, tile), (std::array<std::int64_t, 3>{64, 1, 64}));
}

// The conditions for folding, each violated once.
TEST(FoldChunks, NeedsSeveralWholeChunksAndRowsThatFillTheSharedTile) {
  const FoldQuestion base{.BK = 128, .head_size = 128, .box_rows = 64, .smem_BN = 64};
  const auto fold = [&base](auto change) {
    FoldQuestion q = base;
    change(q);
    return kv_tma_fold_chunks(q);
  };
  EXPECT_EQ(fold([](FoldQuestion&) {}), 2);
  EXPECT_EQ(fold([](FoldQuestion& q) { q.box_rows = 32, q.page_size = 32; }), 1);
  EXPECT_EQ(fold([](FoldQuestion& q) { q.box_rows = 32, q.page_size = 32, q.row_major = true; }), 2);
  EXPECT_EQ(fold([](FoldQuestion& q) { q.BK = 64; }), 1);
  EXPECT_EQ(fold([](FoldQuestion& q) { q.head_size = 127; }), 1);
  EXPECT_EQ(fold([](FoldQuestion& q) { q.head_size = 256, q.page_size = 128; }), 2);
  EXPECT_EQ(fold([](FoldQuestion& q) { q.BK = 256, q.head_size = 512, q.page_size = 64; }), 4);
  EXPECT_EQ(fold([](FoldQuestion& q) { q.box_rows = 4, q.row_major = true; }), 1);
  EXPECT_EQ(fold([](FoldQuestion& q) { q.BK = q.head_size = 192, q.page_size = 64; }), 3);
  EXPECT_EQ(fold([](FoldQuestion& q) { q.dtype = DType::e4m3; }), 1);
  EXPECT_EQ(fold([](FoldQuestion& q) { q.BK = 160, q.head_size = 320; }), 1);  // 2.5 chunks
  EXPECT_EQ(fold([](FoldQuestion& q) { q.page_size = 32; }), 1);               // box taller than a page
}

}  // namespace
}  // namespace kvscope::tile_sizes_test
