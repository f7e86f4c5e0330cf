// Constants against known tables, and each rule broken once: the report names that rule and no other.
#include "core/staging/lds/kv_buffer_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/staging/lds/dram_to_lds.h"
#include "tests/core/staging/lds/support.h"

namespace kvscope::kv_buffer_config_test {
namespace {

using test::message_of;
using test::named;

struct ConstantsRow {
  const char* id;
  std::int64_t num_mmas, num_k_mmas2, frag, num_k_tiles, num_repeats, smem_cols, stage, stage_bytes, T, per_wave, vm;
  std::int64_t copies, mma_rows;
};

// The constants of the named configurations. vm of the per-wave buffers is unused: -1.
const ConstantsRow kConstants[] = {
    {"A K", 1, 2, 8, 4, 4, 128, 8192, 16384, 8, 2, 4, 4, 8},
    {"A V", 4, 2, 8, 1, 4, 128, 8192, 16384, 8, 2, 4, 4, 8},
    {"A8 K", 1, 4, 4, 4, 4, 128, 8192, 16384, 8, 2, 4, 4, 16},
    {"A8 V", 4, 4, 4, 1, 4, 128, 8192, 16384, 8, 2, 4, 4, 16},
    {"B K", 2, 2, 8, 4, 4, 128, 8192, 16384, 8, 2, 4, 4, 16},
    {"B V", 4, 2, 8, 2, 4, 128, 8192, 16384, 8, 2, 4, 4, 16},
    {"C K", 2, 1, 32, 2, 2, 128, 8192, 8192, 4, 1, 2, 2, 4},
    {"C V", 4, 1, 32, 1, 2, 128, 8192, 8192, 4, 1, 2, 2, 4},
    {"D K", 2, 2, 8, 8, 8, 256, 16384, 32768, 16, 4, 8, 8, 32},
    {"D V", 8, 2, 8, 2, 8, 256, 16384, 32768, 16, 4, 8, 8, 32},
    {"E K", 4, 2, 8, 16, 16, 32, 4096, 8192, 4, 1, 2, 2, 128},
    {"E2 K", 1, 2, 8, 16, 16, 512, 16384, 32768, 16, 4, 8, 8, 32},
    {"F K", 2, 1, 8, 2, 2, 64, 8192, 16384, 8, 2, 4, 4, 4},
    {"F-Vd", 4, 1, 8, 4, 2, 64, 8192, 16384, 8, 2, 4, 4, 16},
    {"F-Vw", 1, 1, 8, 4, 1, 32, 4096, 8192, 4, 1, -1, 0, 4},
    {"G K", 2, 1, 32, 1, 1, 128, 16384, 16384, 4, 1, 2, 4, 2},
    {"G-Vw", 2, 1, 32, 1, 1, 128, 16384, 16384, 4, 1, -1, 0, 2},
    {"H K", 2, 1, 32, 5, 9, 576, 73728, 73728, 36, 9, 18, 18, 10},
    {"I K", 2, 2, 8, 2, 2, 64, 4096, 8192, 4, 1, 2, 2, 8},
};

TEST(KVBufferConstants, AreThePublishedOnesOfEveryNamedConfiguration) {
  for (const ConstantsRow& row : kConstants) {
    SCOPED_TRACE(row.id);
    const KVBufferParams params = named(row.id);
    const KVBufferConstants c = constants_of(params);
    EXPECT_EQ(c.num_mmas, row.num_mmas);
    EXPECT_EQ(c.num_k_mmas2, row.num_k_mmas2);
    EXPECT_EQ(c.input_frag_size, row.frag);
    EXPECT_EQ(c.num_k_tiles, row.num_k_tiles);
    EXPECT_EQ(c.num_repeats, row.num_repeats);
    EXPECT_EQ(c.smem_cols, row.smem_cols);
    EXPECT_EQ(c.smem_stage_size, row.stage);
    EXPECT_EQ(c.stage_bytes, row.stage_bytes);
    EXPECT_EQ(c.sub_tiles, row.T);
    EXPECT_EQ(c.tiles_per_wave, row.per_wave);
    if (row.vm >= 0) {
      EXPECT_EQ(c.vm_instrs_per_load, row.vm);
    }
    EXPECT_EQ(c.mma_rows, row.mma_rows);
    EXPECT_EQ(c.mma_cols, row.frag);
    EXPECT_EQ(c.simd_width, params.dtype == DType::bf16 ? 8 : 16);
    EXPECT_EQ(c.warp_tile_rows, 32);
    EXPECT_EQ(c.wtile_dim0, params.WN);
    EXPECT_EQ(c.wtile_dim1, params.BK);

    KVBufferParams built = params;
    if (params.mma_shape.K == 8) built.k_group = 2;
    const KVBufferConfig config(built);
    EXPECT_EQ(copies_per_load(config, WaveIdx{3}), row.copies);
    EXPECT_EQ(config.diagnostics().empty(), !(row.id == std::string("A V") || row.id == std::string("A8 V")));
    // Elements a lane holds: the wave's tile over 64 lanes.
    if (params.transpose) {
      EXPECT_EQ(c.mma_rows * c.mma_cols, params.WN * c.register_strips * params.BK / 64);
    }
  }
}

// The constants that a limited register tile and a stage of one block change.
TEST(KVBufferConstants, FollowTheRegisterCapAndTheStageOfOneBlock) {
  KVBufferParams capped = named("A K");
  capped.reg_chunk_depth = 32;
  EXPECT_EQ(constants_of(capped).mma_rows, 2);
  EXPECT_EQ(constants_of(capped).register_strips, 1);
  KVBufferParams keys = named("B V");
  keys.reg_chunk_keys = 32;
  EXPECT_EQ(constants_of(keys).mma_rows, 8);

  KVBufferParams block = named("A K");
  block.BN = 256;
  block.WN = 64;
  block.depth = 512;
  block.full_kv = false;
  const KVBufferConstants c = constants_of(block);
  EXPECT_EQ(c.smem_cols, 32);
  EXPECT_EQ(c.smem_stage_size, 8192);
  EXPECT_EQ(c.sub_tiles, 8);
  EXPECT_EQ(c.vm_instrs_per_load, 4);
  EXPECT_EQ(c.blocks_per_stage, 1);
  EXPECT_EQ(c.parent_cols(), 64);
  EXPECT_EQ(constants_of(named("A K")).parent_cols(), 256);
}

// 96 keys of 64 columns are 6 sub-tiles: waves 0 and 1 copy two, waves 2 and 3 one.
TEST(VmCount, IsTooHighForSomeWavesUnderTheSeedRuleAndZeroUnderTheNewerOne) {
  KVBufferParams p = named("F K");
  p.mma_shape = {32, 32, 16};
  p.BN = 96;
  p.WN = 96;
  p.swizzle = test::kWide;
  const KVBufferConfig newer(p);
  EXPECT_EQ(newer.constants().vm_instrs_per_load, 0);
  p.vm_rule = VmCountRule::seed;
  const KVBufferConfig seed(p);
  EXPECT_EQ(seed.constants().vm_instrs_per_load, 4);
  std::vector<std::int64_t> issued;
  for (std::int64_t w = 0; w < 4; ++w) issued.push_back(copies_per_load(seed, WaveIdx{w}));
  EXPECT_THAT(issued, testing::ElementsAre(4, 4, 2, 2));
}

// LDS of two stages of K and two of V: depth 512 does not fit.
TEST(KVBufferConstants, GiveTheLdsBudgetOfKAndV) {
  struct Row {
    const char* id;
    std::int64_t BN, depth, both;
  };
  for (const Row& row : {Row{"B K", 64, 64, 32768}, Row{"B K", 64, 128, 65536}, Row{"B K", 64, 256, 131072},
                         Row{"B K", 64, 512, 262144}, Row{"B K", 32, 512, 131072}, Row{"C K", 64, 256, 65536}}) {
    KVBufferParams p = named(row.id);
    p.BN = row.BN;
    p.depth = row.depth;
    EXPECT_EQ(2 * constants_of(p).region_bytes, row.both);
  }
}

struct Broken {
  const char* from;
  std::function<void(KVBufferParams&)> change;
  KVBufferRule rule;
  const char* fault;  // "where: message"
};

// One change breaks one rule, so that every rule is tested separately.
const Broken kBroken[] = {
    {"A K", [](auto& p) { p.dtype = DType::f32; }, KVBufferRule::element_type,
     "dtype: f32 is not staged: use bf16, f16, e4m3 or e5m2"},
    {"A K", [](auto& p) { p.depth = 0; }, KVBufferRule::sizes, "depth: 0 is outside [1, 1048576]"},
    {"A K", [](auto& p) { p.head_dim_offset = -8; }, KVBufferRule::sizes,
     "head_dim_offset: -8 is outside [0, 1048576]"},
    {"A K", [](auto& p) { p.num_threads = 63; }, KVBufferRule::whole_waves,
     "num_threads: 63 are less than a wave: use 64"},
    {"A K", [](auto& p) { p.num_threads = 250; }, KVBufferRule::whole_waves,
     "num_threads: 250 is not a multiple of 64, the lanes of a wave: use 256"},
    {"F K",
     [](auto& p) {
       p.mma_shape = {16, 32, 32};
       p.WN = 64;
       p.depth = 64;
     },
     KVBufferRule::mma_shape, ""},
    {"B V",
     [](auto& p) {
       p.mma_shape = {32, 32, 32};
     },
     KVBufferRule::mma_shape,
     "mma_shape: 32x32x32 has no transposing reader for bf16: use 32x32x16, 16x16x32 or 32x32x8"},
    {"A8 V", [](auto&) {}, KVBufferRule::k_group, "k_group: 1 for bf16 32x32x8: use 2"},
    {"A K", [](auto& p) { p.k_group = 2; }, KVBufferRule::k_group, "k_group: 2 for bf16 32x32x16: use 1"},
    {"A K",
     [](auto& p) {
       p.BN = 48, p.WN = 48, p.mma_shape = {16, 16, 32}, p.swizzle.reset();
     },
     KVBufferRule::tile_rows, "BN: 48 is not a multiple of 32, the keys of a copied sub-tile: use 64"},
    {"A K", [](auto& p) { p.smem_depth = 144; }, KVBufferRule::stage_blocks,
     "smem_depth: 144 is not a multiple of 32, the columns of a block (bk_smem): use 160"},
    {"A K", [](auto& p) { p.smem_depth = 96; }, KVBufferRule::stage_holds_depth,
     "smem_depth: 96 columns of a stage do not hold depth 128: use 128"},
    {"C K",
     [](auto& p) {
       p.mma_shape = {16, 16, 64}, p.swizzle.reset(), p.BK = 256, p.depth = 256;
     },
     KVBufferRule::copy_width,
     "bk_smem: 256 x e4m3 = 256 B are not 64 or 128, where a lane copies 16 bytes: use 64 or 128"},
    {"A K", [](auto& p) { p.WN = 96; }, KVBufferRule::wave_tiles,
     "WN: 96 keys of a wave do not divide the tile's 64: use a divisor"},
    {"A K", [](auto& p) { p.WN = 16; }, KVBufferRule::wave_tiles,
     "WN: 16 is not a multiple of 32, the rows of an MMA: use 32"},
    {"B V", [](auto& p) { p.WN = 48; }, KVBufferRule::wave_tiles,
     "WN: 48 is not a multiple of 32, the keys of a strip (BK): use 64"},
    {"B V", [](auto& p) { p.WN = 96; }, KVBufferRule::wave_tiles, "WN: 96 keys of a wave pass the tile's 64: use 64"},
    {"B V", [](auto& p) { p.depth = 112, p.cache_depth = 128, p.smem_depth = 128; }, KVBufferRule::wave_tiles,
     "depth: 112 is not a multiple of 32, the columns of an MMA: use 128"},
    {"F K",
     [](auto& p) {
       p.mma_shape = {16, 16, 64};
     },
     KVBufferRule::whole_mma_steps, "BK: 32 is not a multiple of 64, the depth of an MMA: use 64"},
    {"C K", [](auto& p) { p.BK = 128, p.bk_smem = 64; }, KVBufferRule::block_width,
     "bk_smem: 64 under BK 128: use 128 (half of it only for 8 bits, 16x16x128, BK 128)"},
    {"A K", [](auto& p) { p.depth = 112, p.cache_depth = 128, p.smem_depth = 128; }, KVBufferRule::whole_strips,
     "depth: 112 is not whole strips of 32 columns: use 128"},
    // Half a strip needs a fragment of two packs.
    {"A K", [](auto& p) { p.BK = 64, p.depth = 96, p.smem_depth = 128; }, KVBufferRule::whole_strips,
     "depth: 96 is not whole strips of 64 columns: use 128"},
    {"C K",
     [](auto& p) {
       p.mma_shape = {32, 32, 16};
     },
     KVBufferRule::fragment,
     "mma_shape: 32x32x16 takes 8 elements a lane, which are not one or two vectors of 16: use 32x32x64 or 16x16x128"},
    {"F K", [](auto& p) { p.swizzle = test::kWide; }, KVBufferRule::swizzle_closure,
     "swizzle: (3,0,4) repeats after 128 vectors, and a reader's 16 rows of 64 B are 64: use a shorter one, with a "
     "positive shift"},
    {"A K", [](auto& p) { p.swizzle = Swizzle(2, 0, -3); }, KVBufferRule::swizzle_closure,
     "swizzle: (2,0,-3) repeats after 32 vectors, and a reader's 32 rows of 64 B are 128: use a shorter one, with a "
     "positive shift"},
    {"A K", [](auto& p) { p.BK = 64, p.swizzle = Swizzle(1, 6, 1); }, KVBufferRule::swizzle_reach,
     "swizzle: (1,6,1) changes bit 6 of the vector index, and one copy instruction has 64 vectors, bits 0 to 5: use "
     "bits + base of 6 or less"},
    {"A K", [](auto& p) { p.depth_slices = 2; }, KVBufferRule::wave_slices,
     "depth_slices: 2: only V with full_kv is read in slices: use 1"},
    {"F-Vw", [](auto& p) { p.num_threads = 128; }, KVBufferRule::wave_slices,
     "depth_slices: 4 slices for 2 waves: no wave would read the rest: use 256 threads"},
    {"F-Vw", [](auto& p) { p.depth = 48, p.cache_depth = 192, p.smem_depth = 64; }, KVBufferRule::wave_slices,
     "depth: a slice of 48 columns neither divides a block of 32 nor is whole blocks: use 64"},
    {"G-Vw", [](auto& p) { p.swizzle = test::kNarrow; }, KVBufferRule::wave_slices,
     "depth: a swizzled slice of 32 columns begins inside a block of 128, where the XOR gives wrong addresses: use "
     "whole blocks"},
    // Waves 2 and 3 would overwrite the other stage with zeros.
    {"B K", [](auto& p) { p.full_kv = false; }, KVBufferRule::unguarded_blocks,
     "num_threads: 4 waves share 2 row groups unevenly, and without full_kv the rest would be zeroed in another stage: "
     "use 128 keys or fewer waves"},
    {"H K", [](auto& p) { p.full_kv = false; }, KVBufferRule::blocks_of_strips,
     "bk_smem: 64: without full_kv a stage holds one block, which must be a whole strip: use 128"},
    {"I K", [](auto& p) { p.num_threads = 128; }, KVBufferRule::special_copy,
     "num_threads: 2 waves: smem_depth 64 with BN 64 is copied by one wave a sub-tile: use 256 threads"},
    {"C V", [](auto& p) { p.BK = 128, p.BN = 128, p.WN = 128; }, KVBufferRule::v_fp8_strip,
     "BK: 128: 8-bit V of 32x32x64 is read in strips of 64 keys: use 64"},
    {"G-Vd", [](auto& p) { p.BN = 256; }, KVBufferRule::v_fp8_single,
     "BN: WN 128, BN 256, BK 128: 8-bit V of 16x16x128 has one strip: use 128 for all three"},
    {"A K", [](auto& p) { p.head_dim_offset = 64; }, KVBufferRule::cache_columns,
     "cache_depth: columns [64, 192) are not inside a head of 128: use 192 or more"},
    {"A K", [](auto& p) { p.cache_depth = 132, p.kv_num_heads = 3; }, KVBufferRule::cache_alignment,
     "cache_depth: 3 heads of 132 are rows of 792 B, not whole vectors of 16: pad the heads"},
    {"A K", [](auto& p) { p.cache_depth = 192, p.head_dim_offset = 12; }, KVBufferRule::cache_alignment,
     "head_dim_offset: column 12 is byte 24, not on a whole vector of 16: use 16"},
};

TEST(KVBufferRules, EachIsRejectedUnderItsNameAndAlone) {
  std::set<KVBufferRule> seen;
  for (const Broken& broken : kBroken) {
    KVBufferParams p = named(broken.from);
    broken.change(p);
    SCOPED_TRACE(std::string(broken.from) + ", " + std::string(name(broken.rule)));
    const KVBufferReport report = check(p);
    ASSERT_FALSE(report.refusals.empty());
    for (const BrokenBufferRule& rule : report.refusals) {
      const bool follows = broken.rule == KVBufferRule::k_group && rule.rule == KVBufferRule::fragment;
      EXPECT_TRUE(rule.rule == broken.rule || follows || *broken.fault == '\0')
          << name(rule.rule) << rule.fault.message;
    }
    EXPECT_EQ(report.refusals[0].rule, broken.rule);
    if (*broken.fault != '\0') {
      EXPECT_EQ(report.refusals[0].fault.where + ": " + report.refusals[0].fault.message, broken.fault);
      if (report.refusals.size() == 1) {
        EXPECT_EQ(message_of<GeometryError>([&] { (void)KVBufferConfig(p); }),
                  std::string("KVBuffer (") + (p.transpose ? "K" : "V") + ") rejected: " + broken.fault);
      }
    }
    seen.insert(broken.rule);
  }
  // Every rule but the diagnostic, and none without a name.
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(KVBufferRule::v_covers_tile));
  std::set<std::string_view> names;
  for (int rule = 0; rule <= static_cast<int>(KVBufferRule::v_covers_tile); ++rule) {
    names.insert(name(static_cast<KVBufferRule>(rule)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(KVBufferRule::v_covers_tile) + 1);
}

TEST(KVBufferRules, AreAllReportedAtOnce) {
  KVBufferParams p = named("A K");
  p.BN = 80;
  p.WN = 48;
  p.num_threads = 100;
  EXPECT_EQ(message_of<GeometryError>([&] { (void)KVBufferConfig(p); }),
            "KVBuffer (K) rejected, 4 faults:\n"
            "  BN: 80 is not a multiple of 32, the keys of a copied sub-tile: use 96\n"
            "  num_threads: 100 is not a multiple of 64, the lanes of a wave: use 128\n"
            "  WN: 48 keys of a wave do not divide the tile's 80: use a divisor\n"
            "  WN: 48 is not a multiple of 32, the rows of an MMA: use 64");
}

TEST(KVBufferRules, KeepWhatIsLikelyNotMeantApartFromWhatCannotBe) {
  const KVBufferReport report = check(named("A V"));
  EXPECT_TRUE(report.refusals.empty());
  ASSERT_EQ(report.diagnostics.size(), 1U);
  EXPECT_EQ(report.diagnostics[0].rule, KVBufferRule::v_covers_tile);
  EXPECT_EQ(report.diagnostics[0].fault,
            (Fault{"WN", "32: registers hold keys 0 to 31 of the tile's 64, and P V needs all: use 64"}));
  EXPECT_TRUE(check(named("B V")).diagnostics.empty());
  EXPECT_TRUE(check(named("A K")).diagnostics.empty());  // K's waves may have part of the keys each
}

// A half strip in two packs is legal, over half blocks or over a stage that was rounded up.
TEST(KVBufferRules, AllowTheLatentCachesDepth) {
  EXPECT_TRUE(check(named("H K")).refusals.empty());
  KVBufferParams rounded = named("H K");
  rounded.bk_smem.reset();
  rounded.smem_depth = 640;
  EXPECT_TRUE(check(rounded).refusals.empty());
}

// The rule of the special copy does not apply to a per-wave V of the same sizes, which never copies.
TEST(KVBufferRules, OfTheCopyDoNotBindABufferThatNeverCopies) {
  KVBufferParams p = named("B V");
  p.depth = 64;
  p.cache_depth = 128;
  p.depth_slices = 2;
  p.num_threads = 128;
  EXPECT_TRUE(check(p).refusals.empty());
}

}  // namespace
}  // namespace kvscope::kv_buffer_config_test
