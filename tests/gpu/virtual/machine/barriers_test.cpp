// Barriers of a CTA and of a cluster: which threads are counted, which wait, and the reports of missing ones.
#include <gtest/gtest.h>

#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::barriers_test {
namespace {

using test::run;

// Warps 0 and 1 store and continue without waiting; 2 and 3 wait for them. A producer that waited would store 9 too
// late.
TEST(NamedBarrier, ProducersArriveAndConsumersWait) {
  const auto ran = run({.body = R"(
    shr.u32 %r1, %r0, 5;
    mad.lo.u32 %r2, %r0, 4, 0;
    mov.u32 %r3, s; add.u32 %r3, %r3, %r2;
    setp.ge.u32 %p1, %r1, 2;
    @%p1 bra CONSUME;
    add.u32 %r4, %r0, 1000;
    st.shared.u32 [%r3], %r4;
    bar.arrive 1, 128;
    exit;
  CONSUME: bar.sync 1, 128;
    ld.shared.u32 %r4, [%r3+-256];
    mad.wide.u32 %rd2, %r0, 4, %rd0;
    st.global.u32 [%rd2+-256], %r4;)",
                        .out_bytes = 256,
                        .threads = 128});
  EXPECT_TRUE(ran.messages.empty());
  EXPECT_EQ(ran.word(0), 1000u);
  EXPECT_EQ(ran.word(63), 1063u);
}

TEST(NamedBarrier, ReductionsGoToAllThatWait) {
  const auto ran = run({.body = R"(
    setp.lt.u32 %p1, %r0, 40;
    setp.lt.u32 %p2, %r0, 100;
    bar.red.popc.u32 %r1, 0, %p1;
    bar.red.and.pred %p3, 0, %p2;
    bar.red.or.pred %p4, 0, !%p2;
    bar.red.and.pred %p5, 0, %p1;
    selp.u32 %r2, 1, 0, %p3; selp.u32 %r3, 2, 0, %p4; selp.u32 %r4, 4, 0, %p5;
    or.b32 %r2, %r2, %r3; or.b32 %r2, %r2, %r4;
    mad.wide.u32 %rd2, %r0, 8, %rd0;
    st.global.u32 [%rd2], %r1; st.global.u32 [%rd2+4], %r2;)",
                        .out_bytes = 800,
                        .threads = 100});
  EXPECT_TRUE(ran.messages.empty());
  for (std::size_t t : {0u, 50u, 99u}) {
    EXPECT_EQ(ran.word(2 * t), 40u) << t;
    EXPECT_EQ(ran.word(2 * t + 1), 1u) << t;
  }
}

TEST(NamedBarrier, AWarpThatHasExitedIsNotWaitedFor) {
  const auto ran = run({.body = R"(
    setp.ge.u32 %p1, %r0, 64;
    @%p1 exit;
    bar.sync 0;
    st.global.u32 [%rd0], 3;)",
                        .threads = 128});
  ASSERT_EQ(ran.messages.size(), 1u);
  EXPECT_EQ(ran.messages[0],
            "ABSENT_THREADS barrier 0 of all threads: 2 of 4 warps arrived (0 1), and the others have exited (2 3)\n"
            "PTX does not define whether such a barrier completes; here it does");
  const Report& r = ran.result.reports[0];
  EXPECT_EQ(r.severity, Severity::warning);
  ASSERT_EQ(r.parties.size(), 2u);
  EXPECT_EQ(r.parties[0].opcode, "bar.sync");
  EXPECT_EQ(r.parties[1].warp, 2);
  EXPECT_EQ(r.parties[1].opcode, "exit");
  EXPECT_EQ(ran.word(0), 3u);
}

// The same when the others exit while the barrier waits.
TEST(NamedBarrier, AWarpThatExitsWhileOthersWaitIsReported) {
  const auto ran = run({.body = R"(
    setp.lt.u32 %p1, %r0, 64;
    @%p1 bar.sync 0;
    @%p1 st.global.u32 [%rd0], 3;)",
                        .threads = 100});
  ASSERT_EQ(ran.messages.size(), 1u);
  EXPECT_TRUE(ran.messages[0].starts_with("ABSENT_THREADS barrier 0 of all threads: 2 of 4 warps arrived (0 1)"));
  EXPECT_EQ(ran.word(0), 3u);
}

// Lanes of a warp that have exited are not counted one by one: bar counts whole warps.
TEST(NamedBarrier, AWarpThatHasLostLanesStillArrivesAsAWhole) {
  const auto ran =
      run({.body = "setp.lt.u32 %p1, %r0, 40; @!%p1 exit; bar.sync 0; st.global.u32 [%rd0], 3;", .threads = 64});
  EXPECT_TRUE(ran.messages.empty());
}

TEST(NamedBarrier, MoreThreadsThanTheCtaHasIsAMismatch) {
  const auto ran = run({.body = "bar.sync 1, 96;", .threads = 64});
  ASSERT_GE(ran.messages.size(), 1u);
  EXPECT_EQ(ran.messages[0], "BARRIER_MISMATCH barrier 1 with 96 threads: the CTA has 2 warps, 64 threads");
}

TEST(NamedBarrier, ArrivalsThatNoThreadWaitsForAreNotedAtTheEnd) {
  const auto ran = run({.body = "setp.lt.u32 %p1, %r0, 32; @%p1 bar.arrive 4, 64;", .threads = 64});
  ASSERT_EQ(ran.messages.size(), 1u);
  EXPECT_EQ(ran.messages[0],
            "BARRIER_MISMATCH the CTA ended while barrier 4 had 1 of 2 warps (0): no thread waits for it");
  EXPECT_TRUE(ran.result.clean());
}

