// Errors in a text: exact messages, one per statement; parsing continues after each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/text/texts.h"
#include "tests/property.h"

namespace kvscope::ptx::text_errors_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(TextErrors, ShowTheLineAndACaret) {
  const TextError error{{8, 2}, "expected ';', found 'add'"};
  EXPECT_EQ(to_text("scale.ptx", "\tadd.s32 %r1, %r1, 1;", error),
            "scale.ptx:8:2: error: expected ';', found 'add'\n    add.s32 %r1, %r1, 1;\n    ^");
  EXPECT_EQ(caret_lines("  a\tb \x01", 5), "\n    a b ?\n      ^");
  EXPECT_EQ(caret_lines("", 1), "\n    \n    ^");
  EXPECT_EQ(caret_lines("ab", 9), "\n    ab\n      ^");
}

// A line of a megabyte must not become part of the message.
TEST(TextErrors, CutLongLinesAroundTheCaret) {
  const std::string line = std::string(500, 'a') + "X" + std::string(500, 'b');
  EXPECT_EQ(caret_lines(line, 501),
            "\n    " + std::string(60, 'a') + "X" + std::string(39, 'b') + "\n    " + std::string(60, ' ') + "^");
  EXPECT_THAT(errors_of(with_body("mov.u32 " + std::string(500, 'a') + ", 1;")),
              ElementsAre("2:9: unknown register '" + std::string(500, 'a') + "'"));
}

TEST(TextErrors, AMissingSemicolonCostsOneStatementOnly) {
  EXPECT_THAT(
      errors_of(with_body("\tmov.u32 %r1, %tid.x\n\tadd.s32 %r9, %r1, %q;\n\tret\n")),
      ElementsAre("3:2: expected ';', found 'add'", "3:20: unknown register '%q'", "6:1: expected ';', found '}'"));
  EXPECT_THAT(errors_of(with_body("mov.u32 %r1, %tid.x add.s32 %r9, %r1, 1; ret;")),
              ElementsAre("2:21: expected ';', found 'add'"));
}

TEST(TextErrors, UnknownNamesSayWhatWasLookedFor) {
  EXPECT_THAT(
      errors_of(with_body("add.s32 r9, %r1, 1;\nadd.s32 %r10, %r1, 1;\nbra NOWHERE;\nld.global.u32 %r1, [foo];\n"
                          "ld.global.u32 %r1, [%rd99];\ncall (_), f, (%r1);\nT: .branchtargets A;\n"
                          "C: .calltargets f;\nmov.u32 %r1, %foo;")),
      ElementsAre("2:9: unknown register 'r9'", "3:9: unknown register '%r10'", "4:5: unknown label 'NOWHERE'",
                  "5:21: unknown symbol 'foo'", "6:21: unknown register '%rd99'", "7:11: unknown symbol 'f'",
                  "8:19: unknown label 'A'", "9:17: unknown function 'f'", "10:14: unknown register '%foo'"));
}

TEST(TextErrors, DuplicatesNameTheFirst) {
  EXPECT_THAT(errors_of(with_body("L: ret;\nL: ret;\n.reg .b32 L;\n.shared .b32 s;\n{ .shared .b32 s; }\n.reg .b64 s;\n"
                                  ".reg .b32 %r3;\n.reg .b32 x;")),
              ElementsAre("3:1: duplicate symbol 'L', first at 2:1", "4:11: duplicate symbol 'L', first at 2:1",
                          "7:11: duplicate symbol 's', first at 5:14", "8:11: duplicate symbol '%r3', first at 1:91"));
}

TEST(TextErrors, LexicalFaults) {
  EXPECT_THAT(errors_of(with_body(
                  "mov.u32 %r1, `;\nmov.u32 %r1, #;\nmov.u32 %r1, 08;\nmov.u32 %r1, 7%3;\nmov.u32 %r1, \xc3\xa4;"
                  "\n.pragma \"x;\n;ret;")),
              ElementsAre("2:14: unexpected character '`'", "3:14: unexpected character '#'",
                          "4:14: malformed number '08'", "5:15: expected ';', found '%3'",
                          "6:14: unexpected byte 0xc3, PTX is ASCII", "7:9: unterminated string, expected '\"'"));
  EXPECT_THAT(errors_of(with_head("/* no end")), ElementsAre("2:1: unterminated comment, expected '*/'"));
}

