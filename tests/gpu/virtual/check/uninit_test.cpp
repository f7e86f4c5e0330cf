// Registers and local bytes that are used before they are written; reads that compilers emit on purpose are clean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::uninit_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr CheckOptions kRegisters{
    .init = false, .race = {.races = false, .proxy = false}, .uninit_regs = true, .uninit_local = false};
constexpr CheckOptions kLocal{
    .init = false, .race = {.races = false, .proxy = false}, .uninit_regs = false, .uninit_local = true};

// The body, then a store of %r9 to global memory.
// Lanes may store different values: the machine's report of that is left out.
std::vector<std::string> said(const std::string& body) {
  const Seen seen = watch({.body = body + "\nst.global.u32 [%rd0], %r9;", .threads = 32, .checks = kRegisters});
  std::vector<std::string> out;
  for (const Report& report : seen.result.reports) {
    if (report.kind == ReportKind::uninitialized) out.push_back(line_of(report));
  }
  return out;
}

TEST(UninitRegisters, NamesTheRegisterItsReadAndItsUse) {
  const Seen seen = watch({.body = "@%p1 mov.u32 %r4, 1;\nadd.u32 %r5, %r4, %r0;\nst.global.u32 [%rd0], %r5;",
                           .threads = 32,
                           .checks = kRegisters});
  EXPECT_THAT(seen.text, HasSubstr("  read   thread 1 (warp 0 lane 1)  add.u32"));
  EXPECT_THAT(seen.text, HasSubstr("  used   thread 1 (warp 0 lane 1)  st.global.u32"));
  EXPECT_THAT(seen.text, HasSubstr("  the value is stored to global memory: nothing had written %r4 in this lane"));
  EXPECT_THAT(watch({.body = "st.global.u32 [%rd0], %r4;", .checks = {.init = false}}).races, IsEmpty());
}

TEST(UninitRegisters, ACopyThatNothingUsesIsClean) {
  EXPECT_THAT(said("mov.u32 %r5, %r4;\nadd.u32 %r6, %r5, 1;\nmov.u32 %r9, 0;"), IsEmpty());
}

TEST(UninitRegisters, BranchesThatTogetherWriteAllLanesAreClean) {
  EXPECT_THAT(said("@%p2 mov.u32 %r4, 1;\n@!%p2 mov.u32 %r4, 2;\nadd.u32 %r5, %r4, 1;\n@%p1 bra E;\n"
                   "mov.u32 %r6, 3;\nE: mov.u32 %r9, %r5;\n@!%p1 add.u32 %r9, %r6, %r5;"),
              IsEmpty());
}

// Its row still has the value of another register, which is dead.
TEST(UninitRegisters, AWriteOfAnotherRegisterInTheSamePlaceDoesNotCount) {
  EXPECT_THAT(
      said("mov.u32 %r4, 7;\nst.shared.u32 [%r3], %r4;\nadd.u32 %r9, %r6, 1;"),
      ElementsAre("UNINITIALIZED: read thread 0 (warp 0 lane 0) k.ptx:3; used thread 0 (warp 0 lane 0) k.ptx:4"));
}

TEST(UninitRegisters, AGuardMakesTheResultUndefinedAndAnAddressIsReported) {
  EXPECT_THAT(
      said("mov.u32 %r9, 0;\n@%p7 mov.u32 %r9, 1;"),
      ElementsAre("UNINITIALIZED: read thread 0 (warp 0 lane 0) k.ptx:2; used thread 0 (warp 0 lane 0) k.ptx:3"));
  EXPECT_THAT(
      said("mov.b64 %rd4, {%r4, %r0};\nmov.b64 {%r9, %r8}, %rd4;"),
      ElementsAre("UNINITIALIZED: read thread 0 (warp 0 lane 0) k.ptx:1; used thread 0 (warp 0 lane 0) k.ptx:3"));
  EXPECT_THAT(said("mov.b64 %rd4, {%r4, %r0};\nmov.b64 {%r8, %r9}, %rd4;"), IsEmpty());
  const Seen address = watch({.body = "@%p0 ld.global.u32 %r4, [%rd5];", .checks = kRegisters});
  ASSERT_FALSE(address.result.reports.empty());
  EXPECT_EQ(address.result.reports[0].message,
            "the value is part of an address: nothing had written %rd5 in this lane");
  EXPECT_THAT(said("ld.shared.v2.u32 {%r4, %r5}, [s];\nadd.u32 %r9, %r4, %r5;"), IsEmpty());
}

