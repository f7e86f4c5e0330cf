// Heads of functions: parameters, limits, declarations and definitions, prototypes, aliases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::functions_test {
namespace {

using testing::ElementsAre;

TEST(Functions, ParametersStandAtTheNextMultipleOfTheirAlignment) {
  const Module m = parse_items(
      ".entry k(.param .u8 a, .param .u64 b, .param .u16 c, .param .align 128 .b8 map[128], .param .b8 e) { ret; }");
  const Function& f = kernel(m);
  std::vector<std::int32_t> offsets;
  for (const std::int32_t p : f.parameters)
    offsets.push_back(m.variables[static_cast<std::size_t>(p)].parameter_offset);
  EXPECT_THAT(offsets, ElementsAre(0, 8, 16, 128, 256));
  EXPECT_EQ(f.parameter_bytes, 257);
  EXPECT_EQ(m.variables[0].function, 0);
}

TEST(Functions, EveryLimitIsKept) {
  const Module m = parse_items(
      ".entry a .maxntid 64, 2 .minnctapersm 3 .maxnctapersm 5 .maxnreg 40 { ret; }\n"
      ".entry b() .reqntid 32, 4, 2 .reqnctapercluster 2, 2, 1 .explicitcluster .maxclusterrank 8 { ret; }\n"
      ".func c() .noreturn { ret; }");
  const KernelLimits& a = m.functions[0].limits;
  EXPECT_THAT(a.max_threads, ElementsAre(64, 2, 1));
  EXPECT_THAT(a.required_threads, ElementsAre(0, 0, 0));
  EXPECT_EQ(a.min_ctas, 3);
  EXPECT_EQ(a.max_ctas, 5);
  EXPECT_EQ(a.max_registers, 40);
  const KernelLimits& b = m.functions[1].limits;
  EXPECT_THAT(b.required_threads, ElementsAre(32, 4, 2));
  EXPECT_THAT(b.cluster, ElementsAre(2, 2, 1));
  EXPECT_TRUE(b.explicit_cluster);
  EXPECT_EQ(b.max_cluster_rank, 8);
  EXPECT_TRUE(m.functions[2].limits.no_return);
}

// nvcc declares each function before it defines it: they are one function, with the definition's parameters.
TEST(Functions, ADeclarationAndItsDefinitionAreOneFunction) {
  const Module m = parse_items(
      ".visible .func (.param .b32 r) f (.param .b64 a, .param .b32 b);\n"
      ".global .u64 p = f;\n"
      ".entry k { call (_), f, (1, 2); ret; }\n"
      ".visible .func (.param .b32 out) f (.param .b64 x, .param .b32 y) { st.param.b32 [out], 3; ret; }");
  ASSERT_EQ(m.functions.size(), 2u);
  const Function& f = m.functions[0];
  EXPECT_TRUE(f.defined);
  EXPECT_EQ(f.declared.line, 2);
  EXPECT_EQ(f.at.line, 5);
  ASSERT_EQ(f.parameters.size(), 2u);
  EXPECT_EQ(m.variables[static_cast<std::size_t>(f.parameters[1])].name, "y");
  EXPECT_EQ(m.variables[static_cast<std::size_t>(f.parameters[1])].parameter_offset, 8);
  EXPECT_EQ(m.variables[static_cast<std::size_t>(f.results[0])].name, "out");
  EXPECT_EQ(m.variables.size(), 4u);  // p, and no second set of parameters
}

TEST(Functions, AParameterInARegisterIsARegister) {
  const Module m = parse_items(".func (.reg .b32 r) f (.reg .b32 a, .reg .b64 b) { add.u32 r, a, 1; ret; }");
  const Function& f = m.functions[0];
  ASSERT_EQ(f.registers.size(), 3u);
  EXPECT_EQ(m.variables[static_cast<std::size_t>(f.results[0])].in_register, 0);
  EXPECT_EQ(m.variables[static_cast<std::size_t>(f.parameters[1])].in_register, 2);
  EXPECT_EQ(shown(m, f, f.operands_of(f.body[0])[1]), "a");
}

TEST(Functions, OfWeakDefinitionsTheFirstCounts) {
  const Module m = parse_items(".weak .func f() { ret; }\n.weak .func f() { exit; { } ret; }\n.entry k { ret; }");
  ASSERT_EQ(m.functions.size(), 2u);
  EXPECT_EQ(m.functions[0].body.size(), 1u);
}

TEST(Functions, AnAliasIsResolvedWhereItIsUsed) {
  const Module m =
      parse_items(".func a(); .func b() { ret; }\n.global .u64 p = a;\n.entry k { call a; ret; }\n.alias a, b;");
  EXPECT_EQ(m.functions[0].alias_of, 1);
  EXPECT_EQ(m.variables[0].init[0].index, 1);
  EXPECT_EQ(shown(m, kernel(m), kernel(m).operands_of(kernel(m).body[0])[0]), "fn:b");
}

TEST(Functions, APrototypeIsAFunctionWithoutAName) {
  const Module m = parse_body(
      "proto : .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[24]);\n"
      "call (_), %rd1, (%rd2, %rd3), proto;");
  const Function& f = kernel(m);
  ASSERT_EQ(f.tables.size(), 1u);
  const Function& prototype = m.functions.at(static_cast<std::size_t>(f.tables[0].prototype));
  EXPECT_EQ(prototype.name, "");
  EXPECT_EQ(prototype.parameter_bytes, 32);
  EXPECT_EQ(prototype.results.size(), 1u);
  EXPECT_EQ(m.find_function(""), -1);
}

TEST(Functions, FaultsNameWhatIsWrong) {
  const struct {
    const char* text;
    const char* error;
  } rows[] = {
      {".entry { ret; }", "2:8: expected function name, found '{'"},
      {".entry k(.param .u32 a, ) { ret; }", "2:25: expected '.param', found ')'"},
      {".entry k(.param .u32 a { ret; }", "2:24: expected ')', found '{'"},
      {".entry k(.u32 a) { ret; }", "2:10: expected '.param', found '.u32'"},
      {".entry k(.param .u32 a, .param .u32 a) { ret; }", "2:37: duplicate symbol 'a', first at 2:22"},
      {".entry k() .maxfoo 3 { ret; }", "2:12: unknown directive '.maxfoo'"},
      {".entry k() .maxntid -1 { ret; }", "2:21: limit -1 is outside [0, 2147483647]"},
      {".entry k { ret; } .entry k { ret; }", "2:26: duplicate symbol 'k', first at 2:8"},
      {".global .u32 k; .entry k { ret; }", "2:24: duplicate symbol 'k', first at 2:14"},
      {".func f(.param .b32 a); .func f(.param .b64 a) { ret; }", "2:31: 'f' has other parameters than at 2:7"},
      {".func f(.param .b32 a); .func f() { ret; }", "2:31: 'f' has other parameters than at 2:7"},
      {".func f(); .entry f() { ret; }", "2:19: 'f' has other parameters than at 2:7"},
      {".entry k(.param .b8 a[32765]) { ret; }", "2:21: parameters of 'k' take 32765 bytes, at most 32764"},
      {".alias a, b;", "2:8: unknown function 'a'"},
      {".entry k { ret;", "3:1: expected '}', found end of file"},
      {".entry k", "3:1: expected ';', found end of file"},
  };
  for (const auto& row : rows) EXPECT_THAT(errors_of(with_head(row.text)), ElementsAre(row.error)) << row.text;
  EXPECT_THAT(errors_of(with_head(".entry k(.param .b8 a[32764]) { ret; }")), testing::IsEmpty());
}

}  // namespace
}  // namespace kvscope::ptx::functions_test