TEST(TextErrors, SyntaxErrorsNameWhatWasExpected) {
  const struct {
    const char* text;
    const char* error;
  } rows[] = {
      {"add.s32 %r1, , 2;", "2:14: expected operand, found ','"},
      {"add.s32 %r1, 2,;", "2:16: expected operand, found ';'"},
      {"ld.global.u32 %r1, [%rd1-4];", "2:25: expected ']', found '-'"},
      {"ld.global.u32 %r1, [4+%rd1];", "2:23: expected number, found '%rd1'"},
      {"ld.global.u32 %r1, [];", "2:21: expected operand, found ']'"},
      {"ld.global.u32 %r1, [%rd1;", "2:25: expected ']', found ';'"},
      {"mov.b64 {%r1 %r2}, %rd1;", "2:14: expected '}', found '%r2'"},
      {"mov.b64 {}, %rd1;", "2:10: expected operand, found '}'"},
      {"mov.b64 {%r1, {%r2}}, %rd1;", "2:15: expected operand, found '{'"},
      {"setp.eq.u32 %p1|, %r1, 2;", "2:17: expected operand, found ','"},
      {"selp.u32 %r1, 1, 2, !x;", "2:21: expected a predicate register after '!'"},
      {"add.s32 %r1, 1.5.2, 2;", "2:14: malformed number '1.5.2'"},
      {"mov.u32 %r1, \"abc\";", "2:14: expected operand, found '\"abc\"'"},
      {"@%p1;", "2:5: expected instruction, found ';'"},
      {";", "2:1: expected instruction, found ';'"},
      {"123;", "2:1: expected instruction, found '123'"},
      {".reg .b32 a b;", "2:13: expected ';', found 'b'"},
      {".foo 1 2;", "2:1: unknown directive '.foo'"},
      {".extern .shared .b8 s[];", "2:1: unknown directive '.extern'"},
      {"L:: ret;", "2:2: expected operand, found ':'"},
      {"mov.u32 %r1, x.y;", "2:14: 'x' has no part '.y'"},
  };
  for (const auto& row : rows) EXPECT_THAT(errors_of(with_body(row.text)), ElementsAre(row.error)) << row.text;
}

