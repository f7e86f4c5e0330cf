// The links after the row, each with numbers computed by hand: this file calls no swizzle, map or layout.
#include "core/staging/detail/explain_staging.h"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/staging/addressed_cache.h"
#include "tests/core/staging/staging_fixture.h"

namespace kvscope {
namespace trace {
static bool operator==(const Link& a, const Link& b) {
  return a.name == b.name && a.formula == b.formula && a.numbers == b.numbers && a.result == b.result &&
         a.remark == b.remark;
}
static void PrintTo(const Link& link, std::ostream* out) {
  *out << '{' << link.name << " | " << link.formula << " | " << link.numbers << " | " << link.result << " | "
       << link.remark << '}';
}
}  // namespace trace

namespace {

using testing_support::StagingCase;
using testing_support::StagingStep;
using trace::Link;
using Links = std::vector<Link>;

Links tma_links(const StagingStep& step, KOrV kv, std::int64_t token, std::int64_t dim) {
  const AddressedCache cache(step.scenario, step.state, kv, LayerIdx{0});
  return explain_tma(step.scenario, cache, step.tile(kv, 0), TokIdx{token}, DimIdx{dim});
}
Links lds_links(const StagingStep& step, KOrV kv, std::int64_t token, std::int64_t dim) {
  const AddressedCache cache(step.scenario, step.state, kv, LayerIdx{0});
  return explain_lds(step.scenario, cache, step.tile(kv, 0), TokIdx{token}, DimIdx{dim});
}

// 150 tokens and room for 160 in pages of 16: page p of the sequence is block 2 (9 - p) + 1. Token 100 is slot 4 of
// page 6, block 7; of the tile 64 .. 127 it is row 36, in the third of its four pages. Dim 101 is column 37 of the tile
// 64 .. 127.
//   rows a block       2 slots x 16 = 32; block 7 begins at row 224; 22 blocks have 21 * 32 + 16 = 688 rows of K
//   before the swizzle (36 * 64 + 37) * 2 B = 4682 = 36 lines of 128 + 4 chunks of 16 + 10
//   after it           chunk 4 ^ 36 % 8 = 0: 36 * 128 + 10 = 4618; word 1154, bank 2
//   piece              row 36 / 16 = 2, column 37 / 16 = 2, of 4 a row: 10; key 4, depth 5 of it
//   B of m16n8k16      n = key 4, k = depth 5: lane 4 * 4 + 5 / 2, high half; 4 registers a piece: 40
//   wgmma              step of 32 B at 64; 8 rows of 128 B to the next eight; mode 1 of 128B
TEST(ExplainStaging, KOf16BitsByTmaInPagesOf16) {
  const StagingStep step({.dtype = DType::bf16, .page = 16});
  const Links expected{
      {"TMA box", "coordinates (depth, head, row) of the box that copies it",
       "map [688, 2, 128], box [16, 1, 64], 128B swizzle", "(64, 1, 224)",
       "box row 4, column 37; copy 2 of 4, 2048 B each"},
      {"shared offset", "(chunk*chunk rows*chunk width + row*chunk width + column) * bytes of an element",
       "(0*64*64 + 36*64 + 37) * 2", "4682", "the tile is 64 rows of 1 chunk of 64 elements"},
      {"swizzle", "16-byte chunk of its row ^ (address / 128) % chunks of a row", "4 ^ 36 % 8",
       "chunk 0, shared byte 4618", "the tile begins at shared address 0"},
      {"bank", "(shared byte / 4) % 32", "(4618 / 4) % 32", "2", ""},
      {"ldmatrix", "piece of 16 keys x 16 elements", "row 36 / 16, column 37 / 16", "piece 10 of 16",
       "4 cycles for 4 matrices: no bank conflict"},
      {"register", "ldmatrix.x4, K as B, 2 B elements, of every warp", "key 4, depth 5 of the piece",
       "lane 18, register 40, bits 16-31", "a lane holds the tile in 64 registers, 4 per piece"},
      {"wgmma", "matrix descriptor of the 32 B step of K that holds it",
       "start 64, leading 16, stride 1024, phase 0, 128B swizzle", "0x4000004000010004",
       "wgmma reads it from shared memory: no register holds K"},
  };
  EXPECT_EQ(tma_links(step, KOrV::k, 100, 101), expected);
}

// Two chunks of 64 columns: the second begins 64 rows of 64 columns further, and boxes alternate between them.
TEST(ExplainStaging, ASecondChunkIsATileFurtherInSharedMemory) {
  StagingStep step({.dtype = DType::bf16, .page = 16});
  step.scenario.tile.BK = 128;
  const Links links = tma_links(step, KOrV::k, 100, 101);
  ASSERT_EQ(links.size(), 7u);
  EXPECT_EQ(links[0].remark, "box row 4, column 37; copy 5 of 8, 2048 B each");
  EXPECT_EQ(links[1].numbers, "(1*64*64 + 36*64 + 37) * 2");
  EXPECT_EQ(links[1].result, "12874");  // 8192 + 4682
  EXPECT_EQ(links[2].numbers, "4 ^ 100 % 8");
  EXPECT_EQ(links[2].result, "chunk 0, shared byte 12810");
  EXPECT_EQ(links[4].result, "piece 22 of 32");  // 2 * 8 + 6
  EXPECT_EQ(links[5].result, "lane 18, register 88, bits 16-31");
  EXPECT_EQ(links[6].result, "0x4000004000010204");  // (8192 + 64) / 16
}

// 8 bits a value, pages of 64: page 1 is block 2 (2 - 1) + 1 = 3, 2 slots x 64 = 128 rows a block, 8 blocks.
//   before the swizzle 36 * 128 + 101 = 4709 = 36 lines + 6 chunks + 5; after it chunk 6 ^ 4 = 2: 4645; bank 1161 % 32
//   piece of 32 keys x 16 B: row 1, column 6 of 8: 14; key 4, depth 5: of the odd operand, n = 5 / 2
//   slot of key 4      k = 8, because a lane's four values are keys 2t, 2t + 1, 2t + 8, 2t + 9: t = 2, first of them
//   B of m16n8k32      lane 2 * 4 + 2, first register of the second operand: 14 * 4 + 2, lowest byte
TEST(ExplainStaging, VOf8BitsByTmaIsReadInPiecesOf32Keys) {
  const StagingStep step({.dtype = DType::e4m3, .page = 64, .kv = KOrV::v});
  const Links expected{
      {"TMA box", "coordinates (depth, head, row) of the box that copies it",
       "map [960, 2, 128], box [64, 1, 128], 128B swizzle", "(0, 1, 384)",
       "box row 36, column 101; copy 0 of 1, 8192 B each"},
      {"shared offset", "(chunk*chunk rows*chunk width + row*chunk width + column) * bytes of an element",
       "(0*64*128 + 36*128 + 101) * 1", "4709", "the tile is 64 rows of 1 chunk of 128 elements"},
      {"swizzle", "16-byte chunk of its row ^ (address / 128) % chunks of a row", "6 ^ 36 % 8",
       "chunk 2, shared byte 4645", "the tile begins at shared address 0"},
      {"bank", "(shared byte / 4) % 32", "(4645 / 4) % 32", "9", ""},
      {"ldmatrix", "piece of 32 keys x 16 elements", "row 36 / 32, column 101 / 16", "piece 14 of 16",
       "4 cycles for 4 matrices: no bank conflict"},
      {"register", "mma.m16n8k32, B of fp8 V, even and odd depths, of every warp", "key 4, depth 5 of the piece",
       "lane 10, register 58, bits 0-7", "a lane holds the tile in 64 registers, 4 per piece"},
  };
  EXPECT_EQ(tma_links(step, KOrV::v, 100, 101), expected);
}

// Rows of 16 B without a swizzle are contiguous: eight lanes read 128 bytes without conflicts; rows of 128 B would have
// conflicts. A tile of 32-byte rows read without its swizzle shows the cost.
TEST(ExplainStaging, WithoutASwizzleTheOffsetIsTheAddress) {
  const StagingStep step({.dtype = DType::bf16, .page = 16, .swizzle = SwizzleMode::none});
  const Links links = tma_links(step, KOrV::k, 100, 101);
  ASSERT_EQ(links.size(), 6u);  // without a descriptor
  EXPECT_EQ(links[1].numbers, "(4*64*8 + 36*8 + 5) * 2");
  EXPECT_EQ(links[1].result, "4682");
  EXPECT_EQ(links[2].numbers, "0 ^ 36 % 1");
  EXPECT_EQ(links[2].result, "chunk 0, shared byte 4682");
  EXPECT_EQ(links[2].remark, "no swizzle: the offset is the address");
  EXPECT_EQ(links[4].remark, "4 cycles for 4 matrices: no bank conflict");
}

// The waves' tile 64 .. 127 of pages of 64: key 36, depth 101 is in strip 101 / 32 = 3, column 5.
//   LDS         element (3 * 64 + 36) * 32 + 5 = 7301 = vector 912 + 5; (3,0,4): 912 ^ (912 / 16) % 8 = 913: byte 14618
//   copy        16-row instructions of 64-byte rows: block 3, rows 32 .. 47: sub-tile 7 is wave 3's second, so
//               instruction 2;
//               it begins at byte (3 * 64 + 32) * 64 = 14336, 282 B before ours: lane 17
//   source      row 36 of 2 heads x 128, depth 96: byte (36 * 256 + 96) * 2 = 18624 of the tile; the tile begins at
//               block 3,
//               head 1: element 3 * 2 * 64 * 256 + 128 = 98432, byte 196864
//   register    32x32x16: MMA 36 / 32 = 1, key 4 of it; strips of 2 steps x 2 MMAs: row 3 * 4 + 0 * 2 + 1 = 13 of 8
//               elements,
//               element 5 of it: 109 of 16 bits; lanes 0..31 hold depths 0..7 of a step
TEST(ExplainStaging, KThroughLdsWithTheShippedConfiguration) {
  const StagingStep step({.dtype = DType::bf16, .page = 64});
  const Links expected{
      {"LDS tile", "token / BN, token % BN", "100 / 64, 100 % 64", "tile 1, key 36",
       "waves of 64 lanes: 4 of them, MMA 32x32x16, strips of 32, swizzle (3,0,4)"},
      {"LDS copy", "wave, instruction and lane that copy its 16 bytes", "vector of depth 96 on, tile byte 18624",
       "wave 3, instruction 2, lane 17",
       "pool byte 215488; lanes write consecutive 16 B; the source is permuted instead"},
      {"LDS byte", "vector ((depth/BK*BN + key)*BK + depth%BK) / vector width, swizzled",
       "vector 912 of element 7301, moved to 913", "14618", "of stage 0"},
      {"LDS bank", "(LDS byte / 4) % 64", "(14618 / 4) % 64", "6", "gfx950 has 64 banks"},
      {"wave register", "lane and 32-bit register of the operand's register tile", "key 36, depth 101",
       "lane 4, register 54, bits 16-31", "in waves 0, 1, 2, 3; a lane holds 64 registers"},
  };
  EXPECT_EQ(lds_links(step, KOrV::k, 100, 101), expected);
}

// Bytes whose word is past the 32nd bank of its line, where counting by 32 gives another number.
//   dim 64 + 5: strip 2: element (2 * 64 + 36) * 32 + 5 = 5253, vector 656 ^ (41 % 8 = 1) = 657: byte 10522, word 2630
TEST(ExplainStaging, BanksOfLdsAreCountedBy64) {
  const StagingStep step({.dtype = DType::bf16, .page = 64});
  const Links links = lds_links(step, KOrV::k, 100, 69);
  EXPECT_EQ(links.at(3).result, "6");  // 2630 % 64
  // key 40: element (2 * 64 + 40) * 32 + 5 = 5381, vector 672 ^ (42 % 8 = 2) = 674: byte 10794, word 2698 = 42 * 64 +
  // 10
  EXPECT_EQ(lds_links(step, KOrV::k, 104, 69).at(3).result, "10");
  // key 42: 5445, vector 680 ^ 2 = 682: byte 10922, word 2730 = 42 * 64 + 42
  EXPECT_EQ(lds_links(step, KOrV::k, 106, 69).at(3).result, "42");
}

// A wave of K holds only its own keys; every wave holds V.
TEST(ExplainStaging, KIsInTheWavesWhoseKeysItIsAmongAndVInAll) {
  StagingStep step({.dtype = DType::bf16, .page = 64});
  step.scenario.lds.WN = 32;
  EXPECT_EQ(lds_links(step, KOrV::k, 100, 101).back().remark, "in waves 1, 3; a lane holds 32 registers");
  EXPECT_EQ(lds_links(step, KOrV::k, 90, 101).back().remark, "in waves 0, 2; a lane holds 32 registers");
  EXPECT_EQ(lds_links(step, KOrV::v, 100, 101).back().remark, "in waves 0, 1, 2, 3; a lane holds 64 registers");
  step.scenario.lds.threads = 128;
  EXPECT_EQ(lds_links(step, KOrV::k, 100, 101).back().remark, "in wave 1; a lane holds 32 registers");
}

// --- unsupported tiles -----------------------------------------------------------------------------------------------

TEST(ExplainStaging, PathsThatCannotTakeTheTileGiveOneLinkThatSaysWhy) {
  const auto tma = [](const StagingStep& step, KOrV kv = KOrV::k) {
    const Links links = tma_links(step, kv, 100, 101);
    EXPECT_EQ(links.size(), 1u);
    EXPECT_EQ(links[0].name, "TMA box");
    EXPECT_EQ(links[0].formula, "coordinates (depth, head, row) of the box that copies it");
    EXPECT_EQ(links[0].numbers, "");
    EXPECT_EQ(links[0].result, "none");
    return links[0].remark;
  };
  const auto lds = [](const StagingStep& step, KOrV kv = KOrV::k) {
    const Links links = lds_links(step, kv, 100, 101);
    EXPECT_EQ(links.size(), 1u);
    EXPECT_EQ(links[0].name, "LDS tile");
    EXPECT_EQ(links[0].formula, "the tile as waves stage it");
    EXPECT_EQ(links[0].numbers, "");
    EXPECT_EQ(links[0].result, "none");
    return links[0].remark;
  };
  EXPECT_EQ(tma(StagingStep({.dtype = DType::e5m2, .page = 64})),
            "dtype: e5m2 is not supported by TMA: use f32, f16, bf16, e4m3, e8m0, u8, u16, u32, i32, i64 or u64");
  EXPECT_EQ(tma(StagingStep({.page = 4, .swizzle = SwizzleMode::none})),
            "box: 64 B are not a multiple of 128 B, so the next box would begin unaligned: use more rows");
  // A single chunk has no next one, but a tile has a next page.
  StagingStep narrow({.page = 1, .swizzle = SwizzleMode::b64});
  narrow.scenario.tile.BK = 32;
  EXPECT_EQ(tma(narrow),
            "a box of 1 rows of 64 B would begin at shared byte 64, which is not a multiple of 128 B: choose a wider "
            "swizzle or larger pages");
  EXPECT_EQ(lds(StagingStep({.page = 16})),
            "tile_size: 64 tokens do not divide a page of 16: a tile must be in one page, use a divisor");
  EXPECT_EQ(lds(StagingStep({.dtype = DType::f32, .page = 64})),
            "dtype: f32 is not staged: use bf16, f16, e4m3 or e5m2");
  // Two reasons on one line.
  StagingStep odd({.page = 64});
  odd.scenario.lds.BK = 48;
  EXPECT_EQ(
      lds(odd),
      "smem_depth: 128 is not a multiple of 48, the columns of a block (bk_smem): use 144; bk_smem: 48 x bf16 = 96 "
      "B are not 64 or 128, where a lane copies 16 bytes: use 32 or 64; depth: 128 is not whole strips of 48 "
      "columns: use 144");
}

// A row past 2^31 is a legal row, but not a legal coordinate: 20 million blocks of 128 rows.
TEST(ExplainStaging, RowsPast2To31AreNoCoordinatesOfTma) {
  StagingStep step({.page = 64});
  step.scenario.cache.blocks = step.state.blocks = 20'000'000;
  step.state.lookup_table[static_cast<std::size_t>(step.state.table_columns + 1)] = 19'999'999;
  const Links links = tma_links(step, KOrV::k, 100, 101);
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].result, "none");
  EXPECT_THAT(links[0].remark, testing::HasSubstr("2560000064 rows do not fit a signed 32-bit coordinate"));
  EXPECT_EQ(lds_links(step, KOrV::k, 100, 101).size(), 5u);  // waves count bytes, not rows
}

TEST(ExplainStaging, TilesThatNoFragmentReadsEndBeforeTheRegister) {
  const auto last = [](const StagingStep& step, KOrV kv) {
    const Links links = tma_links(step, kv, 100, 101);
    EXPECT_EQ(links.size(), 5u);
    EXPECT_EQ(links.back().name, "register");
    EXPECT_EQ(links.back().formula, "lane and register of the fragment");
    EXPECT_EQ(links.back().result, "none");
    return links.back().remark;
  };
  EXPECT_EQ(last(StagingStep({.dtype = DType::f32, .page = 64}), KOrV::k),
            "mma.sync reads elements of 8 and 16 bits, and these have 32: a kernel converts them");
  StagingStep low({.dtype = DType::e4m3, .page = 16});
  low.scenario.tile.BN = 16;
  EXPECT_EQ(last(low, KOrV::v), "ldmatrix.x4 reads pieces of 32 keys x 16 elements, and the tile is 16 x 128");
}

}  // namespace
}  // namespace kvscope
