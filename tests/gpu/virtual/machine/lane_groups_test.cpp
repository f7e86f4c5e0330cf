// Lanes diverge, wait, and reconverge: which lane group runs next, and the number of warp instructions.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::lane_groups_test {
namespace {

using test::run;

constexpr std::uint64_t kAround = 4;  // in every OneKernel: three statements before its body, one ret after it

std::string kept_ptx() {
  std::ifstream in(std::string(KVSCOPE_SOURCE_DIR) + "/tests/gpu/virtual/machine/alu_rounds.ptx", std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// K02 as compiled by nvcc, with a * 1.0001f + 0.5f: the published number of warp instructions results only if every
// split is merged at its join. The bits are those of a plain loop with a fused multiply-add.
TEST(Fragments, AnArithmeticLoopWithADivergentIfTakesThePublishedNumberOfInstructions) {
  struct Case {
    int rounds;
    std::uint64_t steps, fnv;
  };
  for (const auto& [rounds, steps, fnv] : {Case{10, 892, 0xda3f5a7aa17dabb9}, Case{100, 7776, 0x0efd26ab1eaac290},
                                           Case{1000, 76620, 0xbe3b164d7640974d}}) {
    for (const bool shared_rows : {true, false}) {
      Device device(ProgramOptions{.registers_by_liveness = shared_rows});
      const LoadedModule& module = device.load(parse_module(kept_ptx(), "alu_rounds.ptx"));
      const std::uint64_t out = device.memory().allocate(512, "out"), in = device.memory().allocate(512, "in");
      std::vector<float> values(128);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
      device.memory().write(in, test::bytes_of(values));
      LaunchConfig config;
      config.kernel = "alu_rounds";
      config.block = {128, 1, 1};
      config.params = pack_params(module, "alu_rounds", {out, in, static_cast<std::uint64_t>(rounds)});
      const LaunchResult result = device.launch(module, config);
      EXPECT_EQ(result.steps, steps) << rounds;
      const std::vector<std::byte> bytes = device.memory().read(out, 512);
      EXPECT_EQ(test::fnv(bytes.data(), bytes.size()), fnv) << rounds;
    }
  }
}

// if (tid < 8) a else b, then one store: 2 compare and branch, 2 for a (one of them a jump), 1 for b, the join 3.
TEST(Fragments, BothSidesOfAnIfRunOnceAndMeetBehindIt) {
  const auto ran = run({.body = R"(
    setp.lt.u32 %p1, %r0, 8;
    @!%p1 bra ELSE;
    mov.u32 %r1, 100;
    bra JOIN;
  ELSE: mov.u32 %r1, 200;
  JOIN: mad.wide.u32 %rd2, %r0, 4, %rd0;
    st.global.u32 [%rd2], %r1;
    activemask.b32 %r2;
    st.global.u32 [%rd2+128], %r2;)",
                        .out_bytes = 256});
  EXPECT_TRUE(ran.result.clean());
  EXPECT_EQ(ran.word(7), 100u);
  EXPECT_EQ(ran.word(8), 200u);
  EXPECT_EQ(ran.word(32), 0xffffffffu) << "all lanes are together again";
  EXPECT_EQ(ran.result.steps, kAround + 9);
}

// Lanes leave a loop one after the other: they wait at its exit instead of continuing.
TEST(Fragments, LanesThatLeaveALoopWaitForTheOthersAtItsExit) {
  const auto ran = run({.body = R"(
    mov.u32 %r1, 0;
  LOOP: add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, %r0;
    @%p1 bra LOOP;
    activemask.b32 %r2;
    mad.wide.u32 %rd2, %r0, 4, %rd0;
    st.global.u32 [%rd2], %r2;)",
                        .out_bytes = 128});
  EXPECT_EQ(ran.word(0), 0xffffffffu);
  EXPECT_EQ(ran.result.steps, kAround + 1 + 31 * 3 + 3);
}

// One lane of a warp acquires the lock and is after the loop in which the others spin: it must get a turn.
TEST(Fragments, ALockInsideOneWarpIsPassedFromLaneToLane) {
  const auto ran = run({.body = R"(
  LOCK: atom.global.cas.b32 %r1, [%rd0], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra LOCK;
    ld.global.u32 %r2, [%rd0+4];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd0+4], %r2;
    atom.global.exch.b32 %r3, [%rd0], 0;)"});
  EXPECT_EQ(ran.result.status, LaunchStatus::finished);
  EXPECT_EQ(ran.word(1), 32u);
}

// The opposite direction: the flag is set after the loop that polls it.
TEST(Fragments, AFlagThatOneLaneSetsBehindThePollOfTheOthersIsSeen) {
  const auto ran = run({.body = R"(
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra SET;
  POLL: ld.volatile.global.u32 %r1, [%rd0];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra POLL;
    bra DONE;
  SET: st.volatile.global.u32 [%rd0], 1;
  DONE: add.u32 %r1, %r1, 0;)"});
  EXPECT_EQ(ran.result.status, LaunchStatus::finished);
}

TEST(Fragments, ABranchByIndexGoesToEachLanesOwnTarget) {
  const auto ran = run({.body = R"(
    and.b32 %r1, %r0, 3;
    mov.u32 %r2, 7;
    setp.eq.u32 %p1, %r1, 3;
    T: .branchtargets A, B, C;
    @!%p1 brx.idx %r1, T;
    bra JOIN;
  A: mov.u32 %r2, 10; bra JOIN;
  B: mov.u32 %r2, 20; bra JOIN;
  C: mov.u32 %r2, 30;
  JOIN: mad.wide.u32 %rd2, %r0, 4, %rd0;
    st.global.u32 [%rd2], %r2;)",
                        .out_bytes = 128});
  EXPECT_TRUE(ran.result.clean()) << (ran.messages.empty() ? "" : ran.messages[0]);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(ran.word(lane), (std::array{10u, 20u, 30u, 7u}[lane % 4])) << lane;
  }
}

