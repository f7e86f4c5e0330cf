#include <gmock/gmock.h>

#include "gpu/virtual/machine/monitor.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::copies_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

LaunchOptions with(Policy policy, std::uint64_t seed = 0) {
  LaunchOptions options;
  options.policy = policy;
  options.seed = seed;
  return options;
}
const std::vector<LaunchOptions> kPolicies = {with(Policy::late), with(Policy::early), with(Policy::seeded, 1),
                                              with(Policy::seeded, 2)};

constexpr const char* kSpread = R"(
  mul.lo.u32 %r9, %r0, 16;
  cvt.u64.u32 %rd9, %r9;
  add.s64 %rd8, %rd1, %rd9;
  mov.u32 %r10, s;
  add.u32 %r10, %r10, %r9;
  add.s64 %rd7, %rd0, %rd9;
)";

// 16,12: 12 bytes of data and 4 zeros; a size of 0 reads nothing, whatever the source address; a true predicate
// likewise.
TEST(CpAsync, WhatIsNotReadIsZero) {
  for (const LaunchOptions& options : kPolicies) {
    const Ran ran = run({.body = std::string(kSpread) + R"(
      mov.u32 %r30, 0x77777777;
      st.shared.v4.u32 [%r10], {%r30, %r30, %r30, %r30};
      mov.u32 %r1, 12;
      setp.eq.u32 %p1, %r0, 1;   selp.b32 %r1, 0, %r1, %p1;    selp.b64 %rd8, 1, %rd8, %p1;
      setp.eq.u32 %p2, %r0, 2;   selp.b32 %r1, 16, %r1, %p2;
      cp.async.cg.shared.global [%r10], [%rd8], 16, %r1;
      cp.async.commit_group;
      cp.async.wait_group 0;
      ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r10];
      st.global.v4.u32 [%rd7], {%r1, %r2, %r3, %r4};)",
                         .in = counted(512),
                         .out_bytes = 512,
                         .options = options});
    EXPECT_THAT(ran.messages, IsEmpty());
    const std::vector<std::byte> in = counted(512);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::size_t read = lane == 1 ? 0 : lane == 2 ? 16 : 12;
      for (std::size_t b = 0; b < 16; ++b) {
        EXPECT_EQ(ran.out[16 * lane + b], b < read ? in[16 * lane + b] : std::byte{0}) << lane << ' ' << b;
      }
    }
  }
}

TEST(CpAsync, APredicateIgnoresTheSource) {
  const Ran ran = run({.body = std::string(kSpread) + R"(
    setp.lt.u32 %p1, %r0, 16;
    cp.async.ca.shared.global [%r10], [%rd8], 8, %p1;
    cp.async.wait_all;
    ld.shared.u64 %rd3, [%r10];
    st.global.u64 [%rd7], %rd3;)",
                       .in = words(std::vector<std::uint32_t>(128, 9)),
                       .out_bytes = 512});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.at<std::uint64_t>(2 * 15), 0u);
  EXPECT_EQ(ran.at<std::uint64_t>(2 * 16), 0x900000009u);
}

// Groups retire oldest first, and an empty one counts: wait_group 1 leaves the newer copy in flight (policy late).
TEST(CpAsync, WaitGroupLeavesTheYoungestOnTheirWay) {
  const auto body = [](int wait) {
    return std::string(R"(
      mov.u32 %r10, s;
      mov.u32 %r30, 0;
      st.shared.v2.u32 [%r10], {%r30, %r30};
      cp.async.ca.shared.global [%r10], [%rd1], 4;
      cp.async.commit_group;
      cp.async.ca.shared.global [%r10+4], [%rd1+4], 4;
      cp.async.commit_group;
      cp.async.commit_group;
      cp.async.wait_group )") +
           std::to_string(wait) + R"(;
      ld.shared.v2.u32 {%r1, %r2}, [%r10];
      st.global.v2.u32 [%rd0], {%r1, %r2};
      cp.async.wait_all;)";
  };
  const std::vector<std::array<std::uint32_t, 2>> late = {{7, 8}, {7, 8}, {7, 0}, {0, 0}};
  for (int wait = 0; wait < 4; ++wait) {
    const Ran ran = run({.body = body(wait), .in = words({7, 8}), .threads = 1});
    EXPECT_THAT(ran.messages, IsEmpty());
    EXPECT_EQ(ran.word(0), late[static_cast<std::size_t>(wait)][0]) << wait;
    EXPECT_EQ(ran.word(1), late[static_cast<std::size_t>(wait)][1]) << wait;
    const Ran early = run({.body = body(wait), .in = words({7, 8}), .threads = 1, .options = with(Policy::early)});
    EXPECT_EQ(early.word(0), 7u);
    EXPECT_EQ(early.word(1), 8u);
  }
}

