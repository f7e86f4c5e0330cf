// Warpgroup instructions: the reports when the four warps diverge, and the results when they do not.
#include <gmock/gmock.h>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::warpgroup_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// 64 x 8 x 16 of the contents of s; %rd10 and %rd11 are the descriptors.
constexpr const char* kProduct =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, 1, 1, 1, 0, 0;";
constexpr const char* kDescriptors =
    "mov.u32 %r9, s; mov.b64 %rd10, 0x0000001000080040; mov.b64 %rd11, 0x0000001000080080;";

TEST(Warpgroup, WarpsThatComeLateAreWaitedFor) {
  for (const Policy policy : {Policy::late, Policy::early, Policy::seeded}) {
    LaunchOptions options;
    options.policy = policy;
    options.seed = policy == Policy::seeded ? 5 : 0;
    const Ran ran = run({.body = R"(
      shr.u32 %r1, %r0, 5; mul.lo.u32 %r1, %r1, 100; mov.u32 %r2, 0;
    LOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE; add.u32 %r2, %r2, 1; bra LOOP;
    DONE: wgmma.fence.sync.aligned;
      wgmma.commit_group.sync.aligned;
      wgmma.wait_group.sync.aligned 0;
      red.global.add.u32 [%rd0], 1;)",
                         .threads = 256,
                         .options = options});
    EXPECT_THAT(ran.messages, IsEmpty());
    EXPECT_EQ(ran.word(0), 256u);
  }
}

TEST(Warpgroup, AWarpThatIsKeptAwayIsNamedWithItsPlace) {
  const Ran ran = run({.body = R"(
    setp.ge.u32 %p1, %r0, 96;
    @%p1 bra SKIP;
    wgmma.fence.sync.aligned;
  SKIP: bar.sync 0;)",
                       .threads = 128});
  ASSERT_THAT(ran.messages, SizeIs(1));
  EXPECT_THAT(ran.messages[0], StartsWith("DIVERGED_WARPGROUP warp 0 lanes ffffffff wgmma.fence.sync.aligned at "
                                          "one.ptx:14 (line 14): warps 0 to 3, all at this instruction\n  missing warp "
                                          "3: lanes ffffffff at bar.sync 0"));
  EXPECT_EQ(ran.result.status, LaunchStatus::failed);
}

TEST(Warpgroup, AWarpThatHasExitedNeverComes) {
  const Ran ran = run({.body = R"(
    setp.ge.u32 %p1, %r0, 96;
    @%p1 exit;
    wgmma.fence.sync.aligned;
    wgmma.commit_group.sync.aligned;
    red.global.add.u32 [%rd0], 1;)",
                       .threads = 128});
  EXPECT_THAT(ran.messages,
              ElementsAre("DIVERGED_WARPGROUP warp 0 is at an instruction of warps 0 to 3, and warp 3 has exited"));
  EXPECT_EQ(ran.word(0), 96u) << "the others go on, each by itself";
}

TEST(Warpgroup, WarpsAtTwoInstructionsAreSaidOnceWithBothPlaces) {
  const Ran ran = run({.body = R"(
    setp.ge.u32 %p1, %r0, 96;
    @%p1 bra OTHER;
    wgmma.fence.sync.aligned;
    bra JOIN;
  OTHER: wgmma.commit_group.sync.aligned;
  JOIN: wgmma.wait_group.sync.aligned 0;
    red.global.add.u32 [%rd0], 1;)",
                       .threads = 128});
  ASSERT_THAT(ran.messages, ElementsAre("DIVERGED_WARPGROUP warps 3 and 0 of one warpgroup are at different "
                                        "instructions: wgmma.commit_group.sync.aligned and wgmma.fence.sync.aligned"));
  const auto& parties = ran.result.reports[0].parties;
  ASSERT_THAT(parties, SizeIs(2));
  EXPECT_EQ(parties[0].warp, 3);
  EXPECT_THAT(parties[0].source, HasSubstr("one.ptx:16"));
  EXPECT_EQ(parties[1].warp, 0);
  EXPECT_THAT(parties[1].source, HasSubstr("one.ptx:14"));
  EXPECT_EQ(ran.word(0), 128u);
}

TEST(Warpgroup, HasFourWarps) {
  EXPECT_THAT(run({.body = "wgmma.fence.sync.aligned;", .threads = 224}).messages,
              ElementsAre("DIVERGED_WARPGROUP warps 4 to 7 make a warpgroup, and the CTA has 7"));
}

