#include "gpu/virtual/isa/survey.h"

#include <gtest/gtest.h>

#include <string>

#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::survey_test {
namespace {

const char* const kFile = R"(.version 9.0
.target sm_100a
.address_size 64
.func clean() { .reg .b32 r<4>; add.s32 r1, r1, r2; ret; }
.func alloc() { multimem.st.sync.aligned; ret; }
.func through() { call.uni alloc; ret; }
.global .u64 table[1] = { alloc };
.visible .entry can() {
  .reg .f32 f<8>;
  add.f32 f1, f2, f3;
  add.f32 f1, f1, f3;
  call.uni clean;
  ret;
}
.visible .entry cannot() { call.uni through; ret; }
.visible .entry perhaps() {
  .reg .b64 rd<2>;
proto: .callprototype _ ();
  call rd1, proto;
  ret;
}
.visible .entry texture() { multimem.ld.sync.aligned; foo.bar; ret; }
)";

Survey survey_of(const std::string& text) {
  const Module module = parse_module(text, "t.ptx");
  return survey(module, decode(module));
}

TEST(Survey, CountsWordsByHowOftenTheyStand) {
  const Survey s = survey_of(kFile);
  EXPECT_EQ(s.statements, 17);
  ASSERT_GE(s.words.size(), 3u);
  EXPECT_EQ(s.words[0].word, "ret");
  EXPECT_EQ(s.words[0].count, 7);
  EXPECT_EQ(s.words[1].word, "call.uni");  // 3, then add.f32 with 2
  EXPECT_EQ(s.words[1].count, 3);
  EXPECT_EQ(s.words[2].word, "add.f32");
  EXPECT_EQ(s.words[2].count, 2);
  // Of the base names: ret 7, call 4, add 3, multimem 2, foo 1.
  ASSERT_EQ(s.bases.size(), 5u);
  EXPECT_EQ(s.bases[1].word, "call");
  EXPECT_EQ(s.bases[1].count, 4);
  EXPECT_EQ(s.bases[2].word, "add");
  EXPECT_EQ(s.bases[2].count, 3);
  EXPECT_EQ(s.bases[3].word, "multimem");
  EXPECT_EQ(s.bases[3].count, 2);
  EXPECT_EQ(s.bases[3].unsupported, "needs memory of several GPUs, not modeled");
  EXPECT_EQ(s.bases[4].unsupported, "unknown opcode 'foo'");
}

TEST(Survey, ListsUnsupportedOpcodesWithTheirPlaces) {
  const Survey s = survey_of(kFile);
  ASSERT_EQ(s.unsupported.size(), 3u);
  EXPECT_EQ(s.unsupported[0].word, "multimem.st.sync.aligned");
  EXPECT_EQ(s.unsupported[0].message, "needs memory of several GPUs, not modeled");
  EXPECT_EQ(s.unsupported[0].function, "alloc");
  EXPECT_EQ(s.unsupported[0].at, (TextPlace{5, 17}));
  EXPECT_EQ(s.unsupported[2].word, "foo.bar");
  EXPECT_EQ(s.unsupported[2].function, "texture");
}

