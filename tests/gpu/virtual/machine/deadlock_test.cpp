// Reports of launches without progress: the place and the wait of every lane group, and the likely cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::deadlock_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Waits at the object in s + 8 for parity `parity`, in a loop.
std::string wait_for(int parity) {
  return "\nW: mbarrier.try_wait.parity.shared.b64 %p7, [s+8], " + std::to_string(parity) + ";\n@!%p7 bra W;";
}
Report report(const OneKernel& kernel, ReportKind kind) {
  const Ran ran = run(kernel);
  for (const Report& r : ran.result.reports) {
    if (r.kind == kind) return r;
  }
  ADD_FAILURE() << ::testing::PrintToString(ran.messages);
  return {};
}

TEST(Deadlock, ANamedBarrierListsArrivedAndMissingWarps) {
  const Report r = report({.body = R"(setp.lt.u32 %p1, %r0, 32; setp.ge.u32 %p2, %r0, 96;
    @%p1 bra HERE; @%p2 exit;
    setp.lt.u32 %p3, %r0, 64; @%p3 bar.sync 5, 96; bar.sync 1, 96;
    HERE: bar.sync 1, 96;)",
                           .threads = 128},
                          ReportKind::deadlock);
  EXPECT_THAT(r.message,
              HasSubstr("warp 0 lanes ffffffff bar.sync 1, 96 at one.ptx:14 (line 14): barrier 1: 2 of 3 warps "
                        "arrived (0 2)\n  missing warp 1: lanes ffffffff at bar.sync 5, 96 at one.ptx:13 (line 13)\n  "
                        "missing warp 3: lanes "
                        "ffffffff exited"));
  EXPECT_THAT(r.hint, HasSubstr("warp 1 is missing: it waits at barrier 5"));
  EXPECT_THAT(r.hint, HasSubstr("warp 3 is missing: it has exited"));
}

TEST(Deadlock, AnMbarrierReportsItsPlacePhaseAndMissingArrivals) {
  const Report r = report({.body = R"(setp.eq.u32 %p1, %r0, 0;
    @%p1 mbarrier.init.shared.b64 [s+8], 12; bar.warp.sync 0xffffffff;
    setp.lt.u32 %p2, %r0, 10;
    @%p2 mbarrier.arrive.shared.b64 _, [s+8];)" +
                                   wait_for(0)},
                          ReportKind::deadlock);
  EXPECT_THAT(r.message, HasSubstr("mbarrier s + 8: parity 0, phase 0, pending 2 of 12, tx 0"));
  // The last eight of the ten.
  EXPECT_THAT(r.message, Not(HasSubstr("arrived: thread 1 ")));
  for (int thread = 2; thread < 10; ++thread) {
    EXPECT_THAT(r.message, HasSubstr("\n  arrived: thread " + std::to_string(thread) +
                                     " mbarrier.arrive.shared.b64 _, [s+8] at one.ptx:14 (line 14)"));
  }
}

// nvcc declares a shared variable of a kernel under a mangled name.
TEST(Deadlock, AnMbarrierHasTheNameOfItsVariableInTheSource) {
  const Report r = report({.body = R"(.shared .align 8 .b64 _ZZ1kPiE4full;
    setp.eq.u32 %p1, %r0, 0;
    @%p1 mbarrier.init.shared.b64 [_ZZ1kPiE4full], 12; bar.warp.sync 0xffffffff;
    W: mbarrier.try_wait.parity.shared.b64 %p3, [_ZZ1kPiE4full], 0;
    @!%p3 bra W;)"},
                          ReportKind::deadlock);
  EXPECT_THAT(r.message, HasSubstr("mbarrier full + 0: parity 0, phase 0, pending 12 of 12, tx 0"));
}

TEST(Deadlock, CopiesAgainstAnMbarrierAreCounted) {
  const std::string copy =
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+64], [%rd1], 32, [s+8];\n";
  const std::string begin = "setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared.b64 [s+8], 1; bar.warp.sync -1;\n";
  // No thread announces the bytes.
  const Report none = report({.body = begin + copy + copy + wait_for(0)}, ReportKind::deadlock);
  EXPECT_THAT(none.message, HasSubstr("pending 1 of 1, tx -64, 2 copies of 64 bytes in total"));
  EXPECT_EQ(none.hint, "copies completed 64 bytes but no thread arrived: missing arrive.expect_tx");
  // Too many are announced.
  const Report many =
      report({.body = begin + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [s+8], 48;\n" + copy + wait_for(0)},
             ReportKind::deadlock);
  EXPECT_THAT(many.message, HasSubstr("pending 0 of 1, tx 16, 1 copies of 32 bytes in total"));
  EXPECT_EQ(many.hint, "16 bytes expected but not copied");
}

