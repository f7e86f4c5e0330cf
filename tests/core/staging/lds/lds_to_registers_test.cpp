// The addresses of the reads against known ones; the transposing reads against tiles written out here.
#include "core/staging/lds/lds_to_registers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/staging/lds/lds_layout.h"
#include "core/staging/lds/register_map.h"
#include "core/staging/lds/transposing_read.h"
#include "tests/core/staging/lds/support.h"

namespace kvscope::lds_to_registers_test {
namespace {

using test::message_of;
using test::named;

// The one read of a strip with this step, MMA and part.
LdsReadInstruction find(const std::vector<LdsReadInstruction>& reads, std::int64_t k, std::int64_t i,
                        std::int64_t part) {
  for (const LdsReadInstruction& read : reads) {
    if (read.k == k && read.i == i && read.part == part) return read;
  }
  ADD_FAILURE() << "no read " << k << " " << i << " " << part;
  return {};
}

struct KRow {
  std::int64_t wave, lane, b, j, i, pack, byte, key, depth;
};

void expect_k(const KVBufferParams& params, const std::vector<KRow>& rows) {
  const KVBufferConfig config(params);
  for (const KRow& row : rows) {
    SCOPED_TRACE(testing::Message() << "wave " << row.wave << ", lane " << row.lane << ", strip " << row.b << ", step "
                                    << row.j << ", MMA " << row.i << ", pack " << row.pack);
    const LdsReadInstruction read =
        find(strip_reads(config, WaveIdx{row.wave}, StageIdx{0}, StripIdx{row.b}), row.j, row.i, row.pack);
    EXPECT_EQ(read.kind, LdsReadKind::plain);
    EXPECT_EQ(read.width, 16);
    EXPECT_EQ(read.addresses[static_cast<std::size_t>(row.lane)], row.byte);
    EXPECT_EQ(LdsLayout(config).byte(StageIdx{0}, KeyIdx{row.key}, DimIdx{row.depth}), row.byte);
    const std::int64_t SW = config.constants().simd_width;
    EXPECT_EQ(register_element(config, WaveIdx{row.wave},
                               {StripIdx{row.b}, row.j, row.i, static_cast<int>(row.lane), row.pack * SW}),
              (TileElement{KeyIdx{row.key}, DimIdx{row.depth}}));
  }
}

// Addresses of lanes of K's reads.
TEST(ReadK, AddressesAreThePublishedOnes) {
  expect_k(named("A K"), {{0, 0, 0, 0, 0, 0, 0, 0, 0},
                          {0, 5, 0, 0, 0, 0, 336, 5, 0},
                          {0, 31, 0, 0, 0, 0, 1968, 31, 0},
                          {0, 32, 0, 0, 0, 0, 16, 0, 8},
                          {0, 37, 0, 0, 0, 0, 320, 5, 8},
                          {0, 63, 0, 0, 0, 0, 1952, 31, 8},
                          {0, 0, 0, 1, 0, 0, 32, 0, 16},
                          {0, 40, 2, 1, 0, 0, 8720, 8, 88},
                          {1, 0, 0, 0, 0, 0, 2048, 32, 0},
                          {1, 63, 3, 1, 0, 0, 16256, 63, 120},
                          {2, 0, 0, 0, 0, 0, 0, 0, 0}});
  expect_k(named("C K"), {{0, 0, 0, 0, 0, 1, 32, 0, 32},
                          {0, 33, 0, 0, 0, 0, 80, 1, 16},
                          {0, 33, 0, 0, 0, 1, 112, 1, 48},
                          {0, 63, 1, 0, 1, 1, 8064, 63, 112},
                          {3, 5, 0, 0, 1, 0, 2384, 37, 0}});
  expect_k(named("F K"), {{0, 15, 0, 0, 0, 0, 944, 15, 0},
                          {0, 63, 0, 0, 0, 0, 896, 15, 24},
                          {0, 20, 1, 0, 1, 0, 9520, 20, 40},
                          {3, 63, 1, 0, 1, 0, 16256, 127, 56}});
  expect_k(named("G K"),
           {{0, 0, 0, 0, 0, 1, 64, 0, 64}, {0, 17, 0, 0, 0, 0, 128, 1, 16}, {2, 63, 0, 0, 1, 1, 12160, 95, 112}});
}

TEST(ReadK, OfStageOneIsTheStageFurther) {
  const KVBufferConfig config(named("A K"));
  const auto zero = all_reads(config, WaveIdx{1}, StageIdx{0}), one = all_reads(config, WaveIdx{1}, StageIdx{1});
  ASSERT_EQ(zero.size(), one.size());
  for (std::size_t n = 0; n < zero.size(); ++n) {
    for (std::size_t lane = 0; lane < 64; ++lane) {
      EXPECT_EQ(one[n].addresses[lane], zero[n].addresses[lane] + 16384);
    }
  }
}

// A wave's tile of K in one strip is a block tile of WN rows, or two of them where blocks are half a strip wide.
TEST(ReadK, CoversTheBlockTileOfItsWaveAndStrip) {
  for (const char* id : {"A K", "H K"}) {
    KVBufferParams p = named(id);
    p.swizzle.reset();
    const KVBufferConfig config(p);
    const KVBufferConstants& c = config.constants();
    const LdsLayout layout(config);
    const std::int64_t per_strip = c.BK / c.bk_smem;
    for (std::int64_t w = 0; w < c.waves; ++w) {
      for (const LdsReadInstruction& read : all_reads(config, WaveIdx{w}, StageIdx{1})) {
        if (read.zero) continue;
        const std::int64_t column = c.blocks_per_stage + per_strip * read.strip.value + read.part % per_strip;
        const LdsBlockTile tile = layout.smem_block_tile(c.WN, w % (c.BN / c.WN), column);
        for (const std::int64_t address : read.addresses) {
          EXPECT_GE(address, tile.offset * c.element_bytes);
          EXPECT_LT(address, (tile.offset + tile.rows * tile.row_stride) * c.element_bytes);
        }
      }
    }
  }
}

// Registers of a wave: strip by strip, step by step, MMA by MMA, pack by pack.
TEST(ReadK, FillsTheRowsOfTheRegisterTile) {
  const KVBufferConfig b(named("B K")), c(named("C K"));
  const LdsReadInstruction read = find(strip_reads(b, WaveIdx{0}, StageIdx{0}, StripIdx{3}), 1, 1, 0);
  EXPECT_EQ(read.targets, (std::vector<RegisterTarget>{{3 * 4 + 2 + 1, 0, 8}}));
  const LdsReadInstruction pack = find(strip_reads(c, WaveIdx{0}, StageIdx{0}, StripIdx{1}), 0, 1, 1);
  EXPECT_EQ(pack.targets, (std::vector<RegisterTarget>{{3, 16, 16}}));
  KVBufferParams capped = named("B K");
  capped.reg_chunk_depth = 64;
  const KVBufferConfig two(capped);
  const LdsReadInstruction wrapped = find(strip_reads(two, WaveIdx{0}, StageIdx{0}, StripIdx{3}), 1, 1, 0);
  EXPECT_EQ(wrapped.targets[0].row, 4 + 2 + 1);  // slot 3 % 2
}

// 32x32x8: the bytes of 32x32x16, each read split over two MMA steps.
TEST(ReadK, FeedsTwoStepsOf32x32x8FromOneVector) {
  KVBufferParams p = named("A8 K");
  p.k_group = 2;
  const KVBufferConfig eight(p), sixteen(named("A K"));
  const auto a = all_reads(eight, WaveIdx{1}, StageIdx{0}), b = all_reads(sixteen, WaveIdx{1}, StageIdx{0});
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t n = 0; n < a.size(); ++n) EXPECT_EQ(a[n].addresses, b[n].addresses);
  EXPECT_EQ(a[1].targets, (std::vector<RegisterTarget>{{2, 0, 4}, {3, 0, 4}}));
  EXPECT_EQ(register_element(eight, WaveIdx{0}, {StripIdx{2}, 3, 0, 40, 1}),
            (TileElement{KeyIdx{8}, DimIdx{64 + 16 + 8 + 4 + 1}}));
}

// 576 columns in strips of 128: the last strip has one pack, and the registers of the other are zero.
TEST(ReadK, ZeroesThePackThatTheLastStripDoesNotHave) {
  for (const bool rounded : {false, true}) {
    KVBufferParams p = named("H K");
    if (rounded) {
      p.bk_smem.reset();
      p.smem_depth = 640;
    }
    const KVBufferConfig config(p);
    for (const LdsReadInstruction& read : all_reads(config, WaveIdx{2}, StageIdx{1})) {
      EXPECT_EQ(read.zero, read.strip == StripIdx{4} && read.part == 1);
    }
    EXPECT_FALSE(register_element(config, WaveIdx{2}, {StripIdx{4}, 0, 1, 7, 16}));
    EXPECT_TRUE(register_element(config, WaveIdx{2}, {StripIdx{4}, 0, 1, 7, 15}));
  }
  // Pack 0 of strip 1 comes from block 2, pack 1 from block 3.
  const KVBufferConfig h(named("H K"));
  const auto strip = strip_reads(h, WaveIdx{0}, StageIdx{0}, StripIdx{1});
  EXPECT_EQ(find(strip, 0, 0, 0).addresses[0], 2 * 128 * 64);
  EXPECT_EQ(find(strip, 0, 0, 1).addresses[0], 3 * 128 * 64);
}

// --- V ---------------------------------------------------------------------------------------------------------------

struct VRow {
  std::int64_t b, k, i, part;
  std::vector<std::int64_t> bytes;  // of the lanes given
};

void expect_v(const KVBufferParams& params, std::int64_t wave, const std::vector<std::size_t>& lanes,
              const std::vector<VRow>& rows, std::int64_t shift = 0) {
  const KVBufferConfig config(params);
  for (const VRow& row : rows) {
    SCOPED_TRACE(testing::Message() << "strip " << row.b << ", step " << row.k << ", MMA " << row.i << ", part "
                                    << row.part);
    const LdsReadInstruction read =
        find(strip_reads(config, WaveIdx{wave}, StageIdx{0}, StripIdx{row.b}), row.k, row.i, row.part);
    EXPECT_EQ(read.width, 8);
    EXPECT_EQ(read.kind, params.dtype == DType::bf16 ? LdsReadKind::tr16 : LdsReadKind::tr8);
    for (std::size_t n = 0; n < lanes.size(); ++n) {
      EXPECT_EQ(read.addresses[lanes[n]], row.bytes[n] + shift) << "lane " << lanes[n];
    }
  }
}

// Addresses of lanes of V's 16-bit reads.
TEST(ReadV, AddressesOf16BitElementsAreThePublishedOnes) {
  expect_v(named("B V"), 0, {0, 1, 3, 4, 15, 16, 31, 32, 48, 63},
           {{0, 0, 0, 0, {0, 8, 24, 64, 216, 32, 248, 256, 288, 504}},
            {0, 0, 0, 1, {512, 520, 536, 576, 728, 544, 760, 768, 800, 1016}},
            {0, 1, 0, 0, {1024, 1032, 1048, 1088, 1240, 1056, 1272, 1280, 1312, 1528}},
            {1, 0, 3, 0, {14336, 14344, 14360, 14400, 14552, 14368, 14584, 14592, 14624, 14840}}});
  const std::vector<std::int64_t> shifts{0, 32, 8192, 8224};
  for (std::int64_t wave = 0; wave < 4; ++wave) {
    expect_v(named("F-Vw"), wave, {0, 1, 3, 4, 15, 16, 32, 63},
             {{0, 0, 0, 0, {0, 8, 24, 64, 216, 256, 512, 984}},
              {0, 0, 0, 1, {1024, 1032, 1048, 1088, 1240, 1280, 1536, 2008}},
              {3, 0, 0, 0, {6144, 6152, 6168, 6208, 6360, 6400, 6656, 7128}}},
             shifts[static_cast<std::size_t>(wave)]);
  }
}

// Addresses of lanes of V's 8-bit reads.
TEST(ReadV, AddressesOf8BitElementsAreThePublishedOnes) {
  const std::vector<std::size_t> lanes{0, 1, 2, 7, 8, 15, 16, 31, 32, 63};
  expect_v(named("C V"), 0, lanes,
           {{0, 0, 0, 0, {0, 8, 64, 200, 512, 712, 16, 728, 256, 984}},
            {0, 0, 0, 1, {1024, 1032, 1088, 1224, 1536, 1736, 1040, 1752, 1280, 2008}},
            {0, 0, 2, 3, {7168, 7176, 7232, 7368, 7680, 7880, 7184, 7896, 7424, 8152}}});
  KVBufferParams swizzled = named("C V");
  swizzled.swizzle = test::kWide;
  expect_v(swizzled, 0, lanes,
           {{0, 0, 0, 0, {0, 8, 64, 200, 544, 744, 16, 760, 272, 1000}},
            {0, 0, 0, 1, {1088, 1096, 1024, 1160, 1632, 1704, 1104, 1720, 1360, 1960}}});
  expect_v(named("G-Vw"), 0, lanes,
           {{0, 0, 0, 0, {0, 8, 128, 392, 512, 904, 4096, 5000, 8192, 13192}},
            {0, 0, 1, 0, {16, 24, 144, 408, 528, 920, 4112, 5016, 8208, 13208}}});
}

TEST(ReadV, OfAWavesSliceIsForStageZeroOnly) {
  const KVBufferConfig slice(named("F-Vw"));
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)all_reads(slice, WaveIdx{0}, StageIdx{1}); }),
      "KVBuffer (V) of one wave: stage 1 is not V's stage 1, because a slice counts its own blocks: read stage 0");
}

