// Notes about launches that are legal and seldom meant.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "gpu/virtual/text/launch_notes.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::launch_notes_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// k(float*, int const*, double*, long const*, unsigned char*, __half*, int), and the same parameters under a C name.
const std::string kTypes = "PfPKiPdPKlPhP6__halfi";

Module module_of(const std::string& name) {
  std::string parameters;
  for (int i = 0; i < 7; ++i) {
    parameters += (i == 0 ? "" : ", ") + std::string(i == 6 ? ".param .u32 p" : ".param .u64 p") + std::to_string(i);
  }
  return parse_items(".visible .entry " + name + "(" + parameters + ") { ret; }\n");
}

std::vector<std::string> notes(const std::string& name, const std::vector<ArrayArgument>& arrays) {
  const Module module = module_of(name);
  return element_notes(module, module.functions.front(), arrays);
}

// A table of i64, as PyTorch makes it, read as int is [5, 0, 6, 0]: a wrong output that no check reports.
TEST(LaunchNotes, ArraysOfOtherElementsThanThePointerAreNamed) {
  EXPECT_THAT(notes("_Z1k" + kTypes, {{0, DType::i32}, {1, DType::i64}, {2, DType::f32}, {3, DType::f64}}),
              ElementsAre("argument 0 has elements of i32, but the kernel takes float*: pass f32",
                          "argument 1 has elements of i64, but the kernel takes int const*: pass i32",
                          "argument 2 has elements of f32, but the kernel takes double*: pass f64",
                          "argument 3 has elements of f64, but the kernel takes long const*: pass i64"));
}

// Bytes have several types in C++, and halves several of 16 bits; a scalar parameter that is given an array is another fault.
TEST(LaunchNotes, ElementsOfTheirSizeAndKindHaveNoNote) {
  EXPECT_THAT(notes("_Z1k" + kTypes, {{0, DType::f32}, {1, DType::u32}, {2, DType::f64}, {3, DType::u64}}), IsEmpty());
  EXPECT_THAT(notes("_Z1k" + kTypes, {{4, DType::f32}, {5, DType::bf16}, {6, DType::i64}, {7, DType::i64}}), IsEmpty());
}

// An array of f32, as NumPy makes it, read as halves is [0, 1, 0, 2]. Bits of halves come in integers of any width that has
// whole halves, up to a pair.
TEST(LaunchNotes, ArraysForHalvesHaveElementsOf16BitsOrOfAPair) {
  for (const auto& [mangled, type, pass] :
       {std::tuple{"6__half", "__half*", "f16"}, std::tuple{"7__half2", "__half2*", "f16"},
        std::tuple{"13__nv_bfloat16", "__nv_bfloat16*", "bf16"},
        std::tuple{"14__nv_bfloat162", "__nv_bfloat162*", "bf16"},
        std::tuple{"K13__nv_bfloat16", "__nv_bfloat16 const*", "bf16"}}) {
    const Module module = parse_items(fmt::format(".visible .entry _Z1kP{}(.param .u64 p0) {{ ret; }}", mangled));
    const auto note = [&](DType dtype) { return element_notes(module, module.functions.front(), {{0, dtype, "x"}}); };
    for (const DType dtype : {DType::f16, DType::bf16, DType::i16, DType::u16, DType::i32, DType::u32})
      EXPECT_THAT(note(dtype), IsEmpty()) << type << ' ' << name(dtype);
    for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::u64, DType::u8, DType::e4m3, DType::e2m1})
      EXPECT_THAT(note(dtype),
                  ElementsAre(fmt::format("argument 0 (x) has elements of {}, but the kernel takes {}: pass {}",
                                          name(dtype), type, pass)));
  }
}

// Each type of 4 or 8 bytes, alone, and behind a parameter whose template arguments have a comma and brackets.
TEST(LaunchNotes, EachTypeOfCIsNamedAsTheSourceHasIt) {
  struct Case {
    const char *mangled, *type, *pass;
    DType right, wrong;
  };
  for (const Case& c :
       {Case{"f", "float", "f32", DType::f32, DType::f64}, Case{"d", "double", "f64", DType::f64, DType::i64},
        Case{"i", "int", "i32", DType::i32, DType::i64}, Case{"j", "unsigned int", "i32", DType::u32, DType::f32},
        Case{"l", "long", "i64", DType::i64, DType::i32}, Case{"m", "unsigned long", "i64", DType::u64, DType::u32},
        Case{"x", "long long", "i64", DType::i64, DType::f64},
        Case{"y", "unsigned long long", "i64", DType::u64, DType::u16},
        Case{"VKf", "float const volatile", "f32", DType::f32, DType::f16}}) {
    const std::string alone = std::string("_Z1kP") + c.mangled;
    const std::string behind = std::string("_Z1kPN2ns1fILi1ENS_1gIiEEEEP") + c.mangled;  // ns::f<1, ns::g<int> >*
    for (const std::size_t at : {0, 1}) {
      const std::string params = at == 0 ? ".param .u64 p0" : ".param .u64 p0, .param .u64 p1";
      const Module module = parse_items(".visible .entry " + (at == 0 ? alone : behind) + "(" + params + ") { ret; }");
      const Function& kernel = module.functions.front();
      EXPECT_THAT(element_notes(module, kernel, {{at, c.right}}), IsEmpty()) << c.type;
      EXPECT_THAT(element_notes(module, kernel, {{at, c.wrong}}),
                  ElementsAre(fmt::format("argument {} has elements of {}, but the kernel takes {}*: pass {}", at,
                                          name(c.wrong), c.type, c.pass)));
    }
  }
}

// An array is the value of such a parameter, not what a pointer points to.
TEST(LaunchNotes, AParameterOfBytesHasNoNote) {
  const Module module = parse_items(".visible .entry _Z1kPi(.param .align 8 .b8 p[8]) { ret; }");
  EXPECT_THAT(element_notes(module, module.functions.front(), {{0, DType::f64}}), IsEmpty());
}

TEST(LaunchNotes, ANameWithoutTypesHasNoNote) {
  EXPECT_THAT(notes("k", {{1, DType::i64}}), IsEmpty());
}

TEST(LaunchNotes, AMissingBlockIsNotedIfTheKernelHasThreads) {
  EXPECT_EQ(missing_block_note(parse_body("mov.u32 %r1, %tid.x;"), "--block"),
            "--block is not given, so that a CTA has 1 thread: pass the threads that your program launches");
  EXPECT_EQ(missing_block_note(parse_body("mov.u32 %r1, %ctaid.x;"), "--block"), std::nullopt);
}

}  // namespace
}  // namespace kvscope::ptx::launch_notes_test