// A kernel that looks supported but is not because of what it calls: directly, indirectly, or through a table.
TEST(Survey, FollowsCallsToTellWhichKernelsCanRun) {
  const Survey s = survey_of(kFile);
  ASSERT_EQ(s.kernels.size(), 4u);
  EXPECT_EQ(s.kernels[0].name, "can");
  EXPECT_TRUE(s.kernels[0].can_run());
  EXPECT_EQ(s.kernels[0].statements, 6);  // its own four and clean's two
  EXPECT_EQ(s.kernels[1].name, "cannot");
  EXPECT_EQ(s.kernels[1].unsupported, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(s.kernels[2].name, "perhaps");
  EXPECT_EQ(s.kernels[2].unsupported, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(s.kernels[3].unsupported, (std::vector<std::int32_t>{1, 2}));
}

// The targets of brx.idx are statements: 1 is not a function, and `alloc` is not counted.
TEST(Survey, DoesNotMistakeALabelForAFunction) {
  const Survey s = survey_of(R"(.version 9.0
.target sm_90a
.address_size 64
.func clean() { ret; }
.func alloc() { multimem.st.sync.aligned; ret; }
.visible .entry jumps() {
  .reg .b32 r<2>;
  add.s32 r1, r1, 1;
L1: ret;
L2: ret;
ts: .branchtargets L1, L2;
  brx.idx r1, ts;
}
)");
  ASSERT_EQ(s.kernels.size(), 1u);
  EXPECT_TRUE(s.kernels[0].can_run());
}

int pairs_in(const std::string& body) {
  const Module module = parse_module(
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
      ".reg .f32 f<9>; .reg .f64 d<9>; .reg .pred p<2>; .reg .b64 rd<2>;\n" +
          body + "\nret;\n}\n",
      "k.ptx");
  return static_cast<int>(contraction_pairs(module, decode(module)).size());
}

TEST(Survey, FindsTheProductsThatTheAssemblerFuses) {
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; add.f32 f4, f3, f5;"), 1);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; sub.f32 f4, f5, f3;"), 1);
  EXPECT_EQ(pairs_in("mul.ftz.f32 f3, f1, f2; add.ftz.f32 f4, f3, f5;"), 1);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; mul.f32 f6, f1, f1; add.f32 f4, f3, f5; add.f32 f7, f6, f5;"), 2);
  // A product with an explicit rounding is not fused.
  EXPECT_EQ(pairs_in("mul.rn.f32 f3, f1, f2; add.f32 f4, f3, f5;"), 0);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; add.rn.f32 f4, f3, f5;"), 0);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; add.rz.f32 f4, f3, f5;"), 0);
  // A product with another use is not fused.
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; add.f32 f4, f3, f5; st.global.f32 [rd1], f3;"), 0);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; add.f32 f4, f3, f3;"), 0);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; st.global.v2.f32 [rd1], {f3, f4};"), 0);
  EXPECT_EQ(pairs_in("add.f32 f4, f3, f5; mul.f32 f3, f1, f2;"), 0);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; mul.f32 f4, f3, f5;"), 0);
  EXPECT_EQ(pairs_in("mul.f64 d3, d1, d2; add.f64 d4, d3, d5;"), 0);
  EXPECT_EQ(pairs_in("mul.sat.f32 f3, f1, f2; add.f32 f4, f3, f5;"), 0);
  EXPECT_EQ(pairs_in("mul.ftz.f32 f3, f1, f2; add.f32 f4, f3, f5;"), 0);
  // A factor that changes before the sum, a sum that is reached without the product, a guarded product.
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; mov.f32 f1, f6; add.f32 f4, f3, f5;"), 0);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; ld.global.v2.f32 {f6, f2}, [rd1]; add.f32 f4, f3, f5;"), 0);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; L: add.f32 f4, f3, f5; bra L;"), 0);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; @p1 bra L; add.f32 f4, f3, f5; L: mov.f32 f6, f5;"), 0);
  EXPECT_EQ(pairs_in("@p1 mul.f32 f3, f1, f2; add.f32 f4, f3, f5;"), 0);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; @p1 add.f32 f4, f3, f5;"), 1);
  EXPECT_EQ(pairs_in("mul.f32 f3, f1, f2; add.f32 f1, f3, f5;"), 1);
}

TEST(Survey, NamesBothStatementsOfAPair) {
  const Module module = parse_module(
      ".version 9.0\n.target sm_90a\n.address_size 64\n.func f() { ret; }\n"
      ".visible .entry k() { .reg .f32 f<9>;\n"
      "mov.f32 f1, 1.0; mul.f32 f3, f1, f2; mov.f32 f5, f1; sub.f32 f4, f5, f3; ret; }\n",
      "k.ptx");
  const auto pairs = contraction_pairs(module, decode(module));
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].function, 1);
  EXPECT_EQ(pairs[0].product, 1);
  EXPECT_EQ(pairs[0].sum, 3);
}

}  // namespace
}  // namespace kvscope::ptx::survey_test
