// Layouts of kernel parameters, from debug information that nvcc wrote and from headers. The expected offsets are those
// of this file's own compiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "core/base/errors.h"
#include "gpu/virtual/text/parameter_layout.h"
#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/text/data/structs.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::parameter_layout_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// "path offset bytes type", and " pointer".
std::string shown(const ParameterField& f) {
  return f.path + " " + std::to_string(f.offset) + " " + std::to_string(f.bytes) + " " + std::string(name(f.type)) +
         (f.pointer ? " pointer" : "");
}
std::vector<std::string> shown(const ParameterLayout& layout) {
  std::vector<std::string> out;
  for (const ParameterField& f : layout.fields) out.push_back(shown(f));
  return out;
}

#define FIELD(path, type) expected(#path, offsetof(Params, path), sizeof(Params::path), type)
std::string expected(const std::string& path, std::size_t offset, std::size_t bytes, const std::string& type) {
  return path + " " + std::to_string(offset) + " " + std::to_string(bytes) + " " + type;
}

std::vector<std::string> fields_of_params() {
  std::vector<std::string> out{FIELD(out, "u64 pointer"), FIELD(q, "u64 pointer"), FIELD(n, "s32"),
                               FIELD(scale, "f32")};
  for (std::size_t i = 0; i < 3; ++i) {
    out.push_back(expected("strides[" + std::to_string(i) + "]", offsetof(Params, strides) + 8 * i, 8, "s64"));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      const std::string at = "in[" + std::to_string(i) + "][" + std::to_string(j) + "].";
      const std::size_t first = offsetof(Params, in) + (2 * i + j) * sizeof(Inner);
      out.push_back(expected(at + "page", first + offsetof(Inner, page), 2, "s16"));
      out.push_back(expected(at + "base", first + offsetof(Inner, base), 8, "u64 pointer"));
      for (std::size_t k = 0; k < 3; ++k) {
        out.push_back(expected(at + "tail[" + std::to_string(k) + "]", first + offsetof(Inner, tail) + k, 1, "u8"));
      }
    }
  }
  out.insert(out.end(), {FIELD(flag, "u8"), FIELD(weight, "f64"), FIELD(on, "u8"), FIELD(ends, "u16")});
  return out;
}

Module compiled() {
  return parse_module(read_data("structs_debug.sm_90a.ptx"), "structs.ptx");
}
const Function& kernel_like(const Module& module, std::string_view part) {
  for (const Function& f : module.functions) {
    if (f.entry && f.name.find(part) != std::string_view::npos) return f;
  }
  throw std::logic_error("no such kernel");
}

TEST(DebugInfo, GivesNamesTypesAndFieldsOfAKernelsParameters) {
  const Module module = compiled();
  const auto layouts = layouts_from_debug_info(module, kernel_like(module, "plain"));
  ASSERT_THAT(layouts, SizeIs(2));
  EXPECT_EQ(layouts[0].name, "p");
  EXPECT_EQ(layouts[0].type_name, "Params");
  EXPECT_EQ(layouts[0].bytes, static_cast<std::int64_t>(sizeof(Params)));
  EXPECT_EQ(shown(layouts[0]), fields_of_params());
  EXPECT_EQ(layouts[0].find("in[1][0].base")->type_name, "const float*");
  EXPECT_EQ(layouts[0].find("in[1][2].base"), nullptr);
  EXPECT_EQ(layouts[1].name, "a");
  EXPECT_THAT(shown(layouts[1]), ElementsAre(" 0 4 f32"));
}

TEST(DebugInfo, ReadsTemplatesBaseClassesUnionsAndBitFields) {
  const Module module = compiled();
  const auto layouts = layouts_from_debug_info(module, kernel_like(module, "decode"));
  ASSERT_THAT(layouts, SizeIs(3));
  EXPECT_THAT(shown(layouts[0]), ElementsAre("q 0 8 u64 pointer", "rows[0] 8 4 u32", "rows[1] 12 4 u32",
                                             "rows[2] 16 4 u32", "rows[3] 20 4 u32"));
  EXPECT_THAT(shown(layouts[1]), ElementsAre("id 0 4 s32", "word.x 4 4 s32", "word.y 4 4 f32", "low 8 4 ", "high 8 4 ",
                                             "list 16 8 u64 pointer"));
  EXPECT_EQ(layouts[2].name, "n");
}

