// Reads and writes of engines, and what orders them: waits of the issuer, arrival barriers, proxy fences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::engines_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Each thread copies 4 bytes to its place in `s`.
const char* const kCopyIn =
    "cvt.u64.u32 %rd1, %r0; shl.b64 %rd1, %rd1, 2; add.u64 %rd1, %rd1, %rd0; cp.async.ca.shared.global [%r3], [%rd1], "
    "4;\n";

// Two lanes copy to one place, unordered: a note if the bytes are equal in flight or landed, else a race.
TEST(CpAsync, UnorderedCopiesOfEqualBytesAreANote) {
  const auto kernel = [](const std::string& between, const std::string& second) {
    return Watched{.body = "setp.eq.u32 %p3, %r0, 1; add.u64 %rd2, %rd0, " + second +
                           ";\n@%p0 cp.async.ca.shared.global [s], [%rd0], 8;\n" + between +
                           "\n@%p3 cp.async.ca.shared.global [s], [%rd2], 8;\ncp.async.wait_all;",
                   .threads = 32};
  };
  // Byte i of the array is i % 251, so the source at 2008 = 8 * 251 has the bytes of the one at 0.
  for (const char* between : {"", "cp.async.wait_all;"}) {
    const Seen equal = watch(kernel(between, "2008"));
    ASSERT_EQ(equal.races.size(), 1u) << between;
    EXPECT_THAT(equal.races[0],
                StartsWith("SAME_VALUE s+0 8: write cp.async of thread 0 k.ptx:2; write cp.async of thread 1"));
    EXPECT_THAT(equal.text, HasSubstr("both copy the same bytes"));
    EXPECT_TRUE(equal.result.clean());
    const Seen other = watch(kernel(between, "64"));
    ASSERT_EQ(other.races.size(), 1u) << between;
    EXPECT_THAT(other.races[0],
                StartsWith("RACE_WW s+0 8: write cp.async of thread 0 k.ptx:2; write cp.async of thread 1"));
  }
  Watched strict = kernel("", "2008");
  strict.checks.race.same_value = SameValue::error;
  EXPECT_THAT(watch(strict).races, ElementsAre(StartsWith("RACE_WW")));
  strict.checks.race.same_value = SameValue::ignore;
  EXPECT_THAT(watch(strict).races, IsEmpty());
}

// Each lane's bulk stores read one tile again and again, unordered with a later store. The marks of a chunk stay as many
// as there are engines.
TEST(Bulk, ReadsOfOneTileByManyStoresStayBounded) {
  const auto seconds = [](int times) {
    const std::clock_t began = std::clock();  // of the processor: other programs do not count
    const Seen seen =
        watch({.body = "mov.u32 %r4, 0;\nL: cp.async.bulk.global.shared::cta.bulk_group [%rd0+1024], [s], "
                       "512;\nadd.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, " +
                       std::to_string(times) +
                       "; @%p3 bra L;\nst.shared.u32 [s], %r0;\ncp.async.bulk.commit_group;"
                       "cp.async.bulk.wait_group 0;",
               .threads = 40});
    EXPECT_THAT(seen.races, Contains(HasSubstr("read bulk store")));
    return static_cast<double>(std::clock() - began);
  };
  static_cast<void>(seconds(10));
  EXPECT_LT(seconds(800), 24 * seconds(100)) << "8 times the copies take 8 times as long, not 64 times";
}

// Copies of one tile that each count on an own barrier: as many unordered reads of each chunk as there are barriers, then
// a store that is ordered after half of them.
TEST(Bulk, ReadsOfOneTileThatCountOnManyBarriersTakeLinearTime) {
  const auto seconds = [](int barriers) {
    const std::string many = std::to_string(barriers);
    const std::clock_t began = std::clock();
    const Seen seen = watch(
        {.body =
             ".shared .align 16 .b64 many[" + many +
             "];\nmov.u32 %r4, 0; mov.u32 %r5, many;\nL: mbarrier.init.shared.b64 [%r5], 1; "
             "fence.mbarrier_init.release.cluster; mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r5], 2048;\n"
             "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [s+2048], [s], 2048, [%r5];\n"
             "add.u32 %r5, %r5, 8; add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, " +
             many +
             "; @%p3 bra L;\nsub.u32 %r5, %r5, 8;\nW: mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0; @!%p3 bra W;\n"
             "sub.u32 %r5, %r5, 16; sub.u32 %r4, %r4, 2; setp.gt.u32 %p3, %r4, 1; @%p3 bra W;\n"
             "st.shared.u32 [s], %r0;\n",
         .threads = 1});
    EXPECT_THAT(seen.races, Contains(HasSubstr("read bulk copy")));
    return static_cast<double>(std::clock() - began);
  };
  static_cast<void>(seconds(10));
  EXPECT_LT(seconds(1500), 30 * seconds(150)) << "10 times the copies take 10 times as long, not 100 times";
}

