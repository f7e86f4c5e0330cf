// Kernels found by mangled and demangled names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/virtual/text/kernel_names.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::kernel_names_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// ns::kern<4, float>(float*, int), ns::kern<8, float>(float*, int), other::kern(int), kernel2, and a function.
const char* const kKernels =
    ".visible .entry _ZN2ns4kernILi4EfEEvPT0_i() { ret; }\n.visible .entry _ZN2ns4kernILi8EfEEvPT0_i() { ret; }\n"
    ".visible .entry _ZN5other4kernEi() { ret; }\n.visible .entry kernel2() { ret; }\n.func kern() { ret; }\n";

std::vector<std::string> found(const std::string& asked) {
  const Module module = parse_items(kKernels);
  std::vector<std::string> out;
  for (const std::int32_t f : find_kernels(module, asked)) {
    out.push_back(demangled(module.functions[static_cast<std::size_t>(f)].name));
  }
  return out;
}

TEST(KernelNames, AnyFormOfANameFindsItsKernel) {
  const std::string four = "void ns::kern<4, float>(float*, int)";
  for (const char* word : {"_ZN2ns4kernILi4EfEEvPT0_i", "void ns::kern<4, float>(float*, int)", "ns::kern<4, float>",
                           "ns::kern<4,float>", "kern<4, float>", "ns::kern<4", "kern<4"}) {
    EXPECT_THAT(found(word), ElementsAre(four)) << word;
  }
  EXPECT_THAT(found("\tns::kern< 4 , float >"), ElementsAre(four));
  EXPECT_THAT(found("other::kern"), ElementsAre("other::kern(int)"));
  EXPECT_THAT(found("other"), ElementsAre("other::kern(int)"));
  EXPECT_THAT(found("kernel2"), ElementsAre("kernel2"));
  EXPECT_THAT(found("kerne"), ElementsAre("kernel2"));
}

TEST(KernelNames, TheMostExactFormWins) {
  // other::kern is exactly kern without its scope; ns::kern<4> needs its arguments removed as well.
  EXPECT_THAT(found("kern"), ElementsAre("other::kern(int)"));
  EXPECT_THAT(found("ns::kern"),
              ElementsAre("void ns::kern<4, float>(float*, int)", "void ns::kern<8, float>(float*, int)"));
}

// Of each name: mangled, demangled, without parameters, without scopes, and both without template arguments.
TEST(KernelNames, FormsLeaveOutMoreAndMore) {
  EXPECT_THAT(name_forms("_ZN2ns4kernINS_1TIiEEEEvv"),
              ElementsAre("_ZN2ns4kernINS_1TIiEEEEvv", "void ns::kern<ns::T<int> >()", "ns::kern<ns::T<int> >",
                          "kern<ns::T<int> >", "ns::kern", "kern"));
  EXPECT_THAT(name_forms("_ZN12_GLOBAL__N_14kernEi"),
              ElementsAre("_ZN12_GLOBAL__N_14kernEi", "(anonymous namespace)::kern(int)", "(anonymous namespace)::kern",
                          "kern", "(anonymous namespace)::kern", "kern"));
  EXPECT_THAT(name_forms("_Z4kernILi2EXsr3std1vEEvPFivE"), testing::SizeIs(6));
  EXPECT_THAT(name_forms("kern<4"), ElementsAre("kern<4", "kern<4", "kern<4", "kern<4", "kern", "kern"));
}

// The shortest form that is one kernel's alone; functions and declarations are no kernels.
TEST(KernelNames, TheShortNameIsUniqueAmongTheKernels) {
  const std::string text = std::string(kKernels) + ".visible .entry kernel3();\n";
  const Module module = parse_items(text);
  std::vector<std::string> names;
  for (std::int32_t f = 0; f < 4; ++f) names.push_back(short_name(module, f));
  EXPECT_THAT(names, ElementsAre("kern<4, float>", "kern<8, float>", "other::kern", "kernel2"));
  EXPECT_THAT(find_kernels(module, "kernel3"), IsEmpty()) << "it has no body";
}

TEST(KernelNames, UnknownNamesFindNothing) {
  EXPECT_THAT(found("decode"), IsEmpty());
  EXPECT_THAT(found(""), IsEmpty());
  EXPECT_EQ(demangled("not_mangled"), "not_mangled");
  EXPECT_EQ(demangled("_Znonsense"), "_Znonsense");
}