TEST(DebugInfo, IsEmptyWhereAFileHasNoneOrIsDamaged) {
  const Module plain = parse_body("ret;");
  EXPECT_THAT(layouts_from_debug_info(plain, kernel(plain)), IsEmpty());
  // Every byte of the description in turn becomes 255: the result is empty, or has the sizes of the kernel's parameters.
  const std::string text = read_data("structs_debug.sm_90a.ptx");
  for (std::size_t at = text.find(".debug_abbrev"); (at = text.find("\n.b8 ", at)) != std::string::npos; ++at) {
    std::string damaged = text;
    const std::size_t number = at + 5;
    damaged.replace(number, damaged.find_first_of(",\n", number) - number, "255");
    const Module module = parse_module(damaged, "damaged.ptx");
    for (const Function& f : module.functions) {
      const auto layouts = layouts_from_debug_info(module, f);
      for (std::size_t i = 0; i < layouts.size(); ++i) {
        EXPECT_EQ(layouts[i].bytes, module.variables[static_cast<std::size_t>(f.parameters[i])].bytes);
      }
    }
  }
}

TEST(HeaderLayout, IsThatOfTheCompiler) {
  const auto layout = layout_from_header(read_data("structs.h"), "structs.h", "Params");
  EXPECT_EQ(layout.bytes, static_cast<std::int64_t>(sizeof(Params)));
  EXPECT_EQ(shown(layout), fields_of_params());
}

TEST(HeaderLayout, ReadsTheTypesOfCuda) {
  const auto layout = layout_from_header(
      "#include <cuda.h>\n/* a\n b */\nnamespace attention {\nusing Index = unsigned long long;\n"
      "typedef struct { half x; __nv_bfloat16 y; } Pair;\n"
      "struct alignas(32) Params { char first = 0; float4 f; dim3 grid; uint2 u; const Pair pair[2], *more; Index "
      "i{1};\n"
      "  unsigned int* const* __restrict__ deep; long last; };\n}",
      "p.h", "Params");
  EXPECT_THAT(shown(layout),
              ElementsAre("first 0 1 s8", "f.x 16 4 f32", "f.y 20 4 f32", "f.z 24 4 f32", "f.w 28 4 f32",
                          "grid.x 32 4 u32", "grid.y 36 4 u32", "grid.z 40 4 u32", "u.x 48 4 u32", "u.y 52 4 u32",
                          "pair[0].x 56 2 f16", "pair[0].y 58 2 bf16", "pair[1].x 60 2 f16", "pair[1].y 62 2 bf16",
                          "more 64 8 u64 pointer", "i 72 8 u64", "deep 80 8 u64 pointer", "last 88 8 s64"));
  EXPECT_EQ(layout.bytes, 96);
}

// Where a comment, a directive or a qualifier may be.
TEST(HeaderLayout, SkipsWhatIsNoPartOfTheLayout) {
  const auto layout = layout_from_header(
      "#define JOINED \\\n  more { of it } \\\n  and the end\n#pragma once\n// a comment that goes on \\\n struct X {\n"
      "namespace a::b {\nstruct Params {\n  ; mutable int x = 1, y{2}, z = f(1, g{2, 3}); /* int no; */ // int no;\n"
      "  const volatile float* __restrict__ p; short* restrict q;\n};\n};\n;\n// no newline, and the file ends \\",
      "p.h", "");
  EXPECT_EQ(layout.type_name, "Params") << "the only struct";
  EXPECT_THAT(shown(layout),
              ElementsAre("x 0 4 s32", "y 4 4 s32", "z 8 4 s32", "p 16 8 u64 pointer", "q 24 8 u64 pointer"));
  EXPECT_EQ(layout.fields[3].type_name, "float*");
}

