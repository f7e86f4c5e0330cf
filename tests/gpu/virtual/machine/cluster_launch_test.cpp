// Cluster launch control: CTAs that cancel the launch of later ones and do their work, each exactly once.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "gpu/virtual/machine/memory/windows.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::cluster_launch_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Adds 1 to out[id] for its own id, then for each id that it takes over; counts the CTAs that ran in out[grid].
std::string persistent(int grid) {
  return R"(
    mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra DONE;
    mbarrier.init.shared.b64 [s], 1; fence.proxy.async; mov.u32 %r2, 0;
    red.global.add.u32 [%rd0+)" +
         std::to_string(4 * grid) + R"(], 1;
    WORK: mad.wide.u32 %rd2, %r1, 4, %rd0; red.global.add.u32 [%rd2], 1;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [s], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [s+16], [s];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [s], %r2; @!%p1 bra WAIT;
    xor.b32 %r2, %r2, 1;
    ld.shared.b128 %rq0, [s+16]; fence.proxy.async;
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %rq0;
    @!%p2 bra DONE;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, %r4, %r5, _}, %rq0;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %rq0;
    setp.eq.u32 %p3, %r1, %r3; @%p3 bra WORK; trap;
    DONE:)";
}

TEST(ClusterLaunch, EachIdIsDoneOnceWhetherItsCtaRunsOrIsCanceled) {
  for (const Policy policy : {Policy::late, Policy::early, Policy::seeded}) {
    for (const int residents : {1, 4, 264}) {
      OneKernel kernel{.body = persistent(40), .out_bytes = 4 * 41, .grid = 40, .target = "sm_100a"};
      kernel.options.policy = policy;
      kernel.options.seed = 9;
      kernel.options.resident_limit = residents;
      const Ran ran = run(kernel);
      EXPECT_THAT(ran.messages, IsEmpty());
      EXPECT_EQ(ran.result.status, LaunchStatus::finished);
      for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(ran.word(i), 1u) << i;
      const std::uint32_t ran_ctas = ran.word(40);
      EXPECT_GE(ran_ctas, 1u);
      // The only resident CTA takes all others over.
      EXPECT_LE(ran_ctas, residents == 1 ? 1u : 40u);
    }
  }
}

TEST(ClusterLaunch, GivesTheFirstIdOfACluster) {
  OneKernel kernel{.body = R"(
    mov.u32 %r1, %ctaid.x; or.b32 %r2, %r1, %r0; setp.ne.u32 %p0, %r2, 0; @%p0 bra DONE;
    mbarrier.init.shared.b64 [s], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 %rd3, [s], 16;
    clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [s+16], [s];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [s], 0; @!%p1 bra WAIT;
    ld.shared.b128 %rq0, [s+16];
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r3, %rq0; st.global.u32 [%rd0], %r3;
    DONE:)",
                   .grid = 6,
                   .cluster = {2, 1, 1},
                   .target = "sm_100a"};
  kernel.options.resident_limit = 2;
  kernel.body = "mov.u32 %r10, s;" + kernel.body;
  const auto replace = [&](const std::string& from, const std::string& to) {
    kernel.body.replace(kernel.body.find(from), from.size(), to);
  };
  replace("[s+16], [s];", "[%rd5], [%rd6];");
  kernel.body = "mov.u64 %rd4, s; cvta.shared.u64 %rd6, %rd4; add.u64 %rd5, %rd6, 16;" + kernel.body;
  const Ran ran = run(kernel);
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 2u);
}

// Shared memory that engines write, as monitors are told.
struct EngineWrites final : Monitor {
  std::vector<ByteRange> ranges;
  void async_issue(const Exec&, const AsyncOp&, ByteRanges, ByteRanges writes) override {
    ranges.insert(ranges.end(), writes.begin(), writes.end());
  }
};

// The checkers follow the response into the memory of each CTA.
TEST(ClusterLaunch, AResponseToAllCtasIsAWriteToEachOfThem) {
  EngineWrites writes;
  OneKernel kernel{.body = R"(
    setp.ne.u32 %p0, %r0, 0; @%p0 bra DONE;
    mbarrier.init.shared.b64 [s], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
    barrier.cluster.arrive; barrier.cluster.wait;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [s], 16;
    mov.u32 %r1, %cluster_ctarank; setp.ne.u32 %p1, %r1, 0;
    @!%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [s+16], [s];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [s], 0; @!%p2 bra WAIT;
    barrier.cluster.arrive; barrier.cluster.wait;
    DONE:)",
                   .threads = 1,
                   .grid = 4,
                   .cluster = {2, 1, 1},
                   .target = "sm_100a",
                   .monitor = &writes};
  kernel.options.resident_limit = 2;
  EXPECT_THAT(run(kernel).messages, IsEmpty());
  EXPECT_THAT(writes.ranges, ElementsAre(ByteRange{Space::shared, shared_address(0, 0x410), 16},
                                         ByteRange{Space::shared, shared_address(1, 0x410), 16}));
}

TEST(ClusterLaunch, ReportsAResponseThatIsNotAligned) {
  const Ran ran =
      run({.body = "mbarrier.init.shared.b64 [s], 1;"
                   "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [s+8], [s];",
           .threads = 1,
           .target = "sm_100a"});
  ASSERT_FALSE(ran.messages.empty());
  EXPECT_THAT(ran.messages[0], HasSubstr("MISALIGNED"));
}

}  // namespace
}  // namespace kvscope::ptx::test::cluster_launch_test