TEST(CpAsync, TheIssuerMustWaitForItsCopy) {
  const auto kernel = [](const char* wait) {
    return Watched{.body = std::string(kCopyIn) + "cp.async.commit_group;\n" + wait + "\nld.shared.u32 %r9, [%r3];"};
  };
  EXPECT_THAT(watch_all(kernel("cp.async.wait_group 0;")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("cp.async.wait_all;")), IsEmpty());
  const Seen seen = watch(kernel(""));
  EXPECT_EQ(seen.text,
            "RACE read-after-write  shared 0x00400 (s + 0)  kernel k  cta (0,0,0)\n"
            "  write  cp.async of thread 0                             k.ptx:1\n"
            "  read   thread 0 (warp 0 lane 0)  ld.shared.u32          k.ptx:4\n"
            "  no order between them; thread 0 has not synchronized since it began\n"
            "  thread 0 has not waited for this copy: cp.async.wait_group or wait_all has to come first");
}

// A barrier is there: a report that named only the last synchronization would send its reader to look for another one.
TEST(CpAsync, AReportTellsAMissingWaitFromAMissingBarrier) {
  const auto text = [](const char* order) {
    return watch({.body = std::string(kCopyIn) + order + "\nxor.b32 %r4, %r3, 4;\nld.shared.u32 %r9, [%r4];"}).text;
  };
  EXPECT_THAT(
      text("bar.sync 0;"),
      AllOf(HasSubstr("thread 32 last synchronized at k.ptx:2 (barrier)"),
            HasSubstr("thread 33 has not waited for this copy: cp.async.wait_group or wait_all has to come before "
                      "the barrier")));
  EXPECT_THAT(text("cp.async.wait_all;"), Not(HasSubstr("has not waited")));
}

TEST(CpAsync, WaitGroupOneDoesNotWaitForTheNewestGroup) {
  const auto kernel = [](const char* left) {
    return Watched{.body = std::string(kCopyIn) +
                           "cp.async.commit_group;\ncp.async.ca.shared.global [%r3+1024], [%rd1], 4;\n"
                           "cp.async.commit_group;\ncp.async.wait_group " +
                           left + ";\nld.shared.u32 %r9, [%r3];\nld.shared.u32 %r9, [%r3+1024];"};
  };
  EXPECT_THAT(watch_all(kernel("0")), IsEmpty());
  EXPECT_THAT(watch(kernel("1")).races,
              Contains("RACE_WR s+1024 4: write cp.async of thread 0 k.ptx:3; read thread 0 (warp 0 lane 0) k.ptx:7"));
}

TEST(CpAsync, OtherThreadsNeedABarrierAfterTheWait) {
  const auto kernel = [](const char* order) {
    return Watched{.body = std::string(kCopyIn) + order + "\nxor.b32 %r4, %r3, 4;\nld.shared.u32 %r9, [%r4];"};
  };
  EXPECT_THAT(watch_all(kernel("cp.async.wait_all; bar.sync 0;")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("cp.async.wait_all;")),
              Contains(HasSubstr("write cp.async of thread 1 k.ptx:1; read thread 0")));
  // A barrier before the wait does not cover the copies.
  EXPECT_THAT(watch_all(kernel("bar.sync 0; cp.async.wait_all;")), Not(IsEmpty()));
}