// Outside of functions.
TEST(TextErrors, DeclarationsNameWhatIsWrong) {
  const struct {
    std::string text, error;
  } rows[] = {
      {".global .align 0 .u32 x;", "2:16: alignment 0 is no power of two up to 1048576"},
      {".global .align 3 .u32 x;", "2:16: alignment 3 is no power of two up to 1048576"},
      {".global .align -4 .u32 x;", "2:16: alignment -4 is no power of two up to 1048576"},
      {".global .align 2097152 .u32 x;", "2:16: alignment 2097152 is no power of two up to 1048576"},
      {".global .attribute(.managed .u32 x;", "2:35: expected ')', found ';'"},
      {".global .attribute(.managed", "3:1: expected ')', found end of file"},
      {".extern .global .u32 a;\n.global .u64 a;", "3:14: duplicate symbol 'a', first at 2:22"},
      {".extern .global .u32 a;\n.const .u32 a;", "3:13: duplicate symbol 'a', first at 2:22"},
      {".extern .global .u32 a;\n.global .v2 .u32 a;", "3:18: duplicate symbol 'a', first at 2:22"},
      {".global .u32 a;\n.global .u32 a;", "3:14: duplicate symbol 'a', first at 2:14"},
      {".weak .global .u32 a;\n.visible .global .u32 a;", "3:23: duplicate symbol 'a', first at 2:20"},
      {".func f() { ret; }\n.global .u32 f;", "3:14: duplicate symbol 'f', first at 2:7"},
      {".global .f16 h = 1.0;", "2:18: no initial value for type .f16"},
      {".global .bf16 h = 1.0;", "2:19: no initial value for type .bf16"},
      {".global .texref t = 1;", "2:21: no initial value for type .texref"},
      {".entry f { ret; }\n.alias f, g;", "3:11: unknown function 'g'"},
      {".global .u32 g;\n.alias g, g;", "3:8: unknown function 'g'"},
      {".version 9.0", "2:1: '.version' must be at the head of the file, once"},
      {".target sm_80", "2:1: '.target' must be at the head of the file, once"},
      {".address_size 64", "2:1: '.address_size' must be at the head of the file, once"},
      {".pragma \"x\"", "3:1: expected ';', found end of file"},
      {".pragma \"x\\", "2:9: unterminated string, expected '\"'"},
      {".$x 1;", "2:1: unknown directive '.$x'"},
      {".section 5 {}", "2:10: expected section name, found '5'"},
      {".section .x 5", "2:13: expected '{', found '5'"},
      {".func f(.param .b32 x);\n.func f(.param .b64 x) { ret; }", "3:7: 'f' has other parameters than at 2:7"},
      {".func f(.param .b32 x);\n.func f(.reg .b32 x) { ret; }", "3:7: 'f' has other parameters than at 2:7"},
      {".func f(.param .b32 x);\n.func f() { ret; }", "3:7: 'f' has other parameters than at 2:7"},
      {".func f();\n.func (.param .b32 r) f() { ret; }", "3:23: 'f' has other parameters than at 2:7"},
      {".func f();\n.entry f() { ret; }", "3:8: 'f' has other parameters than at 2:7"},
      {".weak .func f() { ret; }\n.func f() { ret; }", "3:7: duplicate symbol 'f', first at 2:13"},
      {".func f() { ret; }\n.weak .func f() { ret; }", "3:13: duplicate symbol 'f', first at 2:7"},
      {".entry f() .pragma \"x\" { ret }", "3:1: expected ';', found end of file"},
  };
  for (const auto& row : rows) EXPECT_THAT(errors_of(with_head(row.text)), ElementsAre(row.error)) << row.text;
}

TEST(TextErrors, TheHeadNamesWhatItExpects) {
  const struct {
    const char* text;
    const char* error;
  } rows[] = {
      {".version abc .target sm_90", "1:10: expected version as in 9.0, found 'abc'"},
      {".version 9 .target sm_90", "1:10: expected version as in 9.0, found '9'"},
      {".version 9.x .target sm_90", "1:10: expected version as in 9.0, found '9.x'"},
      {".version 1000.0 .target sm_90", "1:10: expected version as in 9.0, found '1000.0'"},
      {".version 9.0 .target sm_", "1:22: expected target as in sm_90a, found 'sm_'"},
      {".version 9.0 .target sm_90x", "1:22: expected target as in sm_90a, found 'sm_90x'"},
      {".version 9.0 .target sm_90af", "1:22: expected target as in sm_90a, found 'sm_90af'"},
      {".version 9.0 .target debug, sm_90", "1:22: expected target as in sm_90a, found 'debug'"},
      {".version 9.0 .address_size 64", "1:14: expected '.target', found '.address_size'"},
  };
  for (const auto& row : rows) EXPECT_THAT(errors_of(row.text), ElementsAre(row.error)) << row.text;
  EXPECT_THAT(errors_of(".version 9.0 .target sm_100f, debug"), IsEmpty());
}