TEST(CpAsync, ArrivesOnABarrierWhenTheThreadsCopiesAreDone) {
  for (const LaunchOptions& options : kPolicies) {
    for (const char* noinc : {"", ".noinc"}) {
      const Ran ran = run({.body = std::string(kSpread) + R"(
        setp.eq.u32 %p0, %r0, 0;
        @%p0 mbarrier.init.shared.b64 [s+2048], )" +
                                   (*noinc == 0 ? "1" : "33") + R"(;
        bar.sync 0;
        mov.u32 %r11, s;
        cp.async.ca.shared.global [%r10], [%rd8], 16;
        cp.async.mbarrier.arrive)" +
                                   noinc + R"(.shared.b64 [%r11+2048];
        bar.sync 0;
        @%p0 mbarrier.arrive.shared.b64 _, [%r11+2048];
        WAITS: mbarrier.try_wait.parity.shared.b64 %p1, [%r11+2048], 0;
        @!%p1 bra WAITS;
        ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r10];
        st.global.v4.u32 [%rd7], {%r1, %r2, %r3, %r4};)",
                           .in = counted(512),
                           .out_bytes = 512,
                           .options = options});
      EXPECT_THAT(ran.messages, IsEmpty());
      EXPECT_EQ(ran.out, counted(512));
    }
  }
}

TEST(CpAsync, WrongArgumentsAreReported) {
  const Ran ran = run({.body = R"(
    mov.u32 %r10, s;
    mov.u32 %r1, 17;
    cp.async.cg.shared.global [%r10], [%rd1], 16, %r1;
    cp.async.cg.shared.global [%r10+8], [%rd1], 16;
    cp.async.ca.shared.global [%r10], [%rd1+64], 4;
    cp.async.ca.shared.global [%r10], [%rd1], 4;)",
                       .threads = 1});
  EXPECT_THAT(ran.messages, ElementsAre("CP_ARG cp.async of 16 bytes with a source size of 17",
                                        "MISALIGNED 16-byte access at shared 0x00408 (s + 8): not a multiple of 16",
                                        "OUT_OF_BOUNDS 4 bytes at in + 64 (size 64)",
                                        "EXIT_IN_FLIGHT thread 0 ended the kernel with 1 cp.async not waited for"));
  EXPECT_EQ(ran.result.reports.back().severity, Severity::note);
}

// --- bulk ------------------------------------------------------------------------------------------------------------

TEST(BulkCopy, LoadsAndCompletesItsBarrier) {
  for (const LaunchOptions& options : kPolicies) {
    const Ran ran = run({.body = R"(
      mov.u32 %r10, s;
      mbarrier.init.shared.b64 [%r10+2048], 1;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10+2048], 272;
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%rd1+16], 256, [%r10+2048];
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10+256], [%rd1], 16, [%r10+2048];
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10+512], [%rd1], 0, [%r10+2048];
      WAITS: mbarrier.try_wait.parity.shared.b64 %p1, [%r10+2048], 0;
      @!%p1 bra WAITS;
      ld.shared.u32 %r1, [%r10];      st.global.u32 [%rd0], %r1;
      ld.shared.u32 %r1, [%r10+252];  st.global.u32 [%rd0+4], %r1;
      ld.shared.u32 %r1, [%r10+256];  st.global.u32 [%rd0+8], %r1;)",
                         .in = counted(272),
                         .threads = 1,
                         .options = options});
    EXPECT_THAT(ran.messages, IsEmpty());
    EXPECT_EQ(ran.word(0), 0x13121110u);
    EXPECT_EQ(ran.word(1), 0x14131211u);  // 268 .. 271 mod 251
    EXPECT_EQ(ran.word(2), 0x03020100u);
  }
}

