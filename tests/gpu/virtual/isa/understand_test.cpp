#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gpu/virtual/isa/instr.h"

namespace kvscope::ptx::understand_test {
namespace {

TEST(Understand, DecodesAWord) {
  const Instr load = understand("ld.global.nc.L1::no_allocate.v4.f32");
  EXPECT_EQ(load.unsupported, "");
  EXPECT_EQ(load.opcode, Opcode::ld);
  EXPECT_TRUE(load.has(Mod::global) && load.has(Mod::nc) && load.has(Mod::L1_no_allocate));
  EXPECT_EQ(load.mods.count(), 3u);
  EXPECT_EQ(load.vector, 4);
  EXPECT_EQ(load.type_count, 1);
  EXPECT_EQ(load.type(), Type::f32);

  const Instr matrix = understand("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
  EXPECT_EQ(matrix.opcode, Opcode::mma);
  EXPECT_EQ(matrix.shape, (MatrixShape{16, 8, 16}));
  EXPECT_EQ(matrix.type_count, 4);
  EXPECT_EQ(matrix.type(0), Type::f32);
  EXPECT_EQ(matrix.type(1), Type::bf16);
  EXPECT_EQ(matrix.type(3), Type::f32);
  EXPECT_TRUE(matrix.has(Mod::a_row) && matrix.has(Mod::b_col));
}

// The same letters: the low half of a product, and "lower, unsigned" of a comparison.
TEST(Understand, KeepsTwoMeaningsOfOneWordApart) {
  EXPECT_TRUE(understand("mul.lo.u32").has(Mod::lo));
  EXPECT_FALSE(understand("mul.lo.u32").has(Mod::lo_unsigned));
  EXPECT_TRUE(understand("setp.lo.u32").has(Mod::lo_unsigned));
  EXPECT_FALSE(understand("setp.lo.u32").has(Mod::lo));
  EXPECT_TRUE(understand("set.hi.u32.u32").has(Mod::hi_unsigned));
  EXPECT_TRUE(understand("mad.hi.u32").has(Mod::hi));
  EXPECT_TRUE(understand("wmma.load.a.sync.aligned.row.m16n16k16.f16").has(Mod::row));
  EXPECT_TRUE(understand("atom.global.add.u32").has(Mod::add));
  EXPECT_FALSE(understand("add.u32").has(Mod::add));
  EXPECT_TRUE(understand("shf.l.wrap.b32").has(Mod::left));
}

// A set of words would not record which order belongs to A and which to B.
TEST(Understand, KeepsTheMatrixThatRowAndColBelongTo) {
  const std::string tail = ".m16n16k16.f32.f32";
  const Instr rr = understand("wmma.mma.sync.aligned.row.row" + tail);
  EXPECT_TRUE(rr.has(Mod::a_row) && rr.has(Mod::b_row));
  const Instr rc = understand("wmma.mma.sync.aligned.row.col" + tail);
  EXPECT_TRUE(rc.has(Mod::a_row) && rc.has(Mod::b_col));
  const Instr cr = understand("wmma.mma.sync.aligned.col.row" + tail);
  EXPECT_TRUE(cr.has(Mod::a_col) && cr.has(Mod::b_row));
  const Instr cc = understand("wmma.mma.sync.aligned.col.col" + tail);
  EXPECT_TRUE(cc.has(Mod::a_col) && cc.has(Mod::b_col));
}

// If "cp.async" were matched in "cp.async.bulk.tensor..", .bulk would be an unknown modifier.
TEST(Understand, TakesTheLongestName) {
  EXPECT_EQ(understand("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group").opcode, Opcode::cp_async_bulk_tensor);
  EXPECT_EQ(understand("cp.async.bulk.commit_group").opcode, Opcode::cp_async_bulk_commit_group);
  EXPECT_EQ(understand("cp.async.mbarrier.arrive.noinc.shared.b64").opcode, Opcode::cp_async_mbarrier_arrive);
  EXPECT_EQ(understand("cp.async.bulk.prefetch.tensor.1d.L2.global").opcode, Opcode::cp_async_bulk_prefetch_tensor);
  EXPECT_EQ(understand("prefetch.tensormap").opcode, Opcode::prefetch_tensormap);
  EXPECT_EQ(understand("prefetch.param.tensormap").opcode, Opcode::prefetch_tensormap);
  EXPECT_EQ(understand("prefetch.global.L2").opcode, Opcode::prefetch);
  EXPECT_EQ(understand("bar.warp.sync").opcode, Opcode::bar_warp_sync);
  EXPECT_EQ(understand("red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32").opcode, Opcode::red_async);
  EXPECT_EQ(understand("cvt.pack.sat.u16.s32").opcode, Opcode::cvt_pack);
}

// barrier.sync may be reached by some lanes of a warp; bar.sync and .aligned may not.
TEST(Understand, TellsBarrierFromBar) {
  for (const char* word : {"bar.sync", "bar.cta.sync", "barrier.sync.aligned", "barrier.cta.sync.aligned"}) {
    EXPECT_EQ(understand(word).opcode, Opcode::bar_sync) << word;
    EXPECT_FALSE(understand(word).has(Mod::barrier)) << word;
  }
  for (const char* word : {"barrier.sync", "barrier.cta.sync"}) {
    EXPECT_EQ(understand(word).opcode, Opcode::bar_sync) << word;
    EXPECT_TRUE(understand(word).has(Mod::barrier)) << word;
  }
  EXPECT_FALSE(understand("barrier.cluster.arrive").has(Mod::barrier));
}

TEST(Understand, ReportsTheTargetThatAWordNeeds) {
  EXPECT_EQ(understand("add.f32").least_target, 0);
  EXPECT_EQ(understand("mbarrier.try_wait.shared.b64").least_target, 90);
  EXPECT_EQ(understand("ld.global.v8.b32").least_target, 100);
  EXPECT_EQ(understand("ld.global.v4.b64").least_target, 100);
  EXPECT_EQ(understand("ld.global.v2.b64").least_target, 0);
  EXPECT_FALSE(understand("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64").only_90a);
  const Instr wgmma = understand("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16");
  EXPECT_TRUE(wgmma.only_90a);
  EXPECT_EQ(wgmma.least_target, 90);
}

// N of wgmma: multiples of 8; for integers 8, 16, 24 and multiples of 16 (the assembler rejects 40 and accepts 240).
TEST(Understand, AcceptsTheValidNOfWgmma) {
  const auto half = [](int n) {
    return understand("wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k16.f32.bf16.bf16");
  };
  const auto byte = [](int n) {
    return understand("wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k32.s32.s8.u8");
  };
  for (int n = -8; n <= 264; ++n) {
    EXPECT_EQ(half(n).unsupported.empty(), n >= 8 && n <= 256 && n % 8 == 0) << n;
    EXPECT_EQ(byte(n).unsupported.empty(), n == 8 || n == 24 || (n >= 16 && n <= 256 && n % 16 == 0)) << n;
  }
  EXPECT_EQ(half(40).shape, (MatrixShape{64, 40, 16}));
  EXPECT_NE(understand("wgmma.mma_async.sync.aligned.m64n064k16.f32.bf16.bf16").unsupported, "");
}

// Modifiers come in any order; types keep their order, and so do the two .row .col of a matrix product.
TEST(Understand, AcceptsModifiersInAnyOrder) {
  struct Split {
    const char* base;
    std::vector<std::string> words;
  };
  const Split cases[] = {
      {"ldmatrix", {"sync", "aligned", "m8n8", "x4", "trans", "shared", "b16"}},
      {"atom", {"relaxed", "gpu", "global", "add", "noftz", "v4", "f16x2"}},
      {"ld", {"global", "nc", "L1::no_allocate", "L2::128B", "L2::cache_hint", "v2", "f64"}},
      {"mma", {"sync", "aligned", "m16n8k16", "row", "col", "f32", "bf16", "bf16", "f32"}},
      {"cvt", {"rn", "relu", "satfinite", "f16x2", "f32"}},
      {"setp", {"ltu", "and", "ftz", "f32"}},
      {"cp.async.bulk.tensor",
       {"3d", "shared::cluster", "global", "tile", "mbarrier::complete_tx::bytes", "multicast::cluster",
        "L2::cache_hint"}},
      {"mbarrier.try_wait", {"parity", "acquire", "cta", "shared::cta", "b64"}},
      {"fence", {"proxy", "tensormap::generic", "acquire", "sys"}},
  };
  std::mt19937 random(20240817);
  for (const Split& split : cases) {
    const auto word_of = [&](const std::vector<std::string>& words) {
      std::string word = split.base;
      for (const std::string& w : words) word += "." + w;
      return word;
    };
    const Instr straight = understand(word_of(split.words));
    ASSERT_EQ(straight.unsupported, "") << word_of(split.words);
    const auto keeps_order = [](const std::string& w) { return type_from_name(w) || w == "row" || w == "col"; };
    for (int round = 0; round < 40; ++round) {
      std::vector<std::string> words = split.words;
      std::shuffle(words.begin(), words.end(), random);
      // Words whose order matters are put back in it, at their new places.
      std::size_t next = 0;
      for (std::string& w : words) {
        if (!keeps_order(w)) continue;
        while (!keeps_order(split.words[next])) ++next;
        w = split.words[next++];
      }
      const Instr shuffled = understand(word_of(words));
      EXPECT_EQ(shuffled.unsupported, "") << word_of(words);
      EXPECT_EQ(shuffled.opcode, straight.opcode);
      EXPECT_EQ(shuffled.mods, straight.mods) << word_of(words);
      EXPECT_EQ(shuffled.types, straight.types) << word_of(words);
      EXPECT_EQ(shuffled.vector, straight.vector);
      EXPECT_EQ(shuffled.shape, straight.shape);
      EXPECT_EQ(shuffled.form, straight.form);
    }
  }
}

// If types were a set, cvt.f32.f16 would equal cvt.f16.f32.
TEST(Understand, RequiresTheOrderOfTypes) {
  EXPECT_EQ(understand("cvt.f32.f16").type(0), Type::f32);
  EXPECT_EQ(understand("cvt.f16.rn.f32").type(0), Type::f16);
  EXPECT_EQ(understand("cvt.f16.f32").unsupported, "cvt without one of .rn .rz .rm .rp");
  EXPECT_EQ(understand("slct.f32.s32").type(1), Type::s32);
  EXPECT_NE(understand("set.u64.eq.u32").unsupported, "");
}

struct Wrong {
  const char* word;
  const char* message;
};

TEST(Understand, SaysWhatIsWrong) {
  const Wrong cases[] = {
      {"foo.bar", "unknown opcode 'foo'"},
      {"foo", "unknown opcode 'foo'"},
      {"", "unknown opcode ''"},
      {".", "unknown opcode ''"},
      {"ADD.s32", "unknown opcode 'ADD'"},
      {"cp.sync", "unknown opcode 'cp'"},
      {"ld.shared.v3.u32", "unknown modifier '.v3'"},
      {"add.s32.", "unknown modifier '.'"},
      {"add.s32.quickly", "unknown modifier '.quickly'"},
      {"ld.global.f16", "unknown modifier '.f16'"},
      {"shfl.bfly.b32", "shfl without '.sync'"},
      {"vote.ballot.b32", "vote without '.sync'"},
      {"mul.s32", "mul without one of .lo .hi"},
      {"fma.f32", "fma without one of .rn .rz .rm .rp"},
      {"add", "add without one of .u16 .u32 .u64 .s16 .s32 .s64"},
      {"add.sat.u32", "modifier '.sat' does not go with the others of add"},
      {"add.s32.s32", "modifier '.s32' does not go with the others of add"},
      {"atom.global.add.s64", "modifier '.s64' does not go with the others of atom"},
      {"div.rn.ftz.f64", "modifier '.ftz' does not go with the others of div"},
  };
  for (const Wrong& wrong : cases) EXPECT_EQ(understand(wrong.word).unsupported, wrong.message) << wrong.word;
}

// Thousands of words in one opcode: a fuzzed file must not cost time or memory.
TEST(Understand, GivesUpOnAnEndlessWord) {
  std::string word = "ld";
  for (int i = 0; i < 100000; ++i) word += ".global";
  EXPECT_EQ(understand(word).unsupported, "unknown opcode 'ld'");
  EXPECT_EQ(understand(std::string(100000, '.')).unsupported, "unknown opcode ''");
  std::string types = "mma";
  for (int i = 0; i < 30; ++i) types += ".f32";
  EXPECT_NE(understand(types).unsupported, "");
}

}  // namespace
}  // namespace kvscope::ptx::understand_test
