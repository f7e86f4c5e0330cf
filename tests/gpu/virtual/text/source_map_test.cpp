// Source places of statements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::source_map_test {
namespace {

using testing::ElementsAre;

// "file:line:column function <- the calling frame", innermost first.
std::string chain(const Module& m, std::size_t statement) {
  std::string text;
  for (std::int32_t i = kernel(m).body.at(statement).frame; i >= 0;) {
    const Frame& f = m.frames.at(static_cast<std::size_t>(i));
    if (!text.empty()) text += " <- ";
    text += std::to_string(f.file) + ":" + std::to_string(f.line) + ":" + std::to_string(f.column);
    if (!f.function.empty()) text += " " + std::string(f.function);
    i = f.outer;
  }
  return text;
}

constexpr const char* kNames =
    ".section .debug_str {\n$L__info_string0:\n.b8 108,111,97,100,0\n$L__info_string1: .b8 115,113,0 // sq\n}\n";

TEST(SourceMap, APlaceHoldsUntilTheNext) {
  const Module m = parse_body("ret;\n.loc 1 7 3\nret; ret;\n.loc 2 9 1\nret;");
  EXPECT_EQ(kernel(m).body[0].frame, -1);
  EXPECT_EQ(chain(m, 1), "1:7:3");
  EXPECT_EQ(chain(m, 2), "1:7:3");
  EXPECT_EQ(chain(m, 3), "2:9:1");
}

TEST(SourceMap, EveryFunctionBeginsWithoutAPlace) {
  const Module m = parse_items(".func f() { .loc 1 1 1\nret; }\n.entry k { ret; }");
  EXPECT_EQ(kernel(m).body[0].frame, -1);
}

// As written by LLVM 21 for Triton 3.9. A second block begins anew, in the same line too.
TEST(SourceMap, OnlyTheFirstPlaceInABlockOfInlineAssemblyCounts) {
  const Module m = parse_body(
      ".loc 1 19 40\nadd;\n.loc 1 19 32\n// begin inline asm\n.loc 1 19 32\nmov;\n.loc 1 20 32\nld;\n// end inline "
      "asm\ncvt;\n.loc 1 20 5\n// begin inline asm\n.loc 1 20 5\nst;\n// end inline asm\n.loc 1 21 1\nret;");
  EXPECT_EQ(chain(m, 1), "1:19:32");
  EXPECT_EQ(chain(m, 2), "1:19:32");
  EXPECT_EQ(chain(m, 3), "1:19:32");
  EXPECT_EQ(chain(m, 4), "1:20:5");
  EXPECT_EQ(chain(m, 5), "1:21:1");
}

// As written by nvcc: each outer place directly before the inner one; the names at the end of the file.
TEST(SourceMap, InlinedCallsAreChains) {
  const Module m = parse_items(
      std::string(".entry k {\n.loc 1 15 3\n"
                  ".loc 1 4 3, function_name $L__info_string0, inlined_at 1 15 3\nadd;\n"
                  ".loc 2 2 73, function_name $L__info_string1, inlined_at 1 4 3\nmul;\n.loc 1 15 3\nret;\n}\n") +
      kNames);
  EXPECT_EQ(chain(m, 0), "1:4:3 load <- 1:15:3");
  EXPECT_EQ(chain(m, 1), "2:2:73 sq <- 1:4:3 load <- 1:15:3");
  EXPECT_EQ(chain(m, 2), "1:15:3");
  EXPECT_EQ(m.frames.size(), 3u);
}

// Would catch a search for the first matching .loc: the same helper line is inside two callers.
TEST(SourceMap, TheOuterPlaceIsTheMostRecentOfItsTriple) {
  const Module m =
      parse_items(std::string(".entry k {\n.loc 1 10 1\n.loc 2 5 5, function_name $L__info_string0, inlined_at 1 10 1\n"
                              ".loc 3 1 1, function_name $L__info_string1, inlined_at 2 5 5\nadd;\n"
                              ".loc 1 20 1\n.loc 2 5 5, function_name $L__info_string0, inlined_at 1 20 1\n"
                              ".loc 3 1 1, function_name $L__info_string1, inlined_at 2 5 5\nadd;\n"
                              ".loc 1 10 1\n.loc 2 5 5, function_name $L__info_string0, inlined_at 1 10 1\n"
                              ".loc 3 1 1, function_name $L__info_string1, inlined_at 2 5 5\nadd;\n}\n") +
                  kNames);
  EXPECT_EQ(chain(m, 0), "3:1:1 sq <- 2:5:5 load <- 1:10:1");
  EXPECT_EQ(chain(m, 1), "3:1:1 sq <- 2:5:5 load <- 1:20:1");
  EXPECT_EQ(chain(m, 2), chain(m, 0));
  EXPECT_EQ(kernel(m).body[2].frame, kernel(m).body[0].frame);  // equal places share one frame
}

TEST(SourceMap, AnOuterPlaceWithoutALocHasNoFurtherCaller) {
  const Module m = parse_items(
      std::string(".entry k {\n.loc 2 5 5, function_name $L__info_string0+1, inlined_at 9 8 7\nadd;\n}\n") + kNames);
  EXPECT_EQ(chain(m, 0), "2:5:5 oad <- 9:8:7");  // the name begins one byte later
}

TEST(SourceMap, LineZeroKeepsThePlaceBefore) {
  const Module m = parse_body(".loc 1 0 0\nret;\n.loc 1 7 3\nret;\n.loc 1 0 0\nret;");
  EXPECT_EQ(chain(m, 0), "1:0:0");
  EXPECT_EQ(chain(m, 2), "1:7:3");
}

TEST(SourceMap, NamesThatAreNotThereAreEmpty) {
  const Module m = parse_body(".loc 1 1 1\n.loc 2 5 5, function_name $L__x, inlined_at 1 1 1\nadd;");
  EXPECT_EQ(chain(m, 0), "2:5:5 <- 1:1:1");
}

TEST(SourceMap, FaultsNameWhatIsMissing) {
  EXPECT_THAT(
      errors_of(with_body(".loc 1 2;\n.loc 1 2 3, foo 3;")),
      ElementsAre("2:9: expected number, found ';'", "3:13: expected function_name or inlined_at, found 'foo'"));
  EXPECT_THAT(errors_of(with_head(".file 1;")), ElementsAre("2:8: expected file name in quotes, found ';'"));
  EXPECT_THAT(errors_of(with_head(".section .debug_str {")), ElementsAre("2:21: '{' without its '}'"));
}

// Output of nvcc: square inlined in norm inlined in the kernel.
TEST(SourceMap, ReadsNvccsLineInfo) {
  const Module m = parse_module(read_data("inlining.sm_90a.ptx"), "inlining.ptx");
  const Function& f = m.functions.at(0);
  for (const Statement& s : f.body) {
    if (s.opcode != "mul.f32") continue;
    const Frame& square = m.frames.at(static_cast<std::size_t>(s.frame));
    EXPECT_EQ(square.function, "_Z6squaref");
    EXPECT_EQ(m.file_of(square), "inlining.cu");
    const Frame& norm = m.frames.at(static_cast<std::size_t>(square.outer));
    EXPECT_EQ(norm.function, "_Z4normPKf");
    EXPECT_EQ(m.frames.at(static_cast<std::size_t>(norm.outer)).line, 15);
    return;
  }
  FAIL() << "no mul.f32";
}

}  // namespace
}  // namespace kvscope::ptx::source_map_test
