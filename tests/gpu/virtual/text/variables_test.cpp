// Variables: type, size, alignment, initial bytes; declarations that ptxas rejects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::variables_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The only variable with that name, in any scope.
const Variable& variable(const Module& m, std::string_view name) {
  for (const Variable& v : m.variables) {
    if (v.name == name) return v;
  }
  throw std::out_of_range("no such variable");
}

std::vector<std::int64_t> values(const Variable& v) {
  std::vector<std::int64_t> all;
  for (const InitItem& item : v.init) all.push_back(item.value);
  return all;
}

TEST(Variables, SizeAndAlignmentFollowTypeAndExtents) {
  const Module m = parse_items(
      ".visible .global .align 16 .b8 a[3][5];\n.const .u64 b;\n.global .v4 .f32 c[2], d;\n"
      ".extern .shared .align 1024 .b8 e[];\n.shared .b128 f;\n.weak .global .s16 g;");
  EXPECT_EQ(variable(m, "a").bytes, 15);
  EXPECT_EQ(variable(m, "a").align, 16);
  EXPECT_THAT(variable(m, "a").extents, ElementsAre(3, 5));
  EXPECT_EQ(variable(m, "a").linkage, Linkage::visible);
  EXPECT_EQ(variable(m, "b").align, 8);
  EXPECT_EQ(variable(m, "b").space, Space::constant);
  EXPECT_EQ(variable(m, "c").bytes, 32);
  EXPECT_EQ(variable(m, "c").align, 16);
  EXPECT_EQ(variable(m, "d").bytes, 16);
  EXPECT_EQ(variable(m, "e").bytes, 0);
  EXPECT_THAT(variable(m, "e").extents, ElementsAre(0));
  EXPECT_EQ(variable(m, "e").linkage, Linkage::external);
  EXPECT_EQ(variable(m, "f").bytes, 16);
  EXPECT_EQ(variable(m, "g").linkage, Linkage::weak);
  EXPECT_EQ(m.find_variable("d"), 3);
  EXPECT_EQ(m.variables[3].at, (TextPlace{4, 24}));
}

TEST(Variables, NumbersTakeTheVariablesType) {
  const Module m = parse_items(
      ".global .f32 a = 1.5;\n.global .f64 b = 1.5;\n.global .f32 c = 0d3FF8000000000000;\n"
      ".global .f64 d = 0f3FC00000;\n.global .b32 e = 1.5;\n.global .u8 f = -1;\n.global .f32 g = -0.0;");
  EXPECT_THAT(values(variable(m, "a")), ElementsAre(0x3fc00000));
  EXPECT_THAT(values(variable(m, "b")), ElementsAre(0x3ff8000000000000));
  EXPECT_THAT(values(variable(m, "c")), ElementsAre(0x3fc00000));
  EXPECT_THAT(values(variable(m, "d")), ElementsAre(0x3ff8000000000000));
  EXPECT_THAT(values(variable(m, "e")), ElementsAre(0x3fc00000));
  EXPECT_THAT(values(variable(m, "f")), ElementsAre(-1));
  EXPECT_THAT(values(variable(m, "g")), ElementsAre(0x80000000));
}

// An incomplete row must not shift the next row.
TEST(Variables, ShortBracesAreFilledWithZeros) {
  const Module m = parse_items(
      ".global .b32 a[2][3] = {{1}, {2, 3}};\n.global .b8 b[8] = {1, 2};\n.global .b32 c[2][2][2] = {{{1}}, {{2}, "
      "{3}}};"
      "\n.global .v2 .b32 d[2] = {{1, 2}, {3, 4}};\n.global .b32 e[2] = {};");
  EXPECT_THAT(values(variable(m, "a")), ElementsAre(1, 0, 0, 2, 3, 0));
  EXPECT_THAT(values(variable(m, "b")), ElementsAre(1, 2));
  EXPECT_THAT(values(variable(m, "c")), ElementsAre(1, 0, 0, 0, 2, 0, 3, 0));
  EXPECT_THAT(values(variable(m, "d")), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values(variable(m, "e")), IsEmpty());
}

TEST(Variables, AnOpenExtentIsAsLongAsItsBraces) {
  const Module m = parse_items(".global .u16 a[] = {1, 2, 3};\n.global .u16 b[][4] = {{1}, {2}};");
  EXPECT_EQ(variable(m, "a").bytes, 6);
  EXPECT_THAT(variable(m, "a").extents, ElementsAre(3));
  EXPECT_EQ(variable(m, "b").bytes, 16);
}

TEST(Variables, AddressesAreKeptAsSymbolAndOffset) {
  const Module m = parse_items(
      ".func f();\n.global .u32 x[4];\n.global .u64 p[4] = {x, generic(x)+8, f, x+2*4};\n"
      ".global .b8 bytes[3] = {0xFF(x), 0xFF00(generic(x)), 7};");
  const std::vector<InitItem>& p = variable(m, "p").init;
  ASSERT_EQ(p.size(), 4u);
  EXPECT_EQ(p[0].kind, InitItem::Kind::variable);
  EXPECT_EQ(p[0].index, 0);
  EXPECT_EQ(p[1].kind, InitItem::Kind::generic_variable);
  EXPECT_EQ(p[1].value, 8);
  EXPECT_EQ(p[2].kind, InitItem::Kind::function);
  EXPECT_EQ(p[2].index, m.find_function("f"));
  EXPECT_EQ(p[3].value, 8);
  const std::vector<InitItem>& bytes = variable(m, "bytes").init;
  EXPECT_EQ(bytes[0].byte_mask, 1);
  EXPECT_EQ(bytes[1].byte_mask, 2);
  EXPECT_EQ(bytes[1].kind, InitItem::Kind::generic_variable);
  EXPECT_EQ(bytes[2].byte_mask, 0);
}