// The worked example of a stage of one block: configuration E, stage 1, block 5, lane 40, step 1, MMA 2: key 72, depth
// 184.
TEST(ReadBlock, ReadsAStripThatIsAloneInItsStage) {
  const KVBufferConfig e(named("E K"));
  const LdsReadInstruction read = find(block_reads(e, WaveIdx{0}, StageIdx{1}, 5), 1, 2, 0);
  EXPECT_EQ(read.addresses[40], 12816);
  EXPECT_EQ(register_element(e, WaveIdx{0}, {StripIdx{5}, 1, 2, 40, 0}), (TileElement{KeyIdx{72}, DimIdx{184}}));
  EXPECT_EQ(read.targets[0].row, 5 * 8 + 1 * 4 + 2);
  EXPECT_EQ(message_of<IndexError>([&] { (void)block_reads(e, WaveIdx{0}, StageIdx{0}, 16); }),
            "block of the depth 16 is outside [0, 16): ceil(depth / BK) blocks");
  // A plain read of any strip except the first would read the other stage, or past both.
  EXPECT_EQ(message_of<GeometryError>([&] { (void)strip_reads(e, WaveIdx{0}, StageIdx{0}, StripIdx{1}); }),
            "KVBuffer (K) without full_kv: strip 1 is not in a stage, which holds one block of 16: use load_block and "
            "load_block_from_shared");
  EXPECT_THROW((void)all_reads(e, WaveIdx{0}, StageIdx{0}), GeometryError);
  EXPECT_EQ(strip_reads(e, WaveIdx{0}, StageIdx{1}, StripIdx{0})[0].addresses[0], 8192);
  const KVBufferConfig full(named("B V"));
  EXPECT_EQ(message_of<GeometryError>([&] { (void)block_reads(full, WaveIdx{0}, StageIdx{0}, 0); }),
            "read of one block: with full_kv a stage holds them all: use load_from_shared");
}