TEST(Fragments, AnIndexPastTheTableIsATrap) {
  const auto ran = run({.body = "T: .branchtargets A; brx.idx %r0, T; A: mov.u32 %r1, 0;"});
  ASSERT_EQ(ran.messages.size(), 1u);
  EXPECT_EQ(ran.messages[0], "TRAP lane 1: index 1 is past the table of 1 targets");
  EXPECT_EQ(ran.result.status, LaunchStatus::failed);
}

TEST(Fragments, AUniformBranchThatIsNotOneIsReportedAndStillSplits) {
  const auto ran = run({.body = R"(
    setp.lt.u32 %p1, %r0, 8;
    @%p1 bra.uni SKIP;
    st.global.u32 [%rd0], 5;
  SKIP: mov.u32 %r1, 0;)"});
  ASSERT_EQ(ran.messages.size(), 1u);
  EXPECT_EQ(ran.messages[0], "DIVERGED bra.uni is taken by lanes 000000ff of ffffffff: the lanes split");
  EXPECT_FALSE(ran.result.clean()) << "a warning is not clean";
  EXPECT_EQ(ran.word(0), 5u);
}

// If the guard is false in all lanes, the instruction has no effect and does not check addresses.
TEST(Fragments, AnInstructionWhoseGuardIsFalseEverywhereDoesNothing) {
  const auto ran =
      run({.body = "setp.gt.u32 %p1, %r0, 99; @%p1 ld.global.u32 %r1, [%rd0+5]; @%p1 trap; @%p1 bar.sync 0;"});
  EXPECT_TRUE(ran.messages.empty());
  EXPECT_EQ(ran.result.steps, kAround + 4);
}

// Quantum, order of warps and choice of lane groups are random: the kernel's results are the same.
TEST(Fragments, SeededSchedulesGiveTheSameValues) {
  for (const std::uint64_t seed : {1u, 2u, 3u, 99u}) {
    LaunchOptions options;
    options.policy = Policy::seeded;
    options.seed = seed;
    const auto ran = run({.body = R"(
      mov.u32 %r1, 0; mov.u32 %r3, 0;
    LOOP: add.u32 %r1, %r1, 1; add.u32 %r3, %r3, %r0;
      setp.lt.u32 %p1, %r1, %r0;
      @%p1 bra LOOP;
      red.global.add.u32 [%rd0], %r3;
      bar.sync 0;)",
                          .threads = 100,
                          .grid = 3,
                          .options = options});
    std::uint32_t sum = 0;
    for (std::uint32_t t = 0; t < 100; ++t) sum += 3 * t * std::max(t, 1u);
    EXPECT_EQ(ran.word(0), sum) << seed;
  }
}

TEST(Fragments, ALoopWithoutAnEndIsARunawayThatNamesItsBranch) {
  LaunchOptions options;
  options.limits.instructions = 100'000;
  const auto ran = run({.body = "LOOP: add.u32 %r1, %r1, 1;\n bra LOOP;", .options = options});
  ASSERT_EQ(ran.messages.size(), 1u);
  EXPECT_EQ(ran.messages[0],
            "RUNAWAY the limit of 100000 warp instructions is reached\n6250 backward branches at bra LOOP at "
            "one.ptx:12 (line 12)");
  EXPECT_EQ(ran.result.steps, 100'000u);
}

// A long computation without a store is not a polling loop: it finishes, however long it takes.
TEST(Fragments, ALoopThatOnlyCountsIsNoSpin) {
  const auto ran = run({.body = R"(
    mov.u32 %r1, 0;
  LOOP: add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 500000;
    @%p1 bra LOOP;
    st.global.u32 [%rd0], %r1;)"});
  EXPECT_TRUE(ran.messages.empty());
  EXPECT_EQ(ran.word(0), 500000u);
}

// One CTA polls a location that the next one writes: it is suspended, and the next one starts.
TEST(Fragments, ACtaThatPollsWhatALaterOneWritesIsSuspended) {
  const std::string body = R"(
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra SET;
  POLL: ld.volatile.global.u32 %r2, [%rd0];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra POLL;
    bra DONE;
  SET: st.volatile.global.u32 [%rd0], 1;
  DONE: add.u32 %r2, %r2, 0;)";
  EXPECT_EQ(run({.body = body, .grid = 2}).result.status, LaunchStatus::finished);
  LaunchOptions options;
  options.resident_limit = 1;
  const auto alone = run({.body = body, .grid = 2, .options = options});
  ASSERT_EQ(alone.messages.size(), 1u);
  EXPECT_TRUE(alone.messages[0].starts_with("GLOBAL_SPIN warp 0 lanes ffffffff")) << alone.messages[0];
  EXPECT_NE(alone.messages[0].find("loops and polls global out + 0, which is 0x0"), std::string::npos)
      << alone.messages[0];
  EXPECT_EQ(alone.result.reports[0].hint,
            "needs co-resident CTAs: 1 of 2 could not start beside them (resident limit 1)");
}

}  // namespace
}  // namespace kvscope::ptx::lane_groups_test