TEST(KernelNames, VariablesHaveTheNameOfTheirSource) {
  EXPECT_EQ(declared_name("_ZZ10no_barrierE4tile"), "tile");
  EXPECT_EQ(declared_name("not_mangled"), "not_mangled");
  EXPECT_EQ(declared_name("a::b.npy"), "a::b.npy") << "the name of a file";
  EXPECT_EQ(declared_name("_Z5scaleIN2ns1TEE"), "scale<ns::T>") << "the scope of an argument is not the variable's";
  EXPECT_EQ(declared_name("_ZN2ns5tableE"), "table");
  EXPECT_EQ(declared_name("_ZZN2ns4kernILi4EfEEvPT0_iE4tile_0"), "tile");
  // Longer than the C++ runtime demangles, as in CUTLASS: the identifier is the last part.
  const std::string scope = "_ZZN7cutlass13device_kernelI" + std::string(1200, 'i') + "EEvPf";
  EXPECT_EQ(declared_name(scope + "E4tEst"), "tEst");
  EXPECT_EQ(declared_name(scope + "E4tile_12"), "tile");
  EXPECT_EQ(declared_name(scope + "E4tile_"), "tile");
  EXPECT_EQ(declared_name(scope + "E9tile"), scope + "E9tile") << "no identifier has this length";
  EXPECT_EQ(declared_name(scope + "E4tiles"), scope + "E4tiles") << "more than the identifier";
  EXPECT_EQ(declared_name(scope + "E4tile_s"), scope + "E4tile_s") << "a suffix that is no number";
  EXPECT_EQ(declared_name("_ZZ9"), "_ZZ9");
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// The C++ runtime rejects names of more than 1024 characters. CUTLASS's kernels have up to several thousand.
TEST(KernelNames, NamesThatAreTooLongAreCutAtTheirTemplateArguments) {
  const auto kernel = [](int arguments) {
    return "_ZN7cutlass13device_kernelI" + repeated("Li1E", arguments) + "EEvPf";
  };
  EXPECT_EQ(demangled(kernel(2)), "void cutlass::device_kernel<1, 1>(float*)");
  const std::string whole = demangled(kernel(248));  // of 1024 characters
  EXPECT_EQ(whole, "void cutlass::device_kernel<" + repeated("1, ", 247) + "1>(float*)");
  EXPECT_EQ(kernel(248).size(), 1024U);
  EXPECT_EQ(demangled(kernel(249)), "cutlass::device_kernel<...>");
  EXPECT_EQ(demangled("_Z6kernelI" + repeated("Li1E", 300) + "EvPf"), "kernel<...>");
  EXPECT_EQ(demangled("_ZN12_GLOBAL__N_16kernelI" + repeated("Li1E", 300) + "EEvPf"),
            "(anonymous namespace)::kernel<...>");
  // Not a name: a length past the end, and none at all.
  const std::string wrong = "_ZN99999999999999999999kern" + repeated("x", 1024), none = "_Z" + repeated("x", 1024);
  EXPECT_EQ(demangled(wrong), wrong);
  EXPECT_EQ(demangled(none), none);
  const std::string plain = "_Z1100" + repeated("x", 1100);
  EXPECT_EQ(demangled(plain), repeated("x", 1100)) << "without arguments";
  EXPECT_EQ(demangled(plain + "v"), repeated("x", 1100));
  EXPECT_EQ(demangled("_Z" + repeated("9", 1100)), "_Z" + repeated("9", 1100)) << "a length without an end";
  EXPECT_EQ(demangled(plain + "$9"), repeated("x", 1100)) << "no length";
  EXPECT_EQ(demangled(plain + "1"), plain + "1") << "the length of nothing";
  EXPECT_EQ(demangled("_Z1100$" + repeated("x", 1099)), "$" + repeated("x", 1099));

  const std::string text = ".visible .entry " + kernel(400) + "() { ret; }\n.visible .entry other() { ret; }\n";
  const Module module = parse_items(text);
  EXPECT_EQ(short_name(module, 0), "device_kernel");
  for (const char* word : {"device_kernel", "cutlass::device_kernel", "cutlass::dev", "device_kernel<...>"})
    EXPECT_THAT(find_kernels(module, word), ElementsAre(0)) << word;
}

// Template arguments have brackets too, and the return type of a template precedes the name.
TEST(KernelNames, TheTypesOfParametersAreTheLastBracket) {
  EXPECT_EQ(parameter_list("_Z5scalePfPKfi"), "(float*, float const*, int)");
  EXPECT_EQ(parameter_list("_ZN2ns4kernILi4EfEEvPT0_i"), "(float*, int)");
  EXPECT_EQ(parameter_list("_Z1kIPFiiEEvT_"), "(int (*)(int))");
  EXPECT_EQ(parameter_list("_Z1kv"), "()");
  EXPECT_EQ(parameter_list("scale"), "");
  EXPECT_EQ(parameter_list("_ZN2ns5tableE"), "") << "a variable";
  EXPECT_EQ(parameter_list("_Z2a)"), "") << "a bracket of the identifier";
}

}  // namespace
}  // namespace kvscope::ptx::kernel_names_test