// One descriptor for 128 threads: warp 2 has a different one, or a lane of warp 1.
TEST(Warpgroup, DescriptorsAndScalesAreTheSameInAllThreads) {
  const auto with = [](const std::string& before, const std::string& product) {
    return run({.body = kDescriptors + before + " wgmma.fence.sync.aligned; " + product +
                        " wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
                .threads = 128})
        .messages;
  };
  EXPECT_THAT(with("", kProduct), IsEmpty());
  EXPECT_THAT(with("shr.u32 %r1, %r0, 5; setp.eq.u32 %p1, %r1, 2; @%p1 add.u64 %rd11, %rd11, 2;", kProduct),
              ElementsAre("DIVERGED_WARPGROUP warps of one warpgroup have different values of the descriptor of B: "
                          "0x1000080080 in warp 0, 0x1000080082 in warp 2"));
  EXPECT_THAT(with("setp.eq.u32 %p1, %r0, 37; @%p1 add.u64 %rd10, %rd10, 2;", kProduct),
              ElementsAre("DIVERGED_WARPGROUP lanes of warp 1 have different values of the descriptor of A: "
                          "0x1000080040 in lane 0, 0x1000080042 in lane 5"));
  std::string scaled = kProduct;
  scaled.replace(scaled.find("%rd11, 1"), 8, "%rd11, %p2");
  EXPECT_THAT(with("setp.lt.u32 %p2, %r0, 64;", scaled),
              ElementsAre("DIVERGED_WARPGROUP warps of one warpgroup have different values of the scale of D: "
                          "0x1 in warp 0, 0x0 in warp 2"));
}

// --- setmaxnreg ------------------------------------------------------------------------------------------------------

TEST(Setmaxnreg, GoesDownAndUpInFourWarps) {
  EXPECT_THAT(run({.body = "setmaxnreg.dec.sync.aligned.u32 40; setmaxnreg.dec.sync.aligned.u32 40;"
                           "setmaxnreg.inc.sync.aligned.u32 232; setmaxnreg.dec.sync.aligned.u32 24;",
                   .threads = 128,
                   .limits = ".maxnreg 168"})
                  .messages,
              IsEmpty());
}

TEST(Setmaxnreg, DoesNotGoDownToMoreNorUpToFewer) {
  const auto said = [](const std::string& body, const std::string& limits) {
    return run({.body = body, .threads = 128, .limits = limits}).messages;
  };
  EXPECT_THAT(said("setmaxnreg.dec.sync.aligned.u32 176;", ".maxnreg 168"),
              ElementsAre("REGISTER_COUNT setmaxnreg.dec to 176 registers, and a thread may have 168"));
  EXPECT_THAT(said("setmaxnreg.inc.sync.aligned.u32 160;", ".maxnreg 168"),
              ElementsAre("REGISTER_COUNT setmaxnreg.inc to 160 registers, and a thread may have 168"));
  // The initial count is the assembler's choice; after the first setmaxnreg it is known.
  EXPECT_THAT(said("setmaxnreg.dec.sync.aligned.u32 64; setmaxnreg.inc.sync.aligned.u32 56;", ".maxntid 128, 1, 1"),
              ElementsAre("REGISTER_COUNT setmaxnreg.inc to 56 registers, and a thread may have 64"));
}

TEST(Setmaxnreg, WithoutALimitIsNoted) {
  const Ran ran = run({.body = "setmaxnreg.dec.sync.aligned.u32 64;", .threads = 128});
  EXPECT_THAT(ran.messages,
              ElementsAre("REGISTER_COUNT setmaxnreg in kernel k, which has neither .maxnreg nor a number of threads"));
  EXPECT_TRUE(ran.result.clean());
}

TEST(Setmaxnreg, IsOfAllFourWarps) {
  const Ran ran = run({.body = "setp.ge.u32 %p1, %r0, 96; @%p1 bra SKIP; setmaxnreg.dec.sync.aligned.u32 64;\n"
                               "SKIP: bar.sync 0;",
                       .threads = 128,
                       .limits = ".maxnreg 168"});
  ASSERT_THAT(ran.messages, SizeIs(1));
  EXPECT_THAT(ran.messages[0], StartsWith("DIVERGED_WARPGROUP warp 0 lanes ffffffff setmaxnreg.dec"));
}

// --- the wait of a warpgroup -----------------------------------------------------------------------------------------

// All elements of s are ones; then each warp by itself overwrites B of the first product, as soon as it is past a wait.
constexpr const char* kOnes = R"(
  mov.u32 %r3, s; shl.b32 %r1, %r0, 5; add.u32 %r1, %r1, %r3; mov.u32 %r2, 0x3f803f80;
  st.shared.v4.u32 [%r1], {%r2, %r2, %r2, %r2}; st.shared.v4.u32 [%r1+16], {%r2, %r2, %r2, %r2};
  and.b32 %r4, %r0, 31; mad.lo.u32 %r4, %r4, 8, %r3;
  fence.proxy.async; bar.sync 0;
)";
std::vector<LaunchOptions> every_policy() {
  std::vector<LaunchOptions> all(2);
  all[1].policy = Policy::early;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    all.emplace_back().policy = Policy::seeded;
    all.back().seed = seed;
  }
  return all;
}