TEST(CpAsync, AnArrivalForCopiesOrdersThem) {
  const auto kernel = [](const char* arrive) {
    return Watched{
        .body = std::string("@%p0 mbarrier.init.shared.b64 [m], 64;\nbar.sync 0;\n") + kCopyIn + arrive +
                "\nW: mbarrier.try_wait.parity.shared::cta.b64 %p5, [m], 0;\n@!%p5 bra W;\nxor.b32 %r4, %r3, 4;\n"
                "ld.shared.u32 %r9, [%r4];"};
  };
  EXPECT_THAT(watch_all(kernel("cp.async.mbarrier.arrive.noinc.shared.b64 [m];")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("mbarrier.arrive.shared::cta.b64 _, [m];")),
              Contains("RACE_WR s+4 4: write cp.async of thread 1 k.ptx:3; read thread 0 (warp 0 lane 0) k.ptx:8"));
}

// A wait still covers copies that an arrival has covered before.
TEST(CpAsync, AWaitAfterAnArrivalStillCoversTheCopies) {
  EXPECT_THAT(watch_all({.body = std::string("@%p0 mbarrier.init.shared.b64 [m], 64;\nbar.sync 0;\n") + kCopyIn +
                                 "cp.async.mbarrier.arrive.noinc.shared.b64 [m];\ncp.async.wait_all;\n"
                                 "ld.shared.u32 %r9, [%r3];"}),
              IsEmpty());
}

// Thread 0 loads 256 bytes.
std::string bulk_load(const std::string& expect = "256") {
  return "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [m], " + expect +
         ";\n@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd0], 256, [m];\n";
}
const char* const kInit = "@%p0 mbarrier.init.shared.b64 [m], 1; fence.mbarrier_init.release.cluster; bar.sync 0;\n";
const char* const kWait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [m], 0;\n@!%p5 bra W;\n";

TEST(BulkLoad, ItsBytesMayBeReadAfterThePhase) {
  EXPECT_THAT(watch_all({.body = kInit + bulk_load() + kWait + "ld.shared.u32 %r9, [%r3];"}), IsEmpty());
}

// The bytes have not moved yet under `late`: the write counts from its issue on.
TEST(BulkLoad, IsPendingFromItsIssueOn) {
  for (const Policy policy : {Policy::late, Policy::early}) {
    EXPECT_THAT(
        watch({.body = kInit + bulk_load() + "ld.shared.u32 %r9, [%r3];\n" + kWait, .launch = {.policy = policy}})
            .races,
        Contains("RACE_WR s+0 4: write bulk load, mbarrier m + 0 issued by thread 0 k.ptx:3; read thread 0 "
                 "(warp 0 lane 0) k.ptx:4"));
  }
}

TEST(BulkLoad, OverwritesOnlyWhatHasBeenRead) {
  const auto kernel = [](const char* between) {
    return Watched{.body = kInit + std::string("ld.shared.u32 %r9, [%r3];\n") + between + "\n" + bulk_load() + kWait};
  };
  EXPECT_THAT(watch_all(kernel("bar.sync 0;")), IsEmpty());
  EXPECT_THAT(
      watch(kernel("")).races,
      ElementsAre("RACE_RW s+4 4: read thread 1 (warp 0 lane 1) k.ptx:2; write bulk load, mbarrier m + 0 issued by "
                  "thread 0 k.ptx:5"));
}

// All lanes of a warp overwrite 16 bytes each: the first half of them what is being loaded.
TEST(BulkLoad, ItsBytesMayBeOverwrittenByAWarpAfterThePhase) {
  for (const char* form : {"st.shared.v4.u32 [%r9], {%r0, %r0, %r0, %r0};\n",
                           "cp.async.ca.shared.global [%r9], [%rd0], 16; cp.async.wait_all;\n"}) {
    const auto kernel = [&](const std::string& before, const std::string& behind) {
      return Watched{
          .body = kInit + bulk_load() + before + "shl.b32 %r9, %r0, 4; add.u32 %r9, %r9, %r60;\n" + form + behind,
          .threads = 32};
    };
    EXPECT_THAT(watch_all(kernel(kWait, "")), IsEmpty()) << form;
    EXPECT_THAT(
        watch(kernel("", kWait)).races,
        Contains(StartsWith("RACE_WW s+0 16: write bulk load, mbarrier m + 0 issued by thread 0 k.ptx:3; write")))
        << form;
  }
}