TEST(ReadV, OfOneBlockTakesItsColumnsForEveryStrip) {
  KVBufferParams p = named("F-Vd");
  p.full_kv = false;
  const KVBufferConfig config(p);
  std::vector<std::pair<std::int64_t, std::int64_t>> strips_and_columns;
  for (const LdsReadInstruction& read : block_reads(config, WaveIdx{1}, StageIdx{1}, 1)) {
    if (read.part == 0) strips_and_columns.emplace_back(read.strip.value, read.i);
    for (const std::int64_t address : read.addresses) {
      EXPECT_GE(address, 8192);
      EXPECT_LT(address, 16384);
    }
  }
  EXPECT_EQ(strips_and_columns, (std::vector<std::pair<std::int64_t, std::int64_t>>{
                                    {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 2}, {2, 3}, {3, 2}, {3, 3}}));
  EXPECT_EQ(message_of<GeometryError>([&] { (void)all_reads(config, WaveIdx{0}, StageIdx{0}); }),
            "KVBuffer (V) without full_kv: strip 0 is not in a stage, which holds one block of 2: use load_block and "
            "load_block_from_shared");
  p.depth = 32;  // one block holds it all
  p.smem_depth = 64;
  EXPECT_EQ(all_reads(KVBufferConfig(p), WaveIdx{0}, StageIdx{0}).size(), 16U);
}

