#include "core/staging/lds/dram_to_lds.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/staging/lds/support.h"

namespace kvscope::dram_to_lds_test {
namespace {

using test::message_of;
using test::named;

struct Row {
  std::int64_t wave, t, m, lane, r, c, lds, key, depth, dram;
  bool zero = false;
};

// The tile in a packed cache of `heads` heads.
DramTile packed(const KVBufferParams& p, std::int64_t valid, std::int64_t heads = 1) {
  return {.valid_rows = valid, .row_stride = heads * p.cache_depth.value_or(p.depth), .depth = p.depth};
}

void expect_rows(const KVBufferParams& params, const DramTile& tile, const std::vector<Row>& rows) {
  const KVBufferConfig config(params);
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << "wave " << row.wave << ", t " << row.t << ", m " << row.m << ", lane "
                                    << row.lane);
    for (std::int64_t stage = 0; stage < 2; ++stage) {
      bool found = false;
      for (const CopyInstruction& copy : copy_instructions(config, WaveIdx{row.wave}, StageIdx{stage}, tile)) {
        if (copy.t != row.t || copy.m != row.m) continue;
        found = true;
        EXPECT_EQ(copy.wave, WaveIdx{row.wave});
        EXPECT_EQ(copy.row_group, row.r);
        EXPECT_EQ(copy.block, row.c);
        EXPECT_EQ(copy.lanes.at(static_cast<std::size_t>(row.lane)),
                  (CopyVector{.lds_byte = row.lds + stage * config.constants().stage_bytes,
                              .key = KeyIdx{row.key},
                              .depth = DimIdx{row.depth},
                              .dram_byte = row.dram,
                              .zero = row.zero}));
      }
      EXPECT_TRUE(found);
    }
  }
}

// The second stage changes only the LDS bytes.
TEST(CopyToLds, BringsSwizzledVectorsOfBf16KAsPublished) {
  const KVBufferParams a = named("A K");
  expect_rows(a, packed(a, 64),
              {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
               {0, 0, 0, 1, 0, 0, 16, 0, 8, 16},
               {0, 0, 0, 5, 0, 0, 80, 1, 8, 272},
               {0, 0, 0, 16, 0, 0, 256, 4, 8, 1040},
               {0, 0, 0, 17, 0, 0, 272, 4, 0, 1024},
               {0, 0, 0, 31, 0, 0, 496, 7, 16, 1824},
               {0, 0, 0, 63, 0, 0, 1008, 15, 0, 3840},
               {0, 0, 1, 0, 0, 0, 1024, 17, 0, 4352},
               {0, 0, 1, 5, 0, 0, 1104, 16, 8, 4112},
               {0, 0, 1, 63, 0, 0, 2032, 30, 0, 7680},
               {0, 1, 0, 0, 1, 0, 2048, 32, 0, 8192},
               {1, 0, 0, 0, 0, 1, 4096, 0, 32, 64},
               {2, 1, 1, 40, 1, 2, 11904, 59, 80, 15264},
               {3, 0, 0, 20, 0, 3, 12608, 5, 104, 1488},
               {3, 1, 1, 63, 1, 3, 16368, 62, 96, 16064}});
}

TEST(CopyToLds, BringsRowsInOrderWithoutASwizzle) {
  const KVBufferParams a = named("A V");
  expect_rows(a, packed(a, 64), {{0, 0, 1, 5, 0, 0, 1104, 17, 8, 4368}, {3, 1, 1, 63, 1, 3, 16368, 63, 120, 16368}});
}

TEST(CopyToLds, BringsSixteenColumnsOfFp8K) {
  const KVBufferParams c = named("C K");
  expect_rows(c, packed(c, 64),
              {{0, 0, 0, 17, 0, 0, 272, 4, 0, 512},
               {0, 0, 1, 0, 0, 0, 1024, 17, 0, 2176},
               {1, 0, 0, 0, 0, 1, 4096, 0, 64, 64},
               {2, 0, 0, 3, 1, 0, 2096, 32, 48, 4144},
               {3, 0, 1, 63, 1, 1, 8176, 62, 64, 8000}});
}