TEST(Deadlock, AParityThatIsPastIsAHint) {
  const Report r = report({.body = R"(setp.eq.u32 %p1, %r0, 0;
    @%p1 mbarrier.init.shared.b64 [s+8], 1; bar.warp.sync -1;
    @%p1 mbarrier.arrive.shared.b64 _, [s+8];)" +
                                   wait_for(1)},
                          ReportKind::deadlock);
  EXPECT_THAT(r.message, HasSubstr("mbarrier s + 8: parity 1, phase 1, pending 1 of 1, tx 0"));
  EXPECT_EQ(r.hint, "waited with the wrong parity");
}

// Rank 0 waits for the cluster, rank 1 for its own object: both are reported. Another arrival is missing at rank 0's.
TEST(Deadlock, EachCtaOfAClusterReportsItsWaits) {
  const Ran ran = run({.body = R"(mov.u32 %r1, %cluster_ctarank; add.u32 %r2, %r1, 3;
    setp.eq.u32 %p1, %r0, 0; setp.eq.u32 %p2, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [s+8], %r2; bar.warp.sync -1;
    @%p2 bra END;)" + wait_for(0) +
                               "\nEND: barrier.cluster.arrive; barrier.cluster.wait;",
                       .grid = 2,
                       .cluster = {2, 1, 1}});
  ASSERT_EQ(ran.result.reports.size(), 2U);
  EXPECT_EQ(ran.result.reports[0].cluster_rank, 0);
  EXPECT_THAT(ran.messages[0], HasSubstr("missing rank 1 warp 0: lanes ffffffff at mbarrier.try_wait"));
  EXPECT_EQ(ran.result.reports[1].cluster_rank, 1);
  EXPECT_THAT(ran.messages[1], HasSubstr("mbarrier s + 8: parity 0, phase 0, pending 4 of 4, tx 0"));
}

TEST(Deadlock, AMaskedSyncListsPresentMissingAndExitedLanes) {
  const Report r = report({.body = R"(setp.lt.u32 %p1, %r0, 8; @%p1 exit;
    setp.lt.u32 %p2, %r0, 16; @%p2 bra HERE;
    bar.warp.sync 0xffffff00;
    HERE: bar.warp.sync 0xffffffff;)"},
                          ReportKind::diverged);
  EXPECT_THAT(r.message,
              HasSubstr("mask ffffffff: lanes 0000ff00 are here; missing lanes 000000ff exited; lanes ffff0000 "
                        "at bar.warp.sync 0xffffff00 at one.ptx:13 (line 13)"));
}

TEST(Deadlock, APollingLoopReportsTheLocationAndItsValue) {
  const Report shared = report({.body = "@%p1 bra E; st.volatile.shared.u32 [s+16], 5;\nL: ld.volatile.shared.u32 %r1, "
                                        "[s+16];\nsetp.ne.u32 %p2, %r1, 6;\n@%p2 bra L;\nE: bar.sync 0;"},
                               ReportKind::global_spin);
  EXPECT_THAT(shared.message, HasSubstr("loops and polls shared s + 16, which is 0x5"));
  EXPECT_THAT(shared.message, StartsWith("warp 0 lanes ffffffff "));
  const Report global =
      report({.body = "L: ld.acquire.gpu.global.u64 %rd2, [%rd1+8];\nsetp.ne.u64 %p2, %rd2, 6;\n@%p2 bra L;",
              .in = bytes_of(std::vector<std::uint64_t>{1, 0x1234567890})},
             ReportKind::global_spin);
  EXPECT_THAT(global.message, HasSubstr("loops and polls global in + 8, which is 0x1234567890"));
  EXPECT_EQ(global.hint, "needs co-resident CTAs, or no thread writes what they poll");
}

TEST(Deadlock, ALoopOverTestWaitReportsTheBarrierItTests) {
  const Report r = report({.body = R"(setp.eq.u32 %p1, %r0, 0;
    @%p1 mbarrier.init.shared.b64 [s+8], 3; bar.warp.sync -1;
    @%p1 mbarrier.arrive.shared.b64 _, [s+8];
    W: mbarrier.test_wait.parity.shared.b64 %p7, [s+8], 0;
    @!%p7 bra W;)"},
                          ReportKind::global_spin);
  EXPECT_THAT(r.message, HasSubstr("goes round and asks mbarrier s + 8: phase 0, pending 2 of 3, tx 0"));
  EXPECT_THAT(r.message, HasSubstr("arrived: thread 0 mbarrier.arrive"));
}

TEST(Deadlock, TheClusterBarrierListsTheMissingWarps) {
  const Report r = report({.body = R"(mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 1;
    @!%p1 bra C; bar.sync 3, 64;
    C: barrier.cluster.arrive; barrier.cluster.wait;)",
                           .grid = 2,
                           .cluster = {2, 1, 1}},
                          ReportKind::deadlock);
  EXPECT_THAT(r.message, HasSubstr("the cluster's barrier\n  missing rank 1 warp 0: lanes ffffffff at bar.sync 3, 64"));
}

}  // namespace
}  // namespace kvscope::ptx::test::deadlock_test