TEST(BulkCopy, StoresAndReducesByGroups) {
  for (const LaunchOptions& options : kPolicies) {
    const Ran ran = run({.body = R"(
      mov.u32 %r10, s;
      mov.u32 %r1, 5;    mov.u32 %r2, -1;
      st.shared.v4.u32 [%r10], {%r1, %r2, %r1, %r2};
      mov.f32 %f1, 0f3F800000;
      st.shared.v4.f32 [%r10+16], {%f1, %f1, %f1, %f1};
      fence.proxy.async.shared::cta;
      cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r10], 16;
      cp.async.bulk.commit_group;
      cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r10], 16;
      cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%rd1+16], [%r10], 16;
      cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1+32], [%r10+16], 16;
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group.read 0;
      cp.async.bulk.wait_group 0;
      ld.global.u32 %r3, [%rd0];
      st.global.u32 [%rd0+32], %r3;)",
                         .in = words({1, 1, 1, 1, 2, 2, 2, 2, 0x40000000, 0, 0, 0, 0, 0, 0, 0}),
                         .threads = 1,
                         .options = options});
    EXPECT_THAT(ran.messages, IsEmpty());
    EXPECT_EQ(ran.word(0), 5u);
    EXPECT_EQ(ran.word(3), 0xffffffffu);
    EXPECT_EQ(ran.word(8), 5u);
    std::array<std::uint32_t, 16> in;
    std::memcpy(in.data(), ran.in.data(), 64);
    EXPECT_EQ(in[0], 6u);
    EXPECT_EQ(in[1], 0u);
    EXPECT_EQ(in[4], 2u);
    EXPECT_EQ(in[5], 0xffffffffu);
    EXPECT_EQ(in[8], 0x40400000u);
    EXPECT_EQ(in[9], 0x3f800000u);
  }
}

TEST(BulkCopy, WrongArgumentsAreReported) {
  const Ran ran = run({.body = R"(
    mov.u32 %r10, s;
    mov.u32 %r1, 20;
    mbarrier.init.shared.b64 [%r10+2048], 1;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10+8], [%rd1+4], %r1, [%r10+2048];
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%rd1], 128, [%r10+2048];
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10+4080], [%rd1], 32, [%r10+2048];
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%rd1], 16, [%r10+1024];)",
                       .threads = 1});
  ASSERT_EQ(ran.messages.size(), 4u);
  EXPECT_EQ(ran.messages[0].substr(0, 56), "CP_ARG cp.async.bulk: size 20, destination 0x408, source");
  EXPECT_TRUE(ran.messages[0].ends_with(": not a multiple of 16 bytes"));
  EXPECT_EQ(ran.messages[1], "OUT_OF_BOUNDS 128 bytes at in + 0 (size 64)");
  EXPECT_EQ(ran.messages[2], "OUT_OF_BOUNDS 32 bytes at shared 0x013f0: the CTA has 0x00400 to 0x01400 (size 4096)");
  EXPECT_EQ(ran.messages[3], "NO_MBARRIER there is no mbarrier at s + 1024");
}

