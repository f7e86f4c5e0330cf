// Registers and local bytes that are read before they are written, including reads that compilers emit on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::uninit_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr CheckOptions kRegisters{
    .init = false, .race = {.races = false, .proxy = false}, .uninit_regs = true, .uninit_local = false};
constexpr CheckOptions kLocal{
    .init = false, .race = {.races = false, .proxy = false}, .uninit_regs = false, .uninit_local = true};

TEST(UninitRegisters, NamesTheRegisterAndItsLanes) {
  const Seen seen =
      watch({.body = "@%p1 mov.u32 %r4, 1;\nadd.u32 %r5, %r4, %r0;", .threads = 32, .checks = kRegisters});
  EXPECT_EQ(seen.text,
            "UNINITIALIZED  kernel k  cta (0,0,0)\n"
            "  read   thread 1 (warp 0 lane 1)  add.u32          k.ptx:2\n"
            "  %r4 is read in lanes fffffffe before anything has written it there\n"
            "  compilers copy such registers on purpose: check whether a result depends on it");
  EXPECT_THAT(watch({.body = "add.u32 %r5, %r4, %r0;", .checks = {.init = false}}).races, IsEmpty());
}

TEST(UninitRegisters, BranchesThatTogetherWriteAllLanesAreClean) {
  EXPECT_THAT(watch({.body = "@%p2 mov.u32 %r4, 1;\n@!%p2 mov.u32 %r4, 2;\nadd.u32 %r5, %r4, 1;\n@%p1 bra E;\n"
                             "mov.u32 %r6, 3;\nE: @!%p1 add.u32 %r7, %r6, %r5;",
                     .checks = kRegisters})
                  .races,
              IsEmpty());
}

// Its row still has the value of another register, which is dead.
TEST(UninitRegisters, AWriteOfAnotherRegisterInTheSamePlaceDoesNotCount) {
  EXPECT_THAT(
      watch({.body = "mov.u32 %r4, 7;\nst.shared.u32 [%r3], %r4;\nadd.u32 %r5, %r6, 1;", .checks = kRegisters}).races,
      ElementsAre("UNINITIALIZED: read thread 0 (warp 0 lane 0) k.ptx:3"));
}

TEST(UninitRegisters, GuardsVectorsAddressesAndBothRegistersOfAMoveAreRead) {
  EXPECT_THAT(watch({.body = "@%p7 mov.u32 %r5, 1;", .checks = kRegisters}).races,
              ElementsAre("UNINITIALIZED: read thread 0 (warp 0 lane 0) k.ptx:1"));
  EXPECT_EQ(watch({.body = "mov.b64 %rd4, {%r4, %r0};", .checks = kRegisters}).result.reports.at(0).message,
            "%r4 is read in lanes ffffffff before anything has written it there");
  EXPECT_EQ(watch({.body = "@%p0 ld.global.u32 %r4, [%rd5];", .checks = kRegisters}).result.reports.at(0).message,
            "%rd5 is read in lanes 00000001 before anything has written it there");
  EXPECT_THAT(watch({.body = "ld.shared.v2.u32 {%r4, %r5}, [s];\nadd.u32 %r6, %r4, %r5;", .checks = kRegisters}).races,
              IsEmpty());
}

Seen run_text(const std::string& functions, const std::string& body, const CheckOptions& options) {
  const std::string text =
      ".version 8.6 .target sm_90a .address_size 64\n" + functions +
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

// f(n) reads a register that only f(0) writes.
constexpr const char* kOnce = R"(.func (.reg .u32 %out) f(.reg .u32 %n) { .reg .b32 %r<4>; .reg .pred %p;
.local .align 4 .b8 kept[8];
setp.eq.u32 %p, %n, 0;
@%p mov.u32 %r1, 5;
@%p st.local.u32 [kept+4], %n;
mov.u32 %out, %r1;
ld.local.u32 %out, [kept+4];
ret; })";

TEST(UninitRegisters, EachCallOfAFunctionBeginsWithItsParametersAlone) {
  EXPECT_THAT(run_text(kOnce, "call (%r1), f, (0);", kRegisters).races, IsEmpty());
  const Seen again = run_text(kOnce, "call (%r1), f, (0);\ncall (%r1), f, (1);\nadd.u32 %r2, %r1, 1;", kRegisters);
  ASSERT_EQ(again.races.size(), 1U);
  EXPECT_EQ(again.result.reports[0].message, "%r1 is read in lanes ffffffff before anything has written it there");
  EXPECT_EQ(again.result.reports[0].parties.at(0).opcode, "mov.u32");
}

TEST(UninitLocal, NamesTheVariableAndTheByte) {
  const Seen seen =
      run_text("",
               "st.local.v2.u32 [depot+8], {1, 2};\nld.local.u32 %r1, [depot+8];\nld.local.v4.u32 {%r1,%r2,%r3,%r4}, "
               "[depot];",
               kLocal);
  EXPECT_EQ(seen.text,
            "UNINITIALIZED  local 0x0 (depot + 0)  kernel k  cta (0,0,0)\n"
            "  read   thread 0 (warp 0 lane 0)  ld.local.v4.u32          k.ptx:6\n"
            "  this thread has not written this byte since the function began");
  EXPECT_THAT(seen.races, ElementsAre("UNINITIALIZED depot+0 16: read thread 0 (warp 0 lane 0) k.ptx:6"));
}

TEST(UninitLocal, TheStoreOfAnotherThreadDoesNotCount) {
  EXPECT_THAT(run_text("",
                       "mov.u32 %r1, %laneid;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.local.u32 [depot], %r1;\n"
                       "@%p1 ld.local.u32 %r2, [depot];\n@!%p1 ld.local.u32 %r2, [depot];",
                       kLocal)
                  .races,
              ElementsAre("UNINITIALIZED depot+0 4: read thread 1 (warp 0 lane 1) k.ptx:8"));
}

TEST(UninitLocal, EachCallOfAFunctionBeginsUnwritten) {
  EXPECT_THAT(run_text(kOnce, "call (%r1), f, (0);", kLocal).races, IsEmpty());
  EXPECT_THAT(run_text(kOnce, "call (%r1), f, (0);\ncall (%r1), f, (1);", kLocal).races,
              ElementsAre("UNINITIALIZED kept+4 4: read thread 0 (warp 0 lane 0) k.ptx:8"));
}

}  // namespace
}  // namespace kvscope::ptx::test::uninit_test