// A row of 128 bytes: 8 x 8 lanes, four instructions a sub-tile.
TEST(CopyToLds, TakesFourInstructionsWhereARowIs128Bytes) {
  const KVBufferParams g = named("G K");
  expect_rows(g, packed(g, 128),
              {{0, 0, 0, 9, 0, 0, 144, 1, 0, 128},
               {0, 0, 1, 0, 0, 0, 1024, 8, 0, 1024},
               {0, 0, 3, 63, 0, 0, 4080, 31, 0, 3968},
               {1, 0, 0, 0, 1, 0, 4096, 32, 0, 4096},
               {3, 0, 2, 20, 3, 0, 14656, 114, 96, 14688}});
}

TEST(CopyToLds, GivesEachWaveOneSubTileOnTheSpecialPath) {
  const KVBufferConfig i(named("I K"));
  const auto first = [&](std::int64_t wave) {
    const auto list = copy_instructions(i, WaveIdx{wave}, StageIdx{0}, packed(named("I K"), 64));
    EXPECT_EQ(list.size(), 2U);
    return list[0].lanes[0];
  };
  EXPECT_EQ(first(1).lds_byte, 4096);
  EXPECT_EQ(first(1).depth, DimIdx{32});
  EXPECT_EQ(first(2).lds_byte, 2048);
  EXPECT_EQ(first(2).key, KeyIdx{32});
}

// The last valid row is 49; a vector of row 51 is beyond the descriptor, also for the columns of other heads.
TEST(CopyToLds, WritesZerosForRowsPastTheValidOnes) {
  KVBufferParams a = named("A K");
  a.kv_num_heads = 2;
  const DramTile tile = packed(a, 50, 2);
  EXPECT_EQ(num_records_bytes(tile, 2), 25344);
  expect_rows(a, tile,
              {{0, 1, 0, 0, 1, 0, 2048, 32, 0, 16384},
               {0, 1, 1, 0, 1, 0, 3072, 49, 0, 25088},
               {0, 1, 1, 4, 1, 0, 3136, 48, 0, 24576},
               {0, 1, 1, 5, 1, 0, 3152, 48, 8, 24592},
               {0, 1, 1, 8, 1, 0, 3200, 51, 0, 26112, true},
               {3, 1, 1, 63, 1, 3, 16368, 62, 96, 31936, true}});
  const KVBufferConfig config(a);
  int zeros = 0, all = 0;
  for (std::int64_t w = 0; w < 4; ++w) {
    for (const CopyInstruction& copy : copy_instructions(config, WaveIdx{w}, StageIdx{0}, tile)) {
      for (const CopyVector& vector : copy.lanes) {
        zeros += vector.zero ? 1 : 0;
        ++all;
      }
    }
  }
  EXPECT_EQ(all, 1024);
  EXPECT_EQ(zeros, 224);
}

// Known sizes, and a tile without valid rows.
TEST(CopyToLds, KnowsTheLastByteOfTheTile) {
  EXPECT_EQ(num_records_bytes({.valid_rows = 22, .row_stride = 576, .depth = 64}, 1), 12160);
  EXPECT_EQ(num_records_bytes({.valid_rows = 1, .row_stride = 576, .depth = 64}, 2), 128);
  EXPECT_EQ(num_records_bytes({.valid_rows = 0, .row_stride = 576, .depth = 64}, 2), 0);
}

// Logical vector 16 of a sub-tile, row 4, column 0, lands in slot 17.
TEST(CopyToLds, LandsAVectorInItsSwizzledSlot) {
  const KVBufferConfig a(named("A K"));
  const auto copies = copy_instructions(a, WaveIdx{0}, StageIdx{0}, packed(named("A K"), 64));
  for (const CopyVector& v : copies[0].lanes) {
    EXPECT_EQ(v.key == KeyIdx{4} && v.depth == DimIdx{0}, v.lds_byte == 17 * 16);
  }
}