// Forms that are rare, and no faults.
TEST(TextErrors, NoneForFormsThatAreRare) {
  for (const char* text :
       {".common .global .u32 c;\n.common .global .u32 c;", ".weak .global .u32 c;\n.weak .global .u32 c;",
        ".extern .global .u32 e;\n.extern .global .u32 e;", ".global .v8 .f32 v;",
        ".func f() .abi_preserve 5 .abi_preserve_control 3 { ret; }", ".entry f() .pragma \"nounroll\"; { ret; }",
        ".func f(.param .b32 _, .param .b32 _) { ret; }", ".pragma \"a\\\"b\";", "/* a * b / c ** */",
        ".func a() { ret; }\n.func b() { ret; }\n.alias a, b;\n.alias b, a;\n.func c() { call a; ret; }",
        ".extern .func f();\n.extern .func f();", ".func f();\n.extern .func f() { ret; }"}) {
    EXPECT_THAT(errors_of(with_head(text)), IsEmpty()) << text;
  }
  for (const char* text : {"mov.f64 %fd1, 1E+2;", "mov.f64 %fd1, 1e-2;", "P: .callprototype _;",
                           "P: .callprototype (.param .b32 _) _;", "P: .callprototype _ (.param .b32 _);"}) {
    EXPECT_THAT(errors_of(with_body(text)), IsEmpty()) << text;
  }
}

// A token of any length is cut in the message.
TEST(TextErrors, CutLongTokens) {
  EXPECT_THAT(errors_of(with_body("mov.u32 %r1, \"" + std::string(100, 'x') + "\";")),
              ElementsAre("2:14: expected operand, found '\"" + std::string(59, 'x') + "...'"));
}

// The brace of an unfinished vector must not close the body.
TEST(TextErrors, AFaultInsideBracesEndsAtItsStatement) {
  EXPECT_THAT(errors_of(with_body("ld.global.v4.u32 {%r1, %r2 %r3, %r4}, [%rd1];\nmov.u32 %r1, %q;\nret;")),
              ElementsAre("2:28: expected '}', found '%r3'", "3:14: unknown register '%q'"));
  EXPECT_THAT(errors_of(with_body("mov.b64 {%q1, %r2}, %rd1;\n{ mov.u32 %r1, %q; }\nret;")),
              ElementsAre("2:10: unknown register '%q1'", "3:16: unknown register '%q'"));
}

TEST(TextErrors, AFaultInAHeadCostsItsBodyOnly) {
  EXPECT_THAT(
      errors_of(with_head(".entry a(.param .u99 x) { foo; { bar; } baz; }\n.global .u32 x = 1,;\n.entry b { bra Q; }")),
      ElementsAre("2:17: expected type, found '.u99'", "3:20: expected name, found ';'", "4:16: unknown label 'Q'"));
  // The names of a function with an error are removed with it.
  EXPECT_THAT(errors_of(with_head(".func a(.reg .b32 p, .reg .b32 p) { ret; }\n.entry b { mov.b32 p, 1; }")),
              ElementsAre("2:32: duplicate symbol 'p', first at 2:19", "3:20: unknown register 'p'"));
}

TEST(TextErrors, TwentyAreEnough) {
  std::string body;
  for (int i = 0; i < 50; ++i) body += "mov.u32 %q, 1;\n";
  const std::vector<std::string> errors = errors_of(with_body(body));
  ASSERT_EQ(errors.size(), 20u);
  EXPECT_EQ(errors.back(), "21:9: unknown register '%q'");
}

// Flipped bytes and truncated texts: the result is an error or a module, and every error is inside the text.
TEST(TextErrors, DamagedTextsAreErrorsOrModules) {
  const std::string whole = read_data("calls.sm_90.ptx");
  EXPECT_TRUE(prop::check("damaged texts", [&] {
    std::string text = whole.substr(0, prop::uniform<std::size_t>(0, whole.size()));
    const int flips = prop::in_range(0, 4);
    for (int i = 0; i < flips && !text.empty(); ++i) {
      text[prop::uniform<std::size_t>(0, text.size())] = static_cast<char>(prop::uniform(0, 256));
    }
    const Parsed parsed = parse_text(text, "damaged.ptx");
    RC_ASSERT(parsed.errors.size() <= static_cast<std::size_t>(kMostErrors));
    const auto lines = static_cast<std::int32_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    for (const TextError& error : parsed.errors) RC_ASSERT(error.at.line >= 1 && error.at.line <= lines);
  }));
}

}  // namespace
}  // namespace kvscope::ptx::text_errors_test