// barrier.sync on both sides of an if: any instruction with this barrier counts. bar.sync would not.
TEST(NamedBarrier, LanesOfAWarpMayComeToTheUnalignedFormFromTwoPlaces) {
  const std::string body = R"(
    setp.lt.u32 %p1, %r0, 16;
    @!%p1 bra ELSE;
    OP 0;
    bra JOIN;
  ELSE: OP 0;
  JOIN: st.global.u32 [%rd0], 1;)";
  const auto with = [&body](const std::string& op) {
    std::string out = body;
    for (std::size_t at = out.find("OP"); at != out.npos; at = out.find("OP")) out.replace(at, 2, op);
    return run({.body = out, .threads = 64});
  };
  EXPECT_TRUE(with("barrier.sync").messages.empty());
  const auto apart = with("bar.sync");
  ASSERT_EQ(apart.messages.size(), 1u);
  EXPECT_TRUE(apart.messages[0].starts_with("DIVERGED warp 0 lanes 0000ffff bar.sync 0")) << apart.messages[0];
}

// Half of a warp already waits at the barrier when the other half jumps back to it: they arrive together.
TEST(NamedBarrier, LaterLanesJoinThoseThatWait) {
  const auto ran = run({.body = R"(
    setp.lt.u32 %p1, %r0, 16;
    @!%p1 bra FAR;
  BAR: bar.sync 0;
    activemask.b32 %r1;
    st.global.u32 [%rd0], %r1;
    exit;
  FAR: add.u32 %r2, %r0, 1;
    bra BAR;)"});
  EXPECT_TRUE(ran.messages.empty());
  EXPECT_EQ(ran.word(0), 0xffffffffu);
}

TEST(NamedBarrier, ArrivingTwiceIsAnError) {
  const auto ran = run({.body = "setp.lt.u32 %p1, %r0, 32; @!%p1 bra W; bar.arrive 3, 64; bar.arrive 3, 64; exit;"
                                " W: nanosleep.u32 10; bar.sync 3, 64;",
                        .threads = 64});
  ASSERT_GE(ran.messages.size(), 1u);
  EXPECT_EQ(ran.messages[0], "BARRIER_REARRIVE warp 0 arrives at barrier 3 again before it is complete");
}

TEST(NamedBarrier, AnotherNumberOfThreadsOrAnotherKindIsAMismatch) {
  const auto counts =
      run({.body = "setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 1, 64; @!%p1 bar.sync 1, 96;", .threads = 64});
  ASSERT_GE(counts.messages.size(), 1u);
  EXPECT_EQ(counts.messages[0], "BARRIER_MISMATCH barrier 1 is in use with 64 threads, but this instruction names 96");
  const auto kinds =
      run({.body = "setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 1; @!%p1 bar.red.popc.u32 %r1, 1, %p1;", .threads = 64});
  ASSERT_GE(kinds.messages.size(), 1u);
  EXPECT_EQ(kinds.messages[0],
            "BARRIER_MISMATCH barrier 1 is in use by bar.sync or bar.arrive, but this instruction is bar.red.popc");
}

TEST(NamedBarrier, ADeadlockNamesWhoArrivedAndWhereTheOthersAre) {
  const auto ran =
      run({.body = "setp.lt.u32 %p1, %r0, 64; @%p1 bar.sync 1, 128; @!%p1 bar.sync 2, 128;", .threads = 128});
  ASSERT_EQ(ran.result.reports.size(), 1u);
  const Report& r = ran.result.reports[0];
  EXPECT_EQ(r.kind, ReportKind::deadlock);
  EXPECT_TRUE(
      r.message.starts_with("warp 0 lanes ffffffff bar.sync 1, 128 at one.ptx:11 (line 11): barrier 1: 2 of 4 "
                            "warps arrived (0 1)\n  missing warp 2: lanes ffffffff at bar.sync 2, 128"))
      << r.message;
  EXPECT_EQ(r.hint, "warp 2 is missing: it waits at barrier 2\nwarp 0 is missing: it waits at barrier 1");
}

TEST(ClusterBarrier, AllThreadsOfTheClusterArriveBeforeAnyPasses) {
  const auto ran = run({.body = R"(
    mov.u32 %r1, %cluster_ctarank;
    setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, 77;
    @%p1 st.global.u32 [%rd0], %r2;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    setp.eq.u32 %p2, %r1, 1;
    @%p2 ld.global.u32 %r3, [%rd0];
    @%p2 st.global.u32 [%rd0+4], %r3;)",
                        .threads = 64,
                        .grid = 4,
                        .cluster = {2, 1, 1}});
  EXPECT_TRUE(ran.messages.empty());
  EXPECT_EQ(ran.word(1), 77u);
}

TEST(ClusterBarrier, ArrivingTwiceAndWaitingWithoutArrivingAreErrors) {
  const auto twice = run({.body = "barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait;"});
  ASSERT_EQ(twice.messages.size(), 1u);
  EXPECT_EQ(twice.messages[0], "BARRIER_REARRIVE lanes ffffffff arrive at the cluster's barrier again without a wait");
  const auto never = run({.body = "barrier.cluster.wait;"});
  ASSERT_EQ(never.messages.size(), 1u);
  EXPECT_EQ(never.messages[0], "BARRIER_REARRIVE lanes ffffffff wait at the cluster's barrier without having arrived");
}

}  // namespace
}  // namespace kvscope::ptx::barriers_test