TEST(Variables, ADefinitionTakesThePlaceOfItsExtern) {
  const Module m = parse_items(
      ".extern .global .b32 x;\n.global .u64 p = x;\n.visible .global .b32 x = 5;\n.extern .global .b32 x;\n"
      ".weak .global .b32 w = 1;\n.weak .global .b32 w = 2;");
  ASSERT_EQ(m.variables.size(), 3u);
  EXPECT_EQ(variable(m, "x").linkage, Linkage::visible);
  EXPECT_THAT(values(variable(m, "x")), ElementsAre(5));
  EXPECT_EQ(variable(m, "p").init[0].index, m.find_variable("x"));
  EXPECT_THAT(values(variable(m, "w")), ElementsAre(1));  // of weak ones the first counts
}

TEST(Variables, TexturesAreDeclaredWithoutBytes) {
  const Module m = parse_items(".global .texref t;\n.global .samplerref s;\n.global .surfref u;");
  EXPECT_EQ(variable(m, "s").opaque, "samplerref");
  EXPECT_EQ(variable(m, "s").bytes, 0);
  EXPECT_EQ(variable(m, "t").type, Type::none);
}

TEST(Variables, AttributesAreSkippedPointersKept) {
  const Module m = parse_items(
      ".visible .global .attribute(.managed) .align 4 .u32 m = 3;\n"
      ".entry k(.param .u64 .ptr .shared .align 16 p, .param .u64 .ptr q, .param .u64 r) { ret; }");
  EXPECT_EQ(variable(m, "m").bytes, 4);
  EXPECT_EQ(variable(m, "p").pointer_space, Space::shared);
  EXPECT_EQ(variable(m, "p").pointer_align, 16);
  EXPECT_EQ(variable(m, "p").align, 8);  // its own alignment: .align after .ptr is that of the target
  EXPECT_EQ(variable(m, "q").pointer_align, 4);
  EXPECT_EQ(variable(m, "r").pointer_align, 0);
}

TEST(Variables, FaultsNameWhatIsWrong) {
  const struct {
    const char* text;
    const char* error;
  } rows[] = {
      {".global .align 3 .b32 a;", "2:16: alignment 3 is no power of two up to 1048576"},
      {".global a;", "2:9: expected type, found 'a'"},
      {".global .u33 a;", "2:9: expected type, found '.u33'"},
      {".global .u32 .u32 a;", "2:14: expected name, found '.u32'"},
      {".global .tf32 a;", "2:9: expected type, found '.tf32'"},
      {".global .pred a;", "2:15: type .pred is for registers only"},
      {".global .u32 a[0];", "2:16: extent 0 is outside [1, 4294967296]"},
      {".global .u32 a[2][];", "2:19: only the first extent may be left open"},
      {".global .u32 a[];", "2:14: 'a' has no size: only an .extern variable may be open"},
      {".global .u64 a[4294967296];", "2:14: 'a' has more than 4294967296 bytes"},
      {".global .u8 a[65536][65537];", "2:22: 'a' has more than 4294967296 bytes"},
      {".local .u32 a;", "2:1: a '.local' variable belongs in a body"},
      {".param .u32 a;", "2:1: a '.param' variable belongs in a body"},
      {".reg .u32 a;", "2:1: unknown directive '.reg'"},
      {".global .u32 a; .global .u32 a;", "2:30: duplicate symbol 'a', first at 2:14"},
      {".shared .u32 a = 1;", "2:18: no initial value in space .shared"},
      {".global .f16 a = 1.0;", "2:18: no initial value for type .f16"},
      {".global .f32 a = 1;", "2:18: an integer for '.f32 a', expected a number as in 1.5"},
      {".global .u32 a = 1.5;", "2:18: a floating-point number for '.u32 a'"},
      {".global .b16 a = 1.5;", "2:18: a floating-point number for '.b16 a'"},
      {".global .u32 a = {1};", "2:18: expected initializer, found '{'"},
      {".global .u32 a[2] = 1;", "2:21: expected '{', found '1'"},
      {".global .u32 a[2] = {1, 2, 3};", "2:28: 'a': more than 2 initializers"},
      {".global .u32 a[2][3] = {1, 2};", "2:25: expected '{', found '1'"},
      {".global .u32 a[2] = {1, };", "2:25: expected initializer, found '}'"},
      {".global .v4 .f32 a = {1.0, 2.0};", "2:23: 'a': 2 initializers of a vector of 4"},
      {".global .u64 a = b;", "2:18: unknown symbol 'b'"},
      {".global .u32 b; .global .u8 a = 0xFFFF(b);", "2:33: mask 0xffff is not one byte of an address"},
      {".global .u32 a[1000000][1000000] = {{1}};", "2:25: 'a' has more than 4294967296 bytes"},
      {".global .u8 a[2000][2000000] = {{1},{2}};", "2:34: 'a': braces leave more than 1048576 zeros to fill in"},
      {".foo;", "2:1: unknown directive '.foo'"},
      {"global .u32 a;", "2:1: expected directive, found 'global'"},
      {".visible .extern .global .u32 a;", "2:10: unknown directive '.extern'"},
  };
  for (const auto& row : rows) EXPECT_THAT(errors_of(with_head(row.text)), ElementsAre(row.error)) << row.text;
}

}  // namespace
}  // namespace kvscope::ptx::variables_test
