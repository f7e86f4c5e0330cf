// Bodies: registers, scopes, labels, guards, tables of targets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::body_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> opcodes(const Function& f) {
  std::vector<std::string> all;
  for (const Statement& s : f.body) all.emplace_back(s.opcode);
  return all;
}

// Operand `o` of statement `i`, as text.
std::string operand(const Module& m, std::size_t i, std::size_t o) {
  const Function& f = kernel(m);
  return shown(m, f, f.operands_of(f.body.at(i))[o]);
}

TEST(Body, RegistersAreRangesListsAndVectors) {
  const Module m =
      parse_items(".entry k { .reg .b32 %r<3>, x; .reg .v2 .f32 v; .reg .v4 .b16 w<2>; .reg .pred p, q; ret; }");
  std::vector<std::string> names;
  for (const Register& r : kernel(m).registers) names.push_back(name(r) + ":" + std::string(name(r.type)));
  EXPECT_THAT(names,
              ElementsAre("%r0:b32", "%r1:b32", "%r2:b32", "x:b32", "v.x:f32", "v.y:f32", "w0.x:b16", "w0.y:b16",
                          "w0.z:b16", "w0.w:b16", "w1.x:b16", "w1.y:b16", "w1.z:b16", "w1.w:b16", "p:pred", "q:pred"));
}

// nvcc writes each inline asm block this way: the same names are declared repeatedly.
TEST(Body, SiblingScopesDeclareTheSameNames) {
  const Module m = parse_body(
      "{ .reg .b32 low; W: mov.b32 low, 1; bra W; }\n{ .reg .b64 low; W: mov.b64 low, 2; bra W; }\nmov.b32 %r1, 3;");
  EXPECT_EQ(kernel(m).registers.size(), 47u);
  EXPECT_EQ(kernel(m).operands_of(kernel(m).body[0])[0].index, 45);
  EXPECT_EQ(kernel(m).operands_of(kernel(m).body[2])[0].index, 46);
  EXPECT_EQ(operand(m, 1, 0), "->0");
  EXPECT_EQ(operand(m, 3, 0), "->2");
}

TEST(Body, AnInnerNameHidesAnOuterOneUntilItsScopeEnds) {
  const Module m = parse_body(".reg .b32 a;\n{ mov.b32 a, 1; .reg .b32 a, %r2; mov.b32 a, %r2; }\nmov.b32 a, %r2;");
  const Function& f = kernel(m);
  const auto index = [&](std::size_t i, std::size_t o) { return f.operands_of(f.body.at(i))[o].index; };
  EXPECT_EQ(index(0, 0), 45);
  EXPECT_EQ(index(1, 0), 46);
  EXPECT_EQ(index(1, 1), 47);
  EXPECT_EQ(index(2, 0), 45);
  EXPECT_EQ(index(2, 1), 2);
}

// Would catch uses that are resolved immediately: the branch of the inner scope belongs to the later inner DONE,
// although an outer DONE is already known.
TEST(Body, ABranchGoesToTheInnermostLabelEvenIfThatComesLater) {
  const Module m = parse_body("DONE: mov.b32 %r1, 0;\n{ @%p1 bra DONE; mov.b32 %r1, 1; DONE: }\nbra DONE;");
  EXPECT_EQ(operand(m, 1, 0), "->3");
  EXPECT_EQ(operand(m, 3, 0), "->0");
}

TEST(Body, ABranchLeavesAScopeButDoesNotEnterOne) {
  const Module m = parse_body("{ { bra OUT; } }\nret;\nOUT:");
  EXPECT_EQ(operand(m, 0, 0), "->2");  // after the last statement
  EXPECT_THAT(errors_of(with_body("bra IN;\n{ IN: ret; }")), ElementsAre("2:5: unknown label 'IN'"));
}

TEST(Body, LabelsOfADebugBuildStandInFrontOfOneStatementTogether) {
  const Module m = parse_body("$L__func_begin0:\n.loc 1 2 3\n$L__tmp0:\n$L__tmp1:\nret;\n$L__func_end0:");
  const std::vector<Label>& labels = kernel(m).labels;
  ASSERT_EQ(labels.size(), 4u);
  EXPECT_EQ(labels[2].name, "$L__tmp1");
  EXPECT_EQ(labels[2].statement, 0);
  EXPECT_EQ(labels[3].statement, 1);
}