TEST(BulkCopy, WhatIsOnItsWayAtTheEndIsReported) {
  const Ran ran = run({.body = R"(
    mov.u32 %r10, s;
    mbarrier.init.shared.b64 [%r10+2048], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10+2048], 32;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%rd1], 16, [%r10+2048];
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r10], 16;
    cp.async.bulk.commit_group;)",
                       .threads = 1});
  EXPECT_THAT(ran.messages,
              ElementsAre("EXIT_IN_FLIGHT thread 0 ended the kernel while a bulk store may still read shared memory",
                          "EXIT_IN_FLIGHT the CTA ended with 16 bytes of this copy in flight",
                          "MBAR_TX 16 bytes were expected at s + 2048 and did not land (tx 16, phase 0)"));
  // The kernel's name as in all other reports: short, if it is a mangled one.
  for (const Report& report : ran.result.reports) EXPECT_EQ(report.short_kernel, "k") << report.message;
}

// The report names the kind of the last copy, and its hint the wait for that kind.
TEST(BulkCopy, WhatIsOnItsWayAtTheEndIsReportedByItsKind) {
  const auto report_of = [](const std::string& copies) {
    const Ran ran =
        run({.body = "mov.u32 %r10, s;\nmbarrier.init.shared.b64 [%r10+2048], 1;\n" + copies, .threads = 1});
    EXPECT_LE(ran.result.reports.size(), 1u) << copies;
    return ran.messages.empty() ? "" : ran.messages[0] + "; " + ran.result.reports[0].hint;
  };
  const std::string group = "cp.async.bulk.commit_group, then cp.async.bulk.wait_group.read 0 before the end";
  EXPECT_EQ(report_of("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [%r10], 16;"),
            "EXIT_IN_FLIGHT thread 0 ended the kernel while a bulk reduction may still read shared memory; " + group);
  EXPECT_EQ(report_of("cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r10], 16;\ncp.async.bulk.commit_group;\n"
                      "cp.async.bulk.wait_group.read 0;\ncp.async.bulk.commit_group;"),
            "")
      << "an empty group is still open";
  const std::string copy = "cp.async.ca.shared.global [%r10], [%rd1], 4;\n",
                    note = "EXIT_IN_FLIGHT thread 0 ended the kernel with 1 cp.async not waited for; ";
  EXPECT_EQ(report_of(copy), note + "cp.async.wait_all, or cp.async.wait_group, before the end");
  EXPECT_EQ(report_of(copy + "cp.async.mbarrier.arrive.shared.b64 [%r10+2048];"),
            note + "a wait for the mbarrier of its cp.async.mbarrier.arrive, before the end");
}

// A copy of 32 bytes, and too few or too many announced: the report lists both sides.
TEST(BulkCopy, AReportAboutBytesListsWhatWasAnnouncedAndWhatLanded) {
  const auto hint = [](const std::string& announced) {
    const Ran ran = run({.body = "mov.u32 %r10, s; mbarrier.init.shared.b64 [%r10+2048], 1;\n"
                                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10+2048], " +
                                 announced +
                                 ";\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%rd1], 32, "
                                 "[%r10+2048];\nnanosleep.u32 10;",
                         .threads = 1});
    for (const Report& r : ran.result.reports) {
      if (r.kind == ReportKind::mbar_tx) return r.hint;
    }
    return std::string();
  };
  const std::string rule = "expect_tx must name exactly the bytes of the copies";
  EXPECT_EQ(hint("16"), rule + "\nlanded     32 bytes of bulk load issued by thread 0 at one.ptx:13")
      << "the phase of the announced bytes is complete: the copy has brought too many";
  EXPECT_EQ(hint("48"), rule +
                            "\nannounced  48 bytes by thread 0 at one.ptx:12\n"
                            "landed     32 bytes of bulk load issued by thread 0 at one.ptx:13");
  EXPECT_EQ(hint("32"), "");
}

// A store waited for with .read only is no longer reported as in flight.
TEST(BulkCopy, AReadThatIsWaitedForIsEnoughAtTheEnd) {
  const Ran ran = run({.body = R"(
    mov.u32 %r10, s;
    st.shared.v4.u32 [%r10], {%r0, %r0, %r0, %r0};
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r10], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;)",
                       .threads = 1});
  EXPECT_THAT(ran.messages, IsEmpty());
}