// A group belongs to the warpgroup: a warp that is past the wait may overwrite what the other three have read.
TEST(Wgmma, TheProductsOfAllFourWarpsAreCompleteAtTheWait) {
  for (const LaunchOptions& options : every_policy()) {
    const Ran ran = run({.body = std::string(kDescriptors) + kOnes +
                                 "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, "
                                 "%f1, %f2, %f3}, %rd10, %rd10, 0, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;\n"
                                 "wgmma.wait_group.sync.aligned 0; mov.u32 %r2, 0; st.shared.v2.u32 [%r4], {%r2, %r2};"
                                 "mad.wide.u32 %rd2, %r0, 4, %rd0; st.global.f32 [%rd2], %f0;",
                         .out_bytes = 512,
                         .threads = 128,
                         .options = options});
    EXPECT_THAT(ran.messages, IsEmpty());
    for (std::size_t t = 0; t < 128; ++t) {
      ASSERT_EQ(ran.at<float>(t), 16.0F) << "thread " << t << " policy " << static_cast<int>(options.policy) << " seed "
                                         << options.seed;
    }
  }
}

// Two groups; each warp sets B of both products to twos after a wait for the first group.
TEST(Wgmma, AWaitForTheFirstGroupLeavesTheSecondInFlight) {
  const std::string product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 ";
  for (const LaunchOptions& options : every_policy()) {
    const Ran ran = run(
        {.body = std::string(kOnes) + "wgmma.fence.sync.aligned;\n" + product +
                 "{%f0, %f1, %f2, %f3}, 0x1000080040, 0x1000080040, 0, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;\n" +
                 product +
                 "{%f4, %f5, %f6, %f7}, 0x10000800C0, 0x10000800C0, 0, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 1; mov.u32 %r2, 0x40004000;\n"
                 "st.shared.v2.u32 [%r4], {%r2, %r2}; st.shared.v2.u32 [%r4+2048], {%r2, %r2};\n"
                 "wgmma.wait_group.sync.aligned 0; mad.wide.u32 %rd2, %r0, 8, %rd0;\n"
                 "st.global.f32 [%rd2], %f0; st.global.f32 [%rd2+4], %f4;",
         .out_bytes = 1024,
         .threads = 128,
         .options = options});
    EXPECT_THAT(ran.messages, IsEmpty());
    for (std::size_t t = 0; t < 128; ++t) {
      const float late = t < 32 ? 64.0F : 32.0F;  // rows 0 to 7 of A are the bytes of B
      ASSERT_EQ(ran.at<float>(2 * t), 16.0F) << "thread " << t << " seed " << options.seed;
      ASSERT_EQ(ran.at<float>(2 * t + 1), options.policy == Policy::early ? 16.0F : late)
          << "thread " << t << " seed " << options.seed;
    }
  }
}

// One warp waits while the others are at the fence: after the report each warp completes its own products at its wait.
TEST(Wgmma, WarpsOfADivergedWarpgroupWaitEachForItsOwnProducts) {
  for (const LaunchOptions& options : every_policy()) {
    for (const char* warp : {"0", "1", "2", "3"}) {
      const Ran ran = run({.body = std::string(kOnes) + "shr.u32 %r5, %r0, 5; setp.ne.u32 %p1, %r5, " + warp +
                                   "; @%p1 bra JOIN; wgmma.wait_group.sync.aligned 0;\n"
                                   "JOIN: wgmma.fence.sync.aligned; "
                                   "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, "
                                   "0x1000080040, 0x1000080040, 0, 1, 1, 0, 0;\n"
                                   "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
                                   "mad.wide.u32 %rd2, %r0, 4, %rd0; st.global.f32 [%rd2], %f0;",
                           .out_bytes = 512,
                           .threads = 128,
                           .options = options});
      EXPECT_THAT(ran.messages, ElementsAre(StartsWith("DIVERGED_WARPGROUP warps")));
      for (std::size_t t = 0; t < 128; ++t) ASSERT_EQ(ran.at<float>(t), 16.0F) << "thread " << t << " warp " << warp;
    }
  }
}

// --- registers of products in flight ---------------------------------------------------------------------------------