TEST(Body, GuardsNameAPredicate) {
  const Module m = parse_body("@%p1 ret;\n@ ! %p2 exit;\nL: @%p3 bra L;");
  const std::vector<Statement>& body = kernel(m).body;
  EXPECT_EQ(name(kernel(m).registers[static_cast<std::size_t>(body[1].guard)]), "%p2");
  EXPECT_FALSE(body[0].guard_negated);
  EXPECT_TRUE(body[1].guard_negated);
  EXPECT_EQ(body[2].at, (TextPlace{4, 9}));
  EXPECT_THAT(errors_of(with_body("@%p9 ret;")), ElementsAre("2:2: unknown register '%p9'"));
  EXPECT_THAT(errors_of(with_body("@%r1 ret;")), ElementsAre("2:2: guard '%r1' is .b32, expected .pred"));
}

TEST(Body, StatementsShareLinesAndSpanThem) {
  const Module m = parse_body("ret; exit;trap;\ncall.uni\n(\n%r1\n)\n,\nk\n;");
  EXPECT_THAT(opcodes(kernel(m)), ElementsAre("ret", "exit", "trap", "call.uni"));
}

TEST(Body, AnOpcodeIsOneDottedWord) {
  const Module m = parse_body(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 4;\nmov .b32 %r1, 2;\nld .global\t.v2 .u32 {%r1, %r2}, "
      "[%rd1];\n"
      "foo.bar %r1;");
  EXPECT_THAT(opcodes(kernel(m)),
              ElementsAre("mbarrier.arrive.expect_tx.shared::cta.b64", "mov.b32", "ld.global.v2.u32", "foo.bar"));
}

TEST(Body, TablesHoldStatementsOrFunctions) {
  const Module m = parse_items(
      ".func f(); .func g();\n.entry k { .reg .b32 i; .reg .b64 p;\n"
      "T: .branchtargets L1, L0, L1;\nC: .calltargets g, f;\nbrx.idx i, T;\nL0: call p, C;\nL1: ret;\n}");
  const Function& f = kernel(m);
  ASSERT_EQ(f.tables.size(), 2u);
  EXPECT_EQ(f.tables[0].name, "T");
  EXPECT_FALSE(f.tables[0].of_calls);
  EXPECT_THAT(f.tables[0].targets, ElementsAre(2, 1, 2));
  EXPECT_TRUE(f.tables[1].of_calls);
  EXPECT_THAT(f.tables[1].targets, ElementsAre(1, 0));
  EXPECT_EQ(operand(m, 0, 1), "table:T");
}

TEST(Body, VariablesOfABodyAreTheModulesAndTheFunctions) {
  const Module m = parse_body(
      ".shared .align 8 .b8 tile[64];\n{ .param .b32 param0; st.param.b32 [param0+0], 28; }\n"
      "{ .param .b64 param0; st.param.b64 [param0+0], %rd1; }");
  const Function& f = kernel(m);
  ASSERT_EQ(f.variables.size(), 3u);
  EXPECT_EQ(m.variables[static_cast<std::size_t>(f.variables[2])].bytes, 8);
  EXPECT_EQ(m.variables[static_cast<std::size_t>(f.variables[0])].function, m.find_function("k"));
  const Operand second = f.operands_of(f.body[1])[0];
  EXPECT_EQ(f.elements_of(second)[0].index, f.variables[2]);
  EXPECT_EQ(m.find_variable("tile"), -1);
}

TEST(Body, LimitsKeepATextFromTakingTheMemory) {
  EXPECT_THAT(errors_of(with_body(".reg .b32 %x<1048577>;")),
              ElementsAre("2:11: '%x': more than 1048576 registers in a function, or 4194304 in the file"));
  std::string many;
  for (char c = 'a'; c <= 'f'; ++c) many += std::string(".entry k") + c + " { .reg .b32 %x<1000000>; }\n";
  EXPECT_THAT(errors_of(with_head(many)),
              ElementsAre("6:23: '%x': more than 1048576 registers in a function, or 4194304 in the file",
                          "7:23: '%x': more than 1048576 registers in a function, or 4194304 in the file"));
  EXPECT_THAT(errors_of(with_body(std::string(300, '{') + std::string(300, '}'))),
              testing::Contains("2:256: more than 256 braces within one another"));
}

TEST(Body, RegistersOfAnUnsuitableKindAreRejected) {
  EXPECT_THAT(
      errors_of(with_body(".reg .e4m3 a;\n.reg .v2 .pred b;\n.reg .v4 .f64 c;\n.reg d;\n.reg .b32 e, e;\n.reg .b32 x;"
                          "\n.reg .b32 f<2+1>;")),
      ElementsAre("2:6: expected type, found '.e4m3'", "3:16: predicates are scalar registers",
                  "4:15: .v4 .f64 has more than 128 bits", "5:6: expected type, found 'd'",
                  "6:14: duplicate symbol 'e', first at 6:11", "8:14: expected '>', found '+'"));
}

}  // namespace
}  // namespace kvscope::ptx::body_test