// --- a cluster of two ------------------------------------------------------------------------------------------------

TEST(Cluster, BytesAndSignalsGoToTheOtherCta) {
  for (const LaunchOptions& options : kPolicies) {
    const Ran ran = run({.body = R"(
      mov.u32 %r10, s;
      mov.u32 %r1, %cluster_ctarank;
      xor.b32 %r2, %r1, 1;
      mbarrier.init.shared::cta.b64 [%r10+2048], 1;
      fence.mbarrier_init.release.cluster;
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      mapa.shared::cluster.u32 %r11, %r10, %r2;
      getctarank.shared::cluster.u32 %r12, %r11;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10+2048], 12;
      add.u32 %r3, %r1, 100;
      st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r11+64], {%r3, %r2}, [%r11+2048];
      red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r11+72], %r3, [%r11+2048];
      WAITS: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r10+2048], 0;
      @!%p1 bra WAITS;
      ld.shared.u32 %r4, [%r10+64];  ld.shared.u32 %r5, [%r10+68];  ld.shared.u32 %r6, [%r10+72];
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      mul.wide.u32 %rd2, %r1, 16;   add.s64 %rd2, %rd0, %rd2;
      st.global.v4.u32 [%rd2], {%r4, %r5, %r6, %r12};)",
                         .threads = 1,
                         .grid = 2,
                         .cluster = {2, 1, 1},
                         .options = options});
    EXPECT_THAT(ran.messages, IsEmpty());
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const auto other = static_cast<std::uint32_t>(1 - rank);
      EXPECT_EQ(ran.word(4 * rank), 100 + other);
      EXPECT_EQ(ran.word(4 * rank + 1), static_cast<std::uint32_t>(rank));
      EXPECT_EQ(ran.word(4 * rank + 2), 99 + other) << "shared began as ff";
      EXPECT_EQ(ran.word(4 * rank + 3), other);
    }
  }
}

// A CTA may copy within its shared memory. The bytes that arrive are those of before, also where both ranges overlap.
TEST(Bulk, ACopyOverItsOwnSourceMovesTheBytesOfBefore) {
  for (const auto& [to, from] : {std::pair{64, 0}, {0, 64}}) {
    const std::string copy = "[%r10+" + std::to_string(to) + "], [%r10+" + std::to_string(from) + "]";
    const Ran ran = run({.body = R"(
      mov.u32 %r10, s;
      mad.lo.u32 %r11, %r0, 4, %r10;
      st.shared.u32 [%r11], %r0;
      setp.eq.u32 %p0, %r0, 0;
      @%p0 mbarrier.init.shared::cta.b64 [%r10+2048], 1;
      fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;
      @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10+2048], 128;
      @%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes )" +
                                 copy + R"(, 128, [%r10+2048];
      WAITS: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r10+2048], 0;
      @!%p1 bra WAITS;
      ld.shared.u32 %r12, [%r11];
      mul.wide.u32 %rd2, %r0, 4;
      add.s64 %rd2, %rd0, %rd2;
      st.global.u32 [%rd2], %r12;)",
                         .out_bytes = 256,
                         .threads = 64});
    EXPECT_THAT(ran.messages, IsEmpty());
    for (int word = 0; word < 64; ++word) {
      const bool is_target = 4 * word >= to && 4 * word < to + 128;
      EXPECT_EQ(ran.word(static_cast<std::size_t>(word)),
                static_cast<std::uint32_t>(is_target ? word + (from - to) / 4 : word))
          << "from " << from << " to " << to;
    }
  }
}