// Columns past depth of a valid row are in range: they belong to the next head. Only those of the last valid row read
// zero.
TEST(CopyToLds, AliasesWhatFollowsARowWhereTheStageIsWiderThanTheHead) {
  KVBufferParams h = named("H K");
  h.bk_smem.reset();
  h.smem_depth = 640;
  const KVBufferConfig config(h);
  int past = 0, zero = 0;
  for (std::int64_t w = 0; w < 4; ++w) {
    for (const CopyInstruction& copy : copy_instructions(config, WaveIdx{w}, StageIdx{0}, packed(h, 128))) {
      for (const CopyVector& vector : copy.lanes) {
        if (vector.depth.value < 576) {
          EXPECT_FALSE(vector.zero);
          continue;
        }
        ++past;
        zero += vector.zero ? 1 : 0;
        EXPECT_EQ(vector.zero, vector.key == KeyIdx{127});
      }
    }
  }
  EXPECT_EQ(past, 128 * 4);
  EXPECT_EQ(zero, 4);
}

// Six sub-tiles over four waves: missing sub-tiles are skipped.
TEST(CopyToLds, SkipsSubTilesThatAreNotThere) {
  KVBufferParams p = named("A K");
  p.BN = 96;
  p.depth = 64;
  const KVBufferConfig config(p);
  const std::vector<std::size_t> expected{4, 4, 2, 2};
  for (std::int64_t w = 0; w < 4; ++w) {
    const auto list = copy_instructions(config, WaveIdx{w}, StageIdx{0}, packed(p, 96));
    EXPECT_EQ(list.size(), expected[static_cast<std::size_t>(w)]);
    EXPECT_EQ(copies_per_load(config, WaveIdx{w}), static_cast<std::int64_t>(list.size()));
    for (const CopyInstruction& copy : list) EXPECT_LT(copy.row_group, 3);
  }
}

// A stage of one block: the caller iterates over the tile's columns, and the first column changes with the block.
TEST(CopyToLds, CopiesOneBlockOfTheDepth) {
  const KVBufferParams e = named("E K");
  const KVBufferConfig config(e);
  const DramTile tile = packed(e, 100);
  const auto plain = copy_instructions(config, WaveIdx{3}, StageIdx{1}, tile);
  const auto block = copy_block_instructions(config, WaveIdx{3}, StageIdx{1}, 5, tile);
  ASSERT_EQ(plain.size(), 2U);
  ASSERT_EQ(block.size(), 2U);
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t lane = 0; lane < 64; ++lane) {
      const CopyVector &a = plain[n].lanes[lane], &b = block[n].lanes[lane];
      EXPECT_LT(a.depth.value, 32);
      EXPECT_EQ(b.depth.value, a.depth.value + 160);
      EXPECT_EQ(b.dram_byte, a.dram_byte + 320);
      EXPECT_EQ(b.lds_byte, a.lds_byte);
      EXPECT_EQ(b.key, a.key);
      EXPECT_EQ(b.zero, b.key.value >= 100);
      EXPECT_GE(b.lds_byte, 8192);
    }
  }
  EXPECT_EQ(message_of<IndexError>([&] { (void)copy_block_instructions(config, WaveIdx{0}, StageIdx{0}, 16, tile); }),
            "block of the depth 16 is outside [0, 16): ceil(depth / BK) blocks");
  EXPECT_EQ(message_of<GeometryError>([&] {
              const KVBufferConfig full(named("A K"));
              (void)copy_block_instructions(full, WaveIdx{0}, StageIdx{0}, 0, tile);
            }),
            "copy of one block: with full_kv a stage holds them all: copy the tile");
}

TEST(CopyToLds, IsNothingForAWavesSliceOfV) {
  const KVBufferConfig slice(named("F-Vw"));
  EXPECT_TRUE(copy_instructions(slice, WaveIdx{1}, StageIdx{0}, packed(named("F-Vw"), 128)).empty());
  EXPECT_EQ(copies_per_load(slice, WaveIdx{1}), 0);
}

TEST(CopyToLds, RejectsWavesAndStagesThereAreNot) {
  const KVBufferConfig a(named("A K"));
  EXPECT_EQ(message_of<IndexError>([&] { (void)copy_instructions(a, WaveIdx{4}, StageIdx{0}, {}); }),
            "wave 4 is outside [0, 4): num_threads / 64 of the buffer");
  EXPECT_EQ(message_of<IndexError>([&] { (void)copy_instructions(a, WaveIdx{0}, StageIdx{-1}, {}); }),
            "LDS stage -1 is outside [0, 2): num_smem_stages of the buffer");
}

}  // namespace
}  // namespace kvscope::dram_to_lds_test