// The sums are written at the wait; registers that become live in between must not share their places.
TEST(Wgmma, SumsThatAreNotReadDoNotShareTheirRegisters) {
  std::string body = kDescriptors;
  for (int i = 0; i < 4; ++i) body += " mov.f32 %f" + std::to_string(i) + ", 0f40A00000;";
  body += std::string(" wgmma.fence.sync.aligned; ") + kProduct + " wgmma.commit_group.sync.aligned;\n";
  for (int i = 10; i < 40; ++i) {
    body += "mad.lo.u32 %r" + std::to_string(i) + ", %r0, 7, " + std::to_string(i) + ";\n";
  }
  body += "wgmma.wait_group.sync.aligned 0; mad.wide.u32 %rd2, %r0, 4, %rd0;\n";
  for (int i = 10; i < 40; ++i) {
    body += "st.global.u32 [%rd2+" + std::to_string(512 * (i - 10)) + "], %r" + std::to_string(i) + ";\n";
  }
  const Ran ran = run({.body = body, .out_bytes = 30 * 512, .threads = 128});
  EXPECT_THAT(ran.messages, IsEmpty());
  for (std::uint32_t i = 10; i < 40; ++i) {
    for (std::uint32_t t = 0; t < 128; ++t) ASSERT_EQ(ran.word(128 * (i - 10) + t), 7 * t + i);
  }
}

// The kernel stores the first sum of each thread.
Ran with_functions(const std::string& functions, const std::string& body) {
  Device device;
  const std::string head = ".version 8.0\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 s[4096];\n";
  const LoadedModule& module = device.load(parse_module(head + functions + R"(.visible .entry k(.param .u64 out) {
  .reg .b32 %r<10>; .reg .b64 %rd<20>; .reg .f32 %f<9>;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 4, %rd0;
  mov.f32 %f0, 0f40A00000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
)" + std::string(kDescriptors) + body + "st.global.f32 [%rd0], %f0; ret; }\n",
                                                        "functions.ptx"));
  const std::uint64_t out = device.memory().allocate(512, "out");
  LaunchConfig config;
  config.kernel = "k";
  config.block = {128, 1, 1};
  config.params = pack_params(module, "k", {out});
  Ran ran;
  ran.result = device.launch(module, config);
  ran.out = device.memory().read(out, 512);
  for (const Report& r : ran.result.reports) ran.messages.push_back(std::string(name(r.kind)) + " " + r.message);
  return ran;
}

// Shared memory is initially ff, which is NaN: A and B are set to zeros, and D stays 5.
constexpr const char* kZeros = R"(
  mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 32, %r1; mov.u32 %r2, 0;
  st.shared.v4.u32 [%r1], {%r2, %r2, %r2, %r2}; st.shared.v4.u32 [%r1+16], {%r2, %r2, %r2, %r2};
  fence.proxy.async; bar.sync 0;
)";

TEST(Wgmma, AFunctionMayWaitForTheProductOfItsCaller) {
  const Ran ran = with_functions(
      ".func drain() { .reg .b32 %x<9>; mov.u32 %x1, 77; wgmma.wait_group.sync.aligned 0; add.u32 %x2, %x1, 1; ret; "
      "}\n",
      std::string(kZeros) + "wgmma.fence.sync.aligned; " + kProduct +
          " wgmma.commit_group.sync.aligned; call drain, ();");
  EXPECT_THAT(ran.messages, IsEmpty());
  for (std::size_t t = 0; t < 128; ++t) EXPECT_EQ(ran.at<float>(t), 5.0f);
}

TEST(Wgmma, AFunctionThatReturnsBeforeItsProductIsDoneIsReported) {
  const std::string issue = std::string(".func issue() { .reg .b32 %r<10>; .reg .b64 %rd<20>; .reg .f32 %f<9>; ") +
                            kDescriptors +
                            " mov.f32 %f0, 0f40A00000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;"
                            " wgmma.fence.sync.aligned; " +
                            kProduct + " wgmma.commit_group.sync.aligned; ret; }\n" +
                            ".func drain() { wgmma.wait_group.sync.aligned 0; ret; }\n";
  for (const char* wait : {"wgmma.wait_group.sync.aligned 0;", "call drain, ();",
                           "call issue, (); wgmma.wait_group.sync.aligned 1; wgmma.wait_group.sync.aligned 0;"}) {
    const Ran ran = with_functions(issue, std::string(kZeros) + "call issue, (); " + wait);
    ASSERT_FALSE(ran.messages.empty()) << wait;
    EXPECT_EQ(ran.messages[0],
              "REG_IN_FLIGHT the function that issued this product has returned, and its registers are gone");
    EXPECT_EQ(ran.at<float>(9), 5.0f) << "only the registers of the product are written";
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::warpgroup_test