// CTA 0 of a cluster copies 16 bytes to the CTAs of `mask`; those of `waiting` wait for them and store the first word.
Ran multicast(const std::string& mask, std::uint32_t waiting, const LaunchOptions& options) {
  return run({.body = "mov.u32 %r1, " + std::to_string(waiting) + ";\nmov.u32 %r5, " + mask + R"(;
    mov.u32 %r10, s;
    mov.u32 %r2, %cluster_ctarank;
    setp.eq.u32 %p0, %r2, 0;
    shr.u32 %r3, %r1, %r2; and.b32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0;
    mbarrier.init.shared::cta.b64 [%r10+2048], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10+2048], 16;
    cvt.u16.u32 %rs1, %r5;
    @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r10], [%rd1], 16, [%r10+2048], %rs1;
    @!%p1 bra DONE;
    WAITS: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r10+2048], 0;
    @!%p2 bra WAITS;
    ld.shared.u32 %r4, [%r10];
    mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd0, %rd2;
    st.global.u32 [%rd2], %r4;
    DONE: barrier.cluster.arrive; barrier.cluster.wait;)",
              .in = words({7, 8, 9, 10}),
              .out_bytes = 16,
              .threads = 1,
              .grid = 3,
              .cluster = {3, 1, 1},
              .options = options});
}

TEST(Multicast, ReachesTheCtasOfItsMask) {
  for (const std::uint32_t mask : {1U, 2U, 4U, 5U, 6U, 7U}) {
    for (const LaunchOptions& options : kPolicies) {
      const Ran ran = multicast(std::to_string(mask), mask, options);
      EXPECT_THAT(ran.messages, IsEmpty()) << mask;
      for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(ran.word(rank), (mask >> rank & 1) != 0 ? 7u : 0u) << mask;
    }
  }
}

// The CTAs that exist do not wait, so that nothing else stops the kernel.
TEST(Multicast, AMaskThatNamesNoCtaOfTheClusterIsReportedAtTheCopy) {
  for (const LaunchOptions& options : kPolicies) {
    EXPECT_THAT(multicast("0x0028", 0, options).messages,
                ElementsAre("BAD_WINDOW cp.async.bulk: mask 0x0028 names rank 3 of a cluster of 3"));
    EXPECT_THAT(multicast("0x8007", 0, options).messages,
                ElementsAre("BAD_WINDOW cp.async.bulk: mask 0x8007 names rank 15 of a cluster of 3"));
    EXPECT_THAT(multicast("0", 0, options).messages,
                ElementsAre("BAD_WINDOW cp.async.bulk: mask 0x0000 names no CTA of a cluster of 3"));
  }
}

TEST(Cluster, SharedMemoryOfACtaThatHasExitedIsGone) {
  const Ran ran = run({.body = R"(
    mov.u32 %r10, s;
    mov.u32 %r1, %cluster_ctarank;
    setp.eq.u32 %p0, %r1, 1;
    @%p0 ret;
    mov.u32 %r3, 0;
    LOOP: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 100000; @%p1 bra LOOP;
    mov.u32 %r2, 1;
    mapa.shared::cluster.u32 %r11, %r10, %r2;
    ld.shared::cluster.u32 %r4, [%r11];
    ld.shared::cta.u32 %r4, [%r11];
    mov.u32 %r2, 2;
    mapa.shared::cluster.u32 %r11, %r10, %r2;)",
                       .threads = 1,
                       .grid = 2,
                       .cluster = {2, 1, 1}});
  EXPECT_THAT(ran.messages,
              ElementsAre("DSMEM_AFTER_EXIT 4 bytes at shared 0x01000400: the CTA of rank 1 has exited",
                          "BAD_WINDOW 4 bytes at shared 0x01000400: memory of rank 1, and this CTA is rank 0",
                          "BAD_WINDOW mapa: rank 2 of a cluster of 2"));
}

// st.async copies registers at issue, so the issuing CTA may exit.
TEST(Cluster, AnStAsyncOutlivesItsCta) {
  const Ran ran = run({.body = R"(
    mov.u32 %r10, s;
    mov.u32 %r1, %cluster_ctarank;
    mbarrier.init.shared::cta.b64 [%r10+2048], 1;
    mov.u32 %r2, 0;
    mapa.shared::cluster.u32 %r11, %r10, %r2;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 bra WAITS;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r11+64], 77, [%r11+2048];
    ret;
    WAITS: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10+2048], 4;
    AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r10+2048], 0;
    @!%p1 bra AGAIN;
    ld.shared.u32 %r4, [%r10+64];
    st.global.u32 [%rd0], %r4;)",
                       .threads = 1,
                       .grid = 2,
                       .cluster = {2, 1, 1}});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 77u);
}