TEST(HeaderLayout, ReadsEveryTypeByItsName) {
  const auto field = [](const std::string& type) {
    const auto layout = layout_from_header("struct A { char c; " + type + " x; };", "p.h", "A");
    return shown(layout.fields.at(1)) + ", " + std::to_string(layout.bytes);
  };
  EXPECT_EQ(field("unsigned"), "x 4 4 u32, 8");
  EXPECT_EQ(field("signed char"), "x 1 1 s8, 2");
  EXPECT_EQ(field("unsigned char"), "x 1 1 u8, 2");
  EXPECT_EQ(field("short int"), "x 2 2 s16, 4");
  EXPECT_EQ(field("unsigned short"), "x 2 2 u16, 4");
  EXPECT_EQ(field("long const"), "x 8 8 s64, 16");
  EXPECT_EQ(field("unsigned long long int"), "x 8 8 u64, 16");
  EXPECT_EQ(field("std::int32_t"), "x 4 4 s32, 8");
  EXPECT_EQ(field("cuda::std::size_t"), "x 8 8 u64, 16");
  EXPECT_EQ(field("bool"), "x 1 1 u8, 2");
  EXPECT_EQ(field("Opaque*"), "x 8 8 u64 pointer, 16");
  EXPECT_EQ(field("int&"), "x 8 8 u64 pointer, 16");
  const auto named = layout_from_header("using P = const float*; struct A { P p; };", "p.h", "A");
  EXPECT_THAT(shown(named), ElementsAre("p 0 8 u64 pointer"));
  EXPECT_EQ(named.fields[0].type_name, "float*");
  EXPECT_EQ(field("uchar4"), "x.x 4 1 u8, 8");
  EXPECT_EQ(field("float3"), "x.x 4 4 f32, 16");
  EXPECT_EQ(field("double4"), "x.x 16 8 f64, 48");
  EXPECT_EQ(field("struct B { short s; }"), "x.s 2 2 s16, 4");
  EXPECT_EQ(field("struct { short s; }"), "x.s 2 2 s16, 4");
  EXPECT_EQ(field("struct __align__(8) { char s; }"), "x.s 8 1 s8, 16");
  const auto used = layout_from_header("struct B { int i; }; struct A { struct B b; char pad; B* next; };", "p.h", "A");
  EXPECT_THAT(shown(used), ElementsAre("b.i 0 4 s32", "pad 4 1 s8", "next 8 8 u64 pointer"));
  EXPECT_EQ(used.fields[2].type_name, "struct*") << "of one field, its type's name would be taken for the struct's";
}

