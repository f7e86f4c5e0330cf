#include "core/staging/lds/lds_layout.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/staging/lds/support.h"

namespace kvscope::lds_layout_test {
namespace {

using test::message_of;
using test::named;

struct Row {
  std::int64_t stage, key, depth, L, P_byte;
};

void expect_rows(const KVBufferParams& params, const std::vector<Row>& rows) {
  const KVBufferConfig config(params);
  const LdsLayout layout(config);
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << row.stage << " " << row.key << " " << row.depth);
    const StageIdx stage{row.stage};
    const KeyIdx key{row.key};
    const DimIdx depth{row.depth};
    EXPECT_EQ(layout.logical(stage, key, depth), row.L);
    EXPECT_EQ(layout.byte(stage, key, depth), row.P_byte);
    EXPECT_EQ(layout.physical(stage, key, depth) * config.constants().element_bytes, row.P_byte);
    EXPECT_EQ(layout.place_of(row.P_byte), (LdsPlace{stage, key, depth}));
  }
}

// Elements of bf16: stage, key, depth and their offsets with each swizzle.
TEST(LdsLayout, PutsBf16ElementsWhereThePublishedTableSays) {
  expect_rows(named("A K"), {{0, 0, 0, 0, 0},
                             {0, 0, 8, 8, 16},
                             {0, 0, 31, 31, 62},
                             {0, 0, 32, 2048, 4096},
                             {0, 1, 0, 32, 64},
                             {0, 4, 0, 128, 272},
                             {0, 5, 10, 170, 324},
                             {0, 16, 0, 512, 1088},
                             {0, 17, 0, 544, 1024},
                             {0, 31, 31, 1023, 1934},
                             {0, 32, 0, 1024, 2048},
                             {0, 63, 127, 8191, 16270},
                             {1, 0, 0, 8192, 16384},
                             {1, 20, 77, 12941, 25930},
                             {1, 63, 127, 16383, 32654}});
}

// 8-bit types: an element is a byte, a vector 16 of them.
TEST(LdsLayout, PutsFp8ElementsWhereThePublishedTableSays) {
  expect_rows(named("C K"), {{0, 0, 16, 16, 16},
                             {0, 0, 64, 4096, 4096},
                             {0, 4, 0, 256, 272},
                             {0, 5, 20, 340, 324},
                             {0, 16, 0, 1024, 1088},
                             {0, 31, 63, 2047, 1935},
                             {0, 63, 127, 8191, 8079},
                             {1, 20, 77, 13581, 13661},
                             {1, 63, 127, 16383, 16271}});
}

// The order of the axes.
TEST(LdsLayout, CountsBlocksThenKeysThenColumns) {
  const KVBufferConfig config(named("A V"));
  const LdsLayout layout(config);
  EXPECT_EQ(layout.logical(StageIdx{1}, KeyIdx{35}, DimIdx{70}), 13414);
  EXPECT_EQ(layout.logical(StageIdx{0}, KeyIdx{63}, DimIdx{127}), 8191);
  EXPECT_EQ(layout.smem_block_tile(32, 1, 6),
            (LdsBlockTile{.offset = 13312, .rows = 32, .cols = 32, .row_stride = 32}));
  EXPECT_EQ(layout.smem_block_tile(64, 0, 7).offset, 14336);
  EXPECT_EQ(config.constants().region_bytes, 16384 * 2);
}

// A block tile's element (r, c) is the layout's element of its key and column.
TEST(LdsLayout, HasBlockTilesWithTheLayoutsElements) {
  const KVBufferConfig config(named("H K"));
  const LdsLayout layout(config);
  const LdsBlockTile tile = layout.smem_block_tile(32, 3, 9 + 4);
  EXPECT_EQ(tile.offset + 5 * tile.row_stride + 17,
            layout.logical(StageIdx{1}, KeyIdx{3 * 32 + 5}, DimIdx{4 * 64 + 17}));
}