TEST(Reads, RejectWavesStagesAndStripsThereAreNot) {
  const KVBufferConfig a(named("A K"));
  EXPECT_THROW((void)strip_reads(a, WaveIdx{4}, StageIdx{0}, StripIdx{0}), IndexError);
  EXPECT_THROW((void)strip_reads(a, WaveIdx{0}, StageIdx{2}, StripIdx{0}), IndexError);
  EXPECT_EQ(message_of<IndexError>([&] { (void)strip_reads(a, WaveIdx{0}, StageIdx{0}, StripIdx{4}); }),
            "strip 4 is outside [0, 4): num_k_tiles of the buffer");
  const RegisterSlot good{StripIdx{3}, 1, 0, 63, 7};
  EXPECT_TRUE(register_element(a, WaveIdx{3}, good));
  for (const auto& bad : {RegisterSlot{StripIdx{4}, 1, 0, 63, 7}, RegisterSlot{StripIdx{3}, 2, 0, 63, 7},
                          RegisterSlot{StripIdx{3}, 1, 1, 63, 7}, RegisterSlot{StripIdx{3}, 1, 0, 64, 7},
                          RegisterSlot{StripIdx{3}, 1, 0, 63, 8}}) {
    EXPECT_THROW((void)register_element(a, WaveIdx{3}, bad), IndexError);
  }
  EXPECT_THROW((void)register_element(a, WaveIdx{4}, good), IndexError);
}

