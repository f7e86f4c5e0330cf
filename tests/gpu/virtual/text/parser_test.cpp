// A whole text and the resulting module.
#include "gpu/virtual/text/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/base/errors.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::parser_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kScale = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 x, .param .u32 n) .maxntid 128, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3+-4];
DONE:
  ret;
}
)";

TEST(Parser, ReadsAnOrdinaryKernel) {
  const Module m = parse_module(kScale, "scale.ptx");
  EXPECT_EQ(m.file, "scale.ptx");
  EXPECT_EQ(m.version, 90);
  EXPECT_EQ(m.target, 90);
  EXPECT_EQ(m.target_suffix, 'a');
  ASSERT_EQ(m.functions.size(), 1u);
  const Function& f = m.functions[0];
  EXPECT_TRUE(f.entry && f.defined);
  EXPECT_EQ(f.parameter_bytes, 12);
  EXPECT_THAT(f.limits.max_threads, ElementsAre(128, 1, 1));
  EXPECT_EQ(f.registers.size(), 11u);
  ASSERT_EQ(f.body.size(), 9u);
  const Statement& branch = f.body[4];
  EXPECT_EQ(branch.opcode, "bra");
  EXPECT_EQ(name(f.registers[static_cast<std::size_t>(branch.guard)]), "%p1");
  EXPECT_EQ(shown(m, f, f.operands_of(branch)[0]), "->8");
  EXPECT_EQ(branch.at, (TextPlace{13, 8}));
  EXPECT_EQ(shown(m, f, f.operands_of(f.body[7])[1]), "[%rd3+-4]");
  EXPECT_EQ(m.lines[12], "  @%p1 bra DONE;");
}

// Views must point into the text that the copy owns, not into the parser's input.
TEST(Parser, AModuleOutlivesWhatItWasParsedFrom) {
  Module copy;
  {
    std::string text = kScale;
    text += "// a comment that makes the text longer than any small buffer\n";
    const Module m = parse_module(std::move(text), "scale.ptx");
    copy = m;
  }
  EXPECT_EQ(copy.functions[0].name, "scale");
  EXPECT_EQ(copy.functions[0].body[8].opcode, "ret");
  EXPECT_EQ(copy.find_function("scale"), 0);
  EXPECT_EQ(copy.find_function("scal"), -1);
  EXPECT_EQ(copy.find_variable("x"), -1);  // a parameter is not a variable of the module
}

TEST(Parser, CommentsAndBlanksStandAnywhere) {
  const Module m = parse_module(
      "// head\r\n.version/**/9.0\n.target /* of\nthe machine */ sm_90\n.entry\tk{/**/ret // no ; yet\n;}//end",
      "c.ptx");
  EXPECT_EQ(m.version, 90);
  EXPECT_EQ(m.target_suffix, '\0');
  EXPECT_EQ(kernel(m).body.at(0).at, (TextPlace{5, 14}));
  EXPECT_EQ(m.lines.at(0), "// head");
}

TEST(Parser, TheHeadComesFirstAndOnce) {
  EXPECT_THAT(errors_of(""), ElementsAre("1:1: expected '.version', found end of file"));
  EXPECT_THAT(errors_of(".target sm_90\n.version 9.0"), ElementsAre("1:1: expected '.version', found '.target'"));
  EXPECT_THAT(errors_of(".version 9\n"), ElementsAre("1:10: expected version as in 9.0, found '9'"));
  EXPECT_THAT(errors_of(".version 9.0 .entry k { ret; }"), ElementsAre("1:14: expected '.target', found '.entry'"));
  EXPECT_THAT(errors_of(".version 9.0 .target sm_90b"),
              ElementsAre("1:22: expected target as in sm_90a, found 'sm_90b'"));
  EXPECT_THAT(errors_of(".version 9.0 .target compute_90"),
              ElementsAre("1:22: expected target as in sm_90a, found 'compute_90'"));
  EXPECT_THAT(errors_of(".version 9.0 .target sm_90 .address_size 32"),
              ElementsAre("1:42: address size 32, expected 64"));
  EXPECT_THAT(errors_of(with_head(".version 9.0\n.global .u32 x;")),
              ElementsAre("2:1: '.version' must be at the head of the file, once"));
  EXPECT_THAT(errors_of(".version 9.0 .target sm_100f, debug, texmode_independent"), IsEmpty());
}

TEST(Parser, FilesSectionsAndPragmasAreReadOrSkipped) {
  const Module m = parse_items(
      ".file 1 \"src/a b.cu\"\n.file 3 \"h.cuh\", 1700000000, 512\n.pragma \"nounroll\";\n"
      ".section .debug_info {\n.b32 8890\n.b64 $L__tmp66\n.b32 .debug_abbrev\n{ }\n}\n"
      ".entry k { .pragma \"used_bytes_mask 15\"; ret; }");
  ASSERT_EQ(m.files.size(), 2u);
  EXPECT_EQ(m.files[0].number, 1);
  EXPECT_EQ(m.files[0].path, "src/a b.cu");
  EXPECT_EQ(m.file_of(Frame{3, 1, 1, -1, {}}), "h.cuh");
  EXPECT_EQ(m.file_of(Frame{2, 1, 1, -1, {}}), "");
  EXPECT_EQ(kernel(m).body.size(), 1u);
}

TEST(Parser, ThrowsAllFaultsWithTheirLines) {
  try {
    static_cast<void>(parse_module(with_body("\tmov.u32 r1, 2;\nbra NOWHERE;"), "bad.ptx"));
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_THAT(error.faults(), ElementsAre(Fault{"2:10", "unknown register 'r1'\n    mov.u32 r1, 2;\n            ^"},
                                            Fault{"3:5", "unknown label 'NOWHERE'\n    bra NOWHERE;\n        ^"}));
    EXPECT_EQ(error.source(), "bad.ptx");
  }
}

}  // namespace
}  // namespace kvscope::ptx::parser_test