TEST(HeaderLayout, NamesTheLineOfWhatItCannotRead) {
  const auto fault = [](const std::string& text, const std::string& type = "") -> std::string {
    try {
      static_cast<void>(layout_from_header(text, "p.h", type));
    } catch (const InputError& error) {
      return error.what();
    }
    return "no fault";
  };
  EXPECT_THAT(fault("struct A {\n  int x;\n  Unknown y;\n};"), HasSubstr("line 3: type 'Unknown' is unknown"));
  EXPECT_THAT(fault("struct A { int f(); };"), HasSubstr("'f' is a function or a bit field"));
  EXPECT_THAT(fault("struct A { int x : 3; };"), HasSubstr("'x' is a function or a bit field"));
  EXPECT_THAT(fault("template <int N> struct A { };"), HasSubstr("line 1: 'template' is not part of a plain struct"));
  EXPECT_THAT(fault("struct A { int x[0]; };"), HasSubstr("a number from 1 to 65536, found '0'"));
  EXPECT_THAT(fault("struct A { int x[9999][9999]; };"), HasSubstr("more than 65536 fields"));
  EXPECT_THAT(fault("struct A { int x;"), HasSubstr("found the end of the file"));
  EXPECT_THAT(fault("struct A { static int x; };"), HasSubstr("static member"));
  EXPECT_THAT(fault("struct A { dim4 x; };"), HasSubstr("type 'dim4' is unknown"));
  EXPECT_THAT(fault("struct A { int5 x; };"), HasSubstr("type 'int5' is unknown"));
  EXPECT_THAT(fault("struct A { int0 x; };"), HasSubstr("type 'int0' is unknown"));
  EXPECT_THAT(fault("struct A { half2 x; };"), HasSubstr("type 'half2' is unknown"));
  EXPECT_THAT(fault("struct A { T x; };"), HasSubstr("type 'T' is unknown"));
  // The pointer before it does not give the type a size.
  EXPECT_THAT(fault("struct A {\n  Foo *a, b;\n  int c;\n};"),
              HasSubstr("line 2: member 'b' has a type without size, 'Foo': only pointers to it are possible"));
  EXPECT_THAT(fault("struct A { void *a, b; };"), HasSubstr("member 'b' has a type without size, 'void'"));
  EXPECT_THAT(fault("struct A { Foo *a, b[4], *c; };"), HasSubstr("member 'b' has a type without size, 'Foo'"));
  EXPECT_EQ(fault("struct Empty {}; struct A { Foo *a, **b, *const c; Empty d; int e; };", "A"), "no fault");
  EXPECT_THAT(fault("struct A { struct B b; };"), HasSubstr("struct B is not defined before this line"));
  EXPECT_THAT(fault("struct A { int x; }"), HasSubstr("expected ';', found the end of the file"));
  EXPECT_THAT(fault("struct A { int x = f(1;\n"), HasSubstr("expected ';', found the end of the file"));
  EXPECT_THAT(fault("struct A { int 3; };"), HasSubstr("expected the name of a member, found '3'"));
  EXPECT_THAT(fault("struct A { int x; /* never closed"), HasSubstr("found the end of the file"));
  EXPECT_THAT(fault("struct A { int x"), HasSubstr("expected ';', found the end of the file"));
  EXPECT_THAT(fault("struct A { int x; # };"), HasSubstr("expected a type, found '#'"));
  EXPECT_THAT(fault("struct A { int x[1'000]; };"), HasSubstr("a number from 1 to 65536, found '1'000'"));
  EXPECT_THAT(fault("using A int;"), HasSubstr("expected '=', found 'int'"));
  EXPECT_THAT(fault("typedef Opaque Name;"), HasSubstr("type 'Opaque' is unknown"));
  EXPECT_THAT(fault("struct A { int x[n]; };"), HasSubstr("a number from 1 to 65536, found 'n'"));
  EXPECT_THAT(fault("struct A { int x[65537]; };"), HasSubstr("a number from 1 to 65536, found '65537'"));
  EXPECT_THAT(fault("struct alignas(3) A { int x; };"),
              HasSubstr("line 1: expected alignment, a power of two, found '3'"));
  EXPECT_THAT(fault("struct A { int x; }; struct B { A a; };"), HasSubstr("which struct: it defines A, B"));
  EXPECT_THAT(fault("struct A { int x; };", "C"), HasSubstr("no struct 'C': it defines A"));
  EXPECT_THAT(fault(""), HasSubstr("it defines no struct"));
  // Without a field, no count of fields ends these; the bytes would overflow, and the structs fill the stack.
  EXPECT_THAT(fault("struct E {}; struct A { E e[65536][65536][65536][65536]; };"),
              HasSubstr("more than 1073741824 bytes"));
  EXPECT_THAT(fault("struct E {}; struct A { E e[16384][65536]; E f; };"), HasSubstr("more than 1073741824 bytes"));
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += "struct {";
  EXPECT_THAT(fault(nested), HasSubstr("more than 64 structs in one another"));
  std::string deep = "int x;";
  for (int i = 0; i < 64; ++i) deep = "struct S" + std::to_string(i) + " {" + deep + "}" + (i < 63 ? " m;" : ";");
  EXPECT_EQ(fault(deep, "S63"), "no fault");
}

}  // namespace
}  // namespace kvscope::ptx::parameter_layout_test