// --- events reported to monitors -------------------------------------------------------------------------------------

class Recorder : public Monitor {
 public:
  std::vector<std::string> calls;
  void async_issue(const Exec&, const AsyncOp& op, std::span<const ByteRange> reads,
                   std::span<const ByteRange> writes) override {
    calls.push_back("issue " + std::string(name(op.kind)) + " reads " + text(reads) + " writes " + text(writes));
  }
  void async_moves(Launch&, const Cta&, const AsyncOp& op, std::span<const ByteRange>,
                   std::span<const ByteRange>) override {
    calls.push_back("moves " + std::string(name(op.kind)));
  }
  void async_done(Launch&, const Cta&, const AsyncOp& op) override {
    calls.push_back("done " + std::string(name(op.kind)));
  }
  void group_commit(const Exec&, AsyncKind kind, LaneMask) override {
    calls.push_back("commit " + std::string(name(kind)));
  }
  void group_wait(const Exec&, AsyncKind kind, LaneMask, bool reads_only,
                  std::span<const std::uint64_t, kLanes> last) override {
    calls.push_back("wait " + std::string(name(kind)) + (reads_only ? " read" : "") +
                    (last[0] != 0 ? " some" : " none"));
  }
  void mbarrier(Launch&, const Cta&, const Exec* exec, LaneMask, MbarrierEvent event, std::uint64_t, std::int64_t value,
                Order, Scope) override {
    constexpr const char* kNames[] = {"init",        "inval",      "arrive",    "expect_tx",
                                      "complete_tx", "phase_done", "wait_true", "wait_false"};
    calls.push_back(std::string(kNames[static_cast<int>(event)]) + " " + std::to_string(value) +
                    (exec == nullptr ? " by an engine" : ""));
  }

 private:
  static std::string text(std::span<const ByteRange> ranges) {
    std::string all;
    for (const ByteRange& r : ranges) {
      all += (all.empty() ? "" : "+") + std::string(name(r.space)) + " " + std::to_string(r.bytes);
    }
    return all.empty() ? "nothing" : all;
  }
};

// A group waited for with .read is waited for again in full: only then are its writes ordered.
TEST(Monitors, ReceiveEveryStepOfACopy) {
  Recorder recorder;
  const Ran ran = run({.body = R"(
    mov.u32 %r10, s;
    mbarrier.init.shared.b64 [%r10+2048], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10+2048], 32;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%rd1], 32, [%r10+2048];
    mbarrier.try_wait.parity.shared.b64 %p1, [%r10+2048], 0;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r10], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    cp.async.bulk.wait_group 0;
    cp.async.bulk.wait_group 0;
    cp.async.ca.shared.global [%r10], [%rd1], 16, 8;
    cp.async.wait_all;)",
                       .threads = 1,
                       .monitor = &recorder});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_THAT(
      recorder.calls,
      ElementsAre("init 1", "expect_tx 32", "arrive 1", "issue bulk load reads global 32 writes shared 32",
                  "wait_false 0", "moves bulk load", "done bulk load", "complete_tx 32 by an engine",
                  "phase_done 0 by an engine", "wait_true 0", "issue bulk store reads shared 16 writes global 16",
                  "commit bulk store", "moves bulk store", "done bulk store", "wait bulk store read some",
                  "wait bulk store some", "wait bulk store none", "issue cp.async reads global 8 writes shared 16",
                  "commit cp.async", "moves cp.async", "done cp.async", "wait cp.async some"));
}

}  // namespace
}  // namespace kvscope::ptx::test::copies_test