// The phase completes when half of the bytes have landed.
TEST(BulkLoad, APhaseThatCompletesTooEarlyPublishesNothing) {
  const std::string second =
      "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+1024], [%rd0], 256, [m];\n";
  Watched kernel{.body = kInit + bulk_load("256") + second + kWait + "ld.shared.u32 %r9, [%r3+1024];"};
  EXPECT_THAT(watch(kernel).races, Contains(StartsWith("RACE_WR s+1024 4: write bulk load")));
  kernel.body = kInit + bulk_load("512") + second + kWait + "ld.shared.u32 %r9, [%r3+1024];";
  EXPECT_THAT(watch_all(kernel), IsEmpty());
}

// A wait for a phase that the copy does not complete returns, and orders nothing: the report names the phase that it saw.
TEST(BulkLoad, AWaitForAnotherPhaseIsExplained) {
  const auto wait_for = [](const char* label, const char* parity) {
    return std::string(label) + ": mbarrier.try_wait.parity.shared::cta.b64 %p5, [m], " + parity + ";\n@!%p5 bra " +
           label + ";\n";
  };
  const std::string load = "ld.shared.u32 %r9, [%r3];\n", again = "bar.sync 0;\n" + bulk_load();
  const Seen new_barrier =
      watch({.body = kInit + bulk_load() + wait_for("A", "1") + load + wait_for("W", "0"), .threads = 32});
  EXPECT_EQ(
      new_barrier.text,
      "RACE read-after-write  shared 0x00400 (s + 0)  kernel k  cta (0,0,0)\n"
      "  write  bulk load, mbarrier m + 0 issued by thread 0     k.ptx:3\n"
      "  read   thread 0 (warp 0 lane 0)  ld.shared.u32          k.ptx:6\n"
      "  no order between them; thread 0 last synchronized at k.ptx:4 (mbarrier wait)\n"
      "  this wait returned before any phase of mbarrier m + 0 was complete: a new barrier lets a wait for parity 1 "
      "pass\n"
      "  wait for parity 0 first");
  // The second tile is waited for as the first was.
  const Seen old_phase = watch(
      {.body = kInit + bulk_load() + wait_for("A", "0") + load + again + wait_for("B", "0") + load + wait_for("W", "1"),
       .threads = 32});
  EXPECT_THAT(
      old_phase.text,
      HasSubstr("\n  this wait returned on phase 0 of mbarrier m + 0, which does not include the copy\n"
                "  check the parity of the wait, the bytes of expect_tx, and that the copy begins after the last "
                "use of its target"));
  EXPECT_THAT(watch_all({.body = kInit + bulk_load() + wait_for("A", "0") + load + again + wait_for("B", "1") + load}),
              IsEmpty());
  // A wait for another barrier, and no wait, have no phase to explain.
  const Seen other = watch({.body = "@%p0 mbarrier.init.shared.b64 [n], 1;\n" + std::string(kInit) + bulk_load() +
                                    "O: mbarrier.try_wait.parity.shared::cta.b64 %p5, [n], 1;\n@!%p5 bra O;\n" + load +
                                    wait_for("W", "0"),
                            .threads = 32});
  EXPECT_THAT(other.text, HasSubstr("(mbarrier wait)"));
  EXPECT_THAT(other.text, Not(HasSubstr("this wait")));
}

// Under the policy `early` the product reads its operands at its issue; the wait is required all the same.
TEST(Products, OperandsMayBeOverwrittenAfterTheWait) {
  const auto kernel = [](const char* before, const char* behind) {
    return Watched{.body =
                       "shr.u32 %r4, %r60, 4;\ncvt.u64.u32 %rd1, %r4;\nor.b64 %rd1, %rd1, 0x1000080000;\n"
                       "mov.f32 %f1, 0f00000000;\nmov.f32 %f2, %f1;\nmov.f32 %f3, %f1;\nmov.f32 %f4, %f1;\n"
                       "wgmma.fence.sync.aligned;\n"
                       "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd1, %rd1, 1, 1, "
                       "1, 0, 0;\nwgmma.commit_group.sync.aligned;\n" +
                       std::string(before) + "\nbar.sync 0;\nst.shared.u32 [%r3], %r0;\n" + behind,
                   .threads = 128};
  };
  EXPECT_THAT(watch_all(kernel("wgmma.wait_group.sync.aligned 0;", "")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("", "wgmma.wait_group.sync.aligned 0;")), Contains(HasSubstr("wgmma of warpgroup 0")));
}