Seen run_text(const std::string& functions, const std::string& body, const CheckOptions& options) {
  const std::string text =
      ".version 8.6 .target sm_90a .address_size 64\n.global .align 16 .b8 out[64];\n" + functions +
      "\n.visible .entry k() { .reg .b32 %r<8>; .reg .pred %p<4>; .local .align 16 .b8 depot[64];\n" + body +
      "\nret; }\n";
  Device device(ProgramOptions{.target = 90});
  const LoadedModule& module = device.load(parse_module(text, "k.ptx"));
  LaunchConfig config;
  config.kernel = "k";
  config.block = {32, 1, 1};
  Checks checks(options);
  Seen seen;
  seen.result = device.launch(module, config, checks.monitor());
  for (const Report& report : seen.result.reports) seen.races.push_back(line_of(report));
  if (!seen.result.reports.empty()) seen.text = to_text(seen.result.reports.front());
  return seen;
}

// f(n) reads a register, and a local word, that only f(0) writes.
constexpr const char* kOnce = R"(.func (.reg .u32 %out) f(.reg .u32 %n) { .reg .b32 %r<4>; .reg .pred %p;
.local .align 4 .b8 kept[8];
setp.eq.u32 %p, %n, 0;
@%p mov.u32 %r1, 5;
@%p st.local.u32 [kept+4], %n;
st.global.u32 [out], %r1;
ld.local.u32 %out, [kept+4];
st.global.u32 [out], %out;
ret; })";

TEST(UninitRegisters, EachCallOfAFunctionBeginsWithItsParametersAlone) {
  EXPECT_THAT(run_text(kOnce, "call (%r1), f, (0);", kRegisters).races, IsEmpty());
  const Seen again = run_text(kOnce, "call (%r1), f, (0);\ncall (%r1), f, (1);\nadd.u32 %r2, %r1, 1;", kRegisters);
  ASSERT_EQ(again.races.size(), 1U);
  EXPECT_EQ(again.result.reports[0].message,
            "the value is stored to global memory: nothing had written %r1 in this lane");
  EXPECT_EQ(again.result.reports[0].parties.at(0).opcode, "st.global.u32");
}

TEST(UninitLocal, NamesTheVariableAndTheByte) {
  const Seen seen = run_text("",
                             "st.local.v2.u32 [depot+8], {1, 2};\nld.local.u32 %r1, [depot+8];\n"
                             "ld.local.v4.u32 {%r1,%r2,%r3,%r4}, [depot];\nst.global.u32 [out], %r3;\n"
                             "st.global.u32 [out], %r2;",
                             kLocal);
  EXPECT_THAT(seen.races, ElementsAre("UNINITIALIZED depot+0 16: read thread 0 (warp 0 lane 0) k.ptx:7; used thread 0 "
                                      "(warp 0 lane 0) k.ptx:9"));
  EXPECT_THAT(seen.text, HasSubstr("this thread had not written this byte since the function began"));
}

TEST(UninitLocal, TheStoreOfAnotherThreadDoesNotCount) {
  EXPECT_THAT(
      run_text("",
               "mov.u32 %r1, %laneid;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.local.u32 [depot], %r1;\n"
               "@%p1 ld.local.u32 %r2, [depot];\n@!%p1 ld.local.u32 %r2, [depot];\nst.global.u32 [out], %r2;",
               kLocal)
          .races,
      ElementsAre("UNINITIALIZED depot+0 4: read thread 1 (warp 0 lane 1) k.ptx:9; used thread 1 (warp 0 lane 1) "
                  "k.ptx:10",
                  ::testing::StartsWith("STORE_COLLISION")));
}

TEST(UninitLocal, EachCallOfAFunctionBeginsUnwritten) {
  EXPECT_THAT(run_text(kOnce, "call (%r1), f, (0);", kLocal).races, IsEmpty());
  EXPECT_THAT(
      run_text(kOnce, "call (%r1), f, (0);\ncall (%r1), f, (1);", kLocal).races,
      ElementsAre("UNINITIALIZED kept+4 4: read thread 0 (warp 0 lane 0) k.ptx:9; used thread 0 (warp 0 lane 0) "
                  "k.ptx:10"));
}

}  // namespace
}  // namespace kvscope::ptx::test::uninit_test