// --- transposing reads -----------------------------------------------------------------------------------------------

// A byte of each group's tile identifies (group, row, column); the tile is row-major, 16 columns, over the group's
// lanes.
TEST(TransposingRead, HandsEachLaneAColumnOfFourHalfwords) {
  LanePieces supplied;
  for (std::size_t group = 0; group < 4; ++group) {
    for (std::size_t row = 0; row < 4; ++row) {
      for (std::size_t column = 0; column < 16; ++column) {
        const std::size_t flat = row * 16 + column;  // halfwords; 4 a lane
        supplied[group * 16 + flat / 4][flat % 4 * 2] = static_cast<std::byte>(row * 16 + column);
        supplied[group * 16 + flat / 4][flat % 4 * 2 + 1] = static_cast<std::byte>(group);
      }
    }
  }
  const LanePieces result = tr16_read(supplied);
  for (std::size_t lane = 0; lane < 64; ++lane) {
    for (std::size_t n = 0; n < 4; ++n) {
      EXPECT_EQ(result[lane][2 * n], static_cast<std::byte>(n * 16 + lane % 16));
      EXPECT_EQ(result[lane][2 * n + 1], static_cast<std::byte>(lane / 16));
    }
  }
}

TEST(TransposingRead, HandsEachLaneAColumnOfEightBytesInEitherOrder) {
  LanePieces supplied;
  for (std::size_t group = 0; group < 4; ++group) {
    for (std::size_t row = 0; row < 8; ++row) {
      for (std::size_t column = 0; column < 16; ++column) {
        const std::size_t flat = row * 16 + column;  // 8 a lane
        // 128 places of a group, two groups' patterns apart.
        supplied[group * 16 + flat / 8][flat % 8] = static_cast<std::byte>(flat + 128 * (group % 2));
      }
    }
  }
  const LanePieces natural = tr8_read(supplied), interleaved = tr8_read(supplied, Tr8Order::interleaved);
  const std::vector<std::size_t> order{0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
  for (std::size_t lane = 0; lane < 64; ++lane) {
    const std::size_t group = 128 * (lane / 16 % 2);
    for (std::size_t n = 0; n < 8; ++n) {
      EXPECT_EQ(natural[lane][n], static_cast<std::byte>(n * 16 + lane % 16 + group));
      EXPECT_EQ(interleaved[lane][n], static_cast<std::byte>(n * 16 + order[lane % 16] + group));
    }
    EXPECT_EQ(static_cast<std::size_t>(tr8_column(static_cast<int>(lane % 16), Tr8Order::interleaved)),
              order[lane % 16]);
  }
}

}  // namespace
}  // namespace kvscope::lds_to_registers_test