// A group belongs to the warpgroup: its wait orders what all four warps have read, with no barrier between them.
TEST(Products, OneWarpsWaitOrdersTheReadsOfAllFour) {
  const auto kernel = [](const std::string& wait, const std::string& place) {
    const auto product = [](const std::string& descriptor, const std::string& d) {
      return "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {" + d + "}, " + descriptor + ", " + descriptor +
             ", 0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n";
    };
    return Watched{.body =
                       "mov.u32 %r5, s; shr.u32 %r4, %r5, 4;\ncvt.u64.u32 %rd1, %r4;\nor.b64 %rd1, %rd1, "
                       "0x1000080000;\nadd.u64 %rd2, %rd1, 128;\nwgmma.fence.sync.aligned;\n" +
                       product("%rd1", "%f1, %f2, %f3, %f4") + product("%rd2", "%f5, %f6, %f7, %f8") +
                       "wgmma.wait_group.sync.aligned " + wait + ";\nst.shared.u32 [%r3" + place + "], %r0;\n" +
                       "wgmma.wait_group.sync.aligned 0;",
                   .threads = 128};
  };
  for (const char* place : {"", "+1024", "+2048", "+3072"}) {
    EXPECT_THAT(watch_all(kernel("0", place)), IsEmpty()) << place;
  }
  EXPECT_THAT(watch_all(kernel("1", "")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("1", "+1024")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("1", "+2048")), Contains(HasSubstr("wgmma of warpgroup 0")));
  EXPECT_THAT(watch_all(kernel("1", "+3072")), Contains(HasSubstr("wgmma of warpgroup 0")));
}

TEST(ProxyFence, IsRequiredBetweenStoresAndAnEngineThatReadsThem) {
  const auto kernel = [](const char* fence, const char* late_fence) {
    return Watched{.body = std::string("st.shared.u32 [%r3], %r0;\n") + fence + "\nbar.sync 0;\n" + late_fence +
                           "\n@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 256;\n"
                           "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;"};
  };
  EXPECT_THAT(watch_all(kernel("fence.proxy.async.shared::cta;", "")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("fence.proxy.async;", "")), IsEmpty());
  // A fence of the issuer, after the barrier.
  EXPECT_THAT(watch_all(kernel("", "fence.proxy.async;")), IsEmpty());
  const Seen seen = watch(kernel("", ""));
  EXPECT_EQ(seen.text,
            "PROXY_FENCE  shared 0x00400 (s + 0)  kernel k  cta (0,0,0)\n"
            "  write  thread 0 (warp 0 lane 0)  st.shared.u32          k.ptx:1\n"
            "  read   bulk store issued by thread 0                    k.ptx:5\n"
            "  fence.proxy.async is missing between the ordinary stores and this access: in each thread that stored, "
            "before the barrier, or in the issuing thread, after it");
  EXPECT_THAT(watch(kernel("fence.proxy.async.global;", "")).races, ElementsAre(StartsWith("PROXY_FENCE")));
  EXPECT_THAT(watch(kernel("fence.acq_rel.cta;", "")).races, ElementsAre(StartsWith("PROXY_FENCE")));
}

TEST(ProxyFence, IsRequiredBetweenStoresAndACopyThatOverwritesThem) {
  const auto kernel = [](const char* fence) {
    return Watched{.body = kInit + std::string("st.shared.u32 [%r3], %r0;\n") + fence + "\nbar.sync 0;\n" +
                           bulk_load() + kWait};
  };
  EXPECT_THAT(watch_all(kernel("fence.proxy.async;")), IsEmpty());
  EXPECT_THAT(watch(kernel("")).races,
              ElementsAre("PROXY_FENCE s+0 4: write thread 0 (warp 0 lane 0) k.ptx:2; write bulk "
                          "load, mbarrier m + 0 issued by thread 0 k.ptx:6"));
}