// The first elements of sub-tiles, including the example of the header.
TEST(LdsLayout, BeginsVSubTilesAtStripStepAndColumn) {
  const KVBufferConfig b(named("B V")), fd(named("F-Vd"));
  EXPECT_EQ(LdsLayout(b).v_sub_tile(StripIdx{1}, 1, 2), 5632);
  EXPECT_EQ(LdsLayout(b).v_sub_tile(StripIdx{1}, 1, 3), 7680);
  EXPECT_EQ(LdsLayout(b).logical(StageIdx{0}, KeyIdx{48}, DimIdx{96}), 7680);
  EXPECT_EQ(LdsLayout(fd).v_sub_tile(StripIdx{2}, 0, 1), 2064);
  EXPECT_EQ(LdsLayout(fd).logical(StageIdx{0}, KeyIdx{64}, DimIdx{16}), 2064);
}

TEST(LdsLayout, ShiftsAWavesSliceOfV) {
  const auto offsets = [](const KVBufferParams& params) {
    const KVBufferConfig config(params);
    std::vector<std::int64_t> list;
    for (std::int64_t w = 0; w < config.constants().waves; ++w) {
      list.push_back(LdsLayout(config).slice_offset(WaveIdx{w}));
    }
    return list;
  };
  EXPECT_EQ(offsets(named("F-Vw")), (std::vector<std::int64_t>{0, 16, 4096, 4112}));
  EXPECT_EQ(offsets(named("G-Vw")), (std::vector<std::int64_t>{0, 32, 64, 96}));
  KVBufferParams p = named("F-Vw");
  p.depth = 32;
  p.cache_depth = 128;
  EXPECT_EQ(offsets(p), (std::vector<std::int64_t>{0, 4096, 8192, 12288}));
  p.num_threads = 512;  // waves beyond the slices share them
  EXPECT_EQ(offsets(p), (std::vector<std::int64_t>{0, 4096, 8192, 12288, 0, 4096, 8192, 12288}));
  EXPECT_EQ(offsets(named("F-Vd")), (std::vector<std::int64_t>{0, 0, 0, 0}));
}

TEST(LdsLayout, RejectsPlacesOutsideTheRegion) {
  const KVBufferConfig config(named("A K"));
  const LdsLayout layout(config);
  EXPECT_EQ(message_of<IndexError>([&] { (void)layout.logical(StageIdx{2}, KeyIdx{0}, DimIdx{0}); }),
            "LDS stage 2 is outside [0, 2): num_smem_stages of the buffer");
  EXPECT_EQ(message_of<IndexError>([&] { (void)layout.byte(StageIdx{0}, KeyIdx{64}, DimIdx{0}); }),
            "LDS key 64 is outside [0, 64): BN keys of a tile");
  EXPECT_EQ(message_of<IndexError>([&] { (void)layout.physical(StageIdx{0}, KeyIdx{0}, DimIdx{128}); }),
            "LDS depth 128 is outside [0, 128): smem_cols of a stage");
  EXPECT_EQ(message_of<IndexError>([&] { (void)layout.place_of(32768); }),
            "LDS byte 32768 is outside [0, 32768): bytes of the buffer's stages");
  EXPECT_EQ(message_of<IndexError>([&] { (void)layout.smem_block_tile(32, 2, 0); }),
            "LDS tile row 2 is outside [0, 2): BN / rows tiles of a block");
  EXPECT_EQ(message_of<IndexError>([&] { (void)layout.smem_block_tile(32, 0, 8); }),
            "LDS block column 8 is outside [0, 8): blocks of every stage");
  EXPECT_THROW((void)layout.smem_block_tile(0, 0, 0), IndexError);
  EXPECT_THROW((void)layout.smem_block_tile(65, 0, 0), IndexError);
  EXPECT_THROW((void)layout.slice_offset(WaveIdx{4}), IndexError);
  const KVBufferConfig v(named("B V"));
  EXPECT_THROW((void)LdsLayout(v).v_sub_tile(StripIdx{2}, 0, 0), IndexError);
  EXPECT_THROW((void)LdsLayout(v).v_sub_tile(StripIdx{0}, 2, 0), IndexError);
  EXPECT_THROW((void)LdsLayout(v).v_sub_tile(StripIdx{0}, 0, 4), IndexError);
}

}  // namespace
}  // namespace kvscope::lds_layout_test