TEST(ProxyFence, IsRequiredAfterLoadsOnlyIfStrict) {
  Watched kernel{.body = kInit + std::string("ld.shared.u32 %r9, [%r3];\nbar.sync 0;\n") + bulk_load() + kWait};
  EXPECT_THAT(watch_all(kernel), IsEmpty());
  kernel.checks.race.strict_war_proxy = true;
  EXPECT_THAT(watch(kernel).races, ElementsAre(StartsWith("PROXY_FENCE s+0 4: read thread 0")));
}

TEST(InitFence, IsRequiredBetweenInitAndACopyThatCountsOnIt) {
  const auto kernel = [](const char* fence) {
    return Watched{.body = "@%p0 mbarrier.init.shared.b64 [m], 1;\n" + std::string(fence) + "\n" + bulk_load() +
                           "bar.sync 0;\n" + kWait};
  };
  EXPECT_THAT(watch_all(kernel("fence.mbarrier_init.release.cluster;")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("bar.sync 0;")), IsEmpty());
  EXPECT_THAT(watch(kernel("fence.mbarrier_init.release.cluster;")).races, IsEmpty());
  Watched without = kernel("");
  without.body =
      "@%p0 mbarrier.init.shared.b64 [m], 1;\n@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [m], 256;\n"
      "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd0], 256, [m];\n"
      "@%p0 mbarrier.arrive.shared::cta.b64 _, [m];\nbar.sync 0;\n" +
      std::string(kWait);
  EXPECT_THAT(watch(without).races,
              ElementsAre("PROXY_FENCE m+0 8: write thread 0 (warp 0 lane 0) k.ptx:1; read bulk load, "
                          "mbarrier m + 0 issued by thread 0 k.ptx:3"));
  without.checks.race.init_fence = false;
  EXPECT_THAT(watch_all(without), IsEmpty());
}

TEST(BulkStore, ItsSourceMayBeOverwrittenAfterTheWait) {
  const auto kernel = [](const char* wait) {
    return Watched{.body = std::string("st.shared.u32 [%r3], %r0;\nfence.proxy.async;\nbar.sync 0;\n"
                                       "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 256;\n"
                                       "@%p0 cp.async.bulk.commit_group;\n") +
                           wait + "\nst.shared.u32 [%r3], 7;\n@%p0 cp.async.bulk.wait_group 0;"};
  };
  EXPECT_THAT(watch_all(kernel("@%p0 cp.async.bulk.wait_group.read 0;\nbar.sync 0;")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("@%p0 cp.async.bulk.wait_group 0;\nbar.sync 0;")), IsEmpty());
  EXPECT_THAT(watch(kernel("bar.sync 0;")).races,
              Contains(StartsWith("RACE_RW s+0 4: read bulk store issued by thread 0 "
                                  "k.ptx:4; write thread 0 (warp 0 lane 0) k.ptx:7")));
  EXPECT_THAT(watch_all(kernel("@%p0 cp.async.bulk.wait_group.read 0;")), Contains(StartsWith("RACE_RW s+")));
}

// A relaxed arrival publishes what the thread had waited for at its last fence, and nothing later.
TEST(BulkStore, AWaitAfterTheFenceIsNotPublishedByARelaxedArrival) {
  const auto kernel = [](const char* fence_and_wait) {
    return Watched{.body = kInit +
                           std::string("@!%p0 bra C;\n"
                                       "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 256;\n"
                                       "cp.async.bulk.commit_group;\n") +
                           fence_and_wait + "\nmbarrier.arrive.relaxed.cta.shared::cta.b64 _, [m];\nC: @%p2 bra E;\n" +
                           kWait + "st.shared.u32 [%r3], 7;\nE: @%p0 cp.async.bulk.wait_group 0;"};
  };
  EXPECT_THAT(watch_all(kernel("cp.async.bulk.wait_group.read 0;\nfence.acq_rel.cta;")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("fence.acq_rel.cta;\ncp.async.bulk.wait_group.read 0;")),
              Contains(StartsWith("RACE_RW s+")));
}

}  // namespace
}  // namespace kvscope::ptx::test::engines_test
