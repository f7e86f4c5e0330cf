// Every source of order: with it a kernel is clean under all schedules, without it the report names both sides.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::barriers_test {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(BarSync, OrdersAllThreadsThatArrive) {
  const auto kernel = [](const char* barrier) {
    return Watched{.body = std::string("@%p0 st.shared.u32 [s], %r0;\n") + barrier + "\nld.shared.u32 %r9, [s];"};
  };
  EXPECT_THAT(watch_all(kernel("bar.sync 0;")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("barrier.sync 3, 64;")), IsEmpty());
  const Seen seen = watch(kernel(""));
  EXPECT_EQ(seen.text,
            "RACE read-after-write  shared 0x00400 (s + 0)  kernel k  cta (0,0,0)\n"
            "  write  thread 0 (warp 0 lane 0)  st.shared.u32          k.ptx:1\n"
            "  read   thread 1 (warp 0 lane 1)  ld.shared.u32          k.ptx:3\n"
            "  no order between them; thread 1 has not synchronized since it began");
}

TEST(BarSync, OfAnotherNumberOrdersNothing) {
  EXPECT_THAT(
      watch({.body = "@%p0 st.shared.u32 [s], %r0;\n@%p2 bar.sync 1, 32;\n@!%p2 bar.sync 2, 32;\n"
                     "@!%p2 ld.shared.u32 %r9, [s];"})
          .races,
      ElementsAre("RACE_WR s+0 4: write thread 0 (warp 0 lane 0) k.ptx:1; read thread 32 (warp 1 lane 0) k.ptx:4"));
}

TEST(BarSync, DoesNotOrderAStoreAfterIt) {
  EXPECT_THAT(watch({.body = "bar.sync 0;\n@%p0 st.shared.u32 [s], %r0;\n@!%p2 ld.shared.u32 %r9, [s];"}).text,
              HasSubstr("no order between them; thread 0 last synchronized at k.ptx:1 (barrier)"));
}

TEST(BarArrive, PublishesAndAcquiresNothing) {
  const std::string consumer = "@!%p2 bar.sync 1, 64;\n@!%p2 ld.shared.u32 %r9, [s];\n";
  EXPECT_THAT(watch_all({.body = "@%p0 st.shared.u32 [s], %r0;\n@%p2 bar.arrive 1, 64;\n" + consumer}), IsEmpty());
  // A store after the arrival is not covered.
  EXPECT_THAT(watch_all({.body = "@%p2 bar.arrive 1, 64;\n@%p0 st.shared.u32 [s], %r0;\n" + consumer}), Not(IsEmpty()));
  // A warp that only arrives acquires nothing: stores of the other warp are not ordered before its load.
  EXPECT_THAT(watch_all({.body = "@!%p2 st.shared.u32 [s+4], %r0;\n@!%p2 bar.sync 1, 64;\n@%p2 bar.arrive 1, 64;\n"
                                 "@%p0 ld.shared.u32 %r9, [s+4];"}),
              Contains(StartsWith("RACE_")));
}

// A lane that exits publishes nothing: later barriers of its warp do not cover its store.
TEST(Exit, TheStoreOfALaneThatExitsIsNotOrdered) {
  EXPECT_THAT(
      watch({.body = "@%p0 st.shared.u32 [s], %r0;\n@%p0 exit;\nbar.sync 0;\nld.shared.u32 %r9, [s];"}).races,
      Contains("RACE_WR s+0 4: write thread 0 (warp 0 lane 0) k.ptx:1; read thread 32 (warp 1 lane 0) k.ptx:4"));
  // Lanes that exit at a tail guard, before they store anything, are not affected.
  EXPECT_THAT(watch_all({.body = "@%p0 exit;\nst.shared.u32 [%r3], %r0;\nbar.sync 0;\nxor.b32 %r4, %r3, 64;\n"
                                 "ld.shared.u32 %r9, [%r4];"}),
              IsEmpty());
}

TEST(BarWarpSync, OrdersTheLanesOfItsMask) {
  const auto kernel = [](const char* barrier) {
    return Watched{.body = std::string("st.shared.u32 [%r3], %r0;\n") + barrier +
                           "\nxor.b32 %r4, %r3, 4;\nld.shared.u32 %r9, [%r4];",
                   .threads = 32};
  };
  EXPECT_THAT(watch_all(kernel("bar.warp.sync 0xffffffff;")), IsEmpty());
  EXPECT_THAT(
      watch(kernel("")).races,
      ElementsAre("RACE_WR s+4 4: write thread 1 (warp 0 lane 1) k.ptx:1; read thread 0 (warp 0 lane 0) k.ptx:4"));
  // The halves of a warp synchronize separately.
  EXPECT_THAT(
      watch({.body = "setp.lt.u32 %p3, %r1, 16;\nst.shared.u32 [%r3], %r0;\n@%p3 bar.warp.sync 0xffff;\n"
                     "@!%p3 bar.warp.sync 0xffff0000;\nxor.b32 %r4, %r3, 64;\nld.shared.u32 %r9, [%r4];",
             .threads = 32})
          .races,
      ElementsAre("RACE_WR s+64 4: write thread 16 (warp 0 lane 16) k.ptx:2; read thread 0 (warp 0 lane 0) k.ptx:6"));
}

TEST(Collectives, OrderNothingByDefault) {
  Watched kernel{.body =
                     "st.shared.u32 [%r3], %r0;\nshfl.sync.idx.b32 %r8, %r0, 0, 31, 0xffffffff;\n"
                     "xor.b32 %r4, %r3, 4;\nld.shared.u32 %r9, [%r4];",
                 .threads = 32};
  const Seen seen = watch(kernel);
  EXPECT_THAT(seen.races, ElementsAre(StartsWith("RACE_WR s+4 4")));
  EXPECT_EQ(seen.result.reports[0].severity, Severity::warning) << "the lanes have met at the shuffle";
  EXPECT_THAT(seen.text, HasSubstr("only shfl.sync.idx.b32 at k.ptx:2 is between them"));
  kernel.checks.race.collectives_order = true;
  EXPECT_THAT(watch_all(kernel), IsEmpty());
}

// The shuffle must be between the two accesses, of both lanes: otherwise the race is an error.
TEST(Collectives, AreNoExcuseWhereTheyAreNotBetweenBothLanes) {
  const auto severity = [](const std::string& body, std::int64_t threads = 32) {
    const Seen seen = watch({.body = body, .threads = threads});
    EXPECT_EQ(seen.result.reports.size(), 1u) << body;
    return seen.result.reports.empty() ? Severity::note : seen.result.reports[0].severity;
  };
  const std::string store = "st.shared.u32 [%r3], %r0;\n", load = "xor.b32 %r4, %r3, 4;\nld.shared.u32 %r9, [%r4];\n";
  const std::string shuffle = "shfl.sync.idx.b32 %r8, %r0, 0, 31, 0xffffffff;\n";
  EXPECT_EQ(severity(store + shuffle + load), Severity::warning);
  EXPECT_EQ(severity(shuffle + store + load + shuffle), Severity::error) << "before and after";
  EXPECT_EQ(severity("and.b32 %r6, %r1, 1;\nsetp.eq.u32 %p3, %r6, 0;\nselp.b32 %r7, 0x55555555, 0xaaaaaaaa, %p3;\n" +
                     store + "redux.sync.add.u32 %r8, %r0, %r7;\n" + load),
            Severity::error)
      << "even and odd lanes meet separately";
  EXPECT_EQ(severity(store + shuffle + "sub.u32 %r4, %r3, 128;\n@!%p2 ld.shared.u32 %r9, [%r4];\n", 64),
            Severity::error)
      << "another warp";
  EXPECT_EQ(severity("ld.shared.u32 %r9, [%r3];\n" + shuffle + "xor.b32 %r4, %r3, 4;\nst.shared.u32 [%r4], %r0;\n"),
            Severity::warning)
      << "read, then write";
}

const char* const kInit = "@%p0 mbarrier.init.shared.b64 [m], 1;\nbar.sync 0;\n";

TEST(Mbarrier, AnArrivalIsOrderedBeforeTheWaitForItsPhase) {
  const auto kernel = [](const std::string& arrive, const std::string& wait) {
    return Watched{.body = kInit + std::string("@%p0 st.shared.u32 [s], %r0;\n@%p0 mbarrier.arrive.") + arrive +
                           "shared::cta.b64 _, [m];\nW: mbarrier.try_wait.parity." + wait +
                           "shared::cta.b64 %p5, [m], 0;\n@!%p5 bra W;\nld.shared.u32 %r9, [s];"};
  };
  EXPECT_THAT(watch_all(kernel("", "")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("release.cta.", "acquire.cta.")), IsEmpty());
  EXPECT_THAT(
      watch(kernel("relaxed.cta.", "")).races,
      ElementsAre("RACE_WR s+0 4: write thread 0 (warp 0 lane 0) k.ptx:3; read thread 1 (warp 0 lane 1) k.ptx:7"));
  EXPECT_THAT(watch(kernel("", "relaxed.cta.")).races, ElementsAre(StartsWith("RACE_WR s+0 4")));
  // Relaxed on both sides, with fences.
  EXPECT_THAT(
      watch_all({.body = kInit + std::string("@%p0 st.shared.u32 [s], %r0;\n@%p0 fence.acq_rel.cta;\n"
                                             "@%p0 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [m];\nW: "
                                             "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p5, [m], 0;\n"
                                             "@!%p5 bra W;\nfence.acq_rel.cta;\nld.shared.u32 %r9, [s];")}),
      IsEmpty());
}

// The arrival of one lane does not cover the other lanes of its warp.
TEST(Mbarrier, TheArrivalOfOneLaneDoesNotCoverItsWarp) {
  const auto kernel = [](const char* sync) {
    return Watched{.body = kInit + std::string("@%p2 ld.shared.u32 %r9, [%r3];\n@%p2 bar.warp.sync ") + sync +
                           ";\n@%p0 mbarrier.arrive.shared::cta.b64 _, [m];\n@%p2 bra E;\nW: "
                           "mbarrier.try_wait.parity.shared::cta.b64 %p5, [m], 0;\n@!%p5 bra W;\n"
                           "sub.u32 %r4, %r3, 128;\nst.shared.u32 [%r4], %r0;\nE:"};
  };
  EXPECT_THAT(watch_all(kernel("0xffffffff")), IsEmpty());
  Watched without = kernel("0xffffffff");
  const std::size_t at = without.body.find("@%p2 bar.warp.sync");
  without.body.erase(at, without.body.find('\n', at) - at);
  EXPECT_THAT(
      watch(without).races,
      ElementsAre("RACE_RW s+4 4: read thread 1 (warp 0 lane 1) k.ptx:3; write thread 33 (warp 1 lane 1) k.ptx:10"));
}

// An object that a thread uses before its init is ordered before that thread.
TEST(Mbarrier, InitMustBeOrderedBeforeEveryUse) {
  const std::string wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [m], 0;\n@!%p5 bra W;";
  EXPECT_THAT(
      watch({.body = "@%p0 mbarrier.init.shared.b64 [m], 1;\n@%p0 mbarrier.arrive.shared::cta.b64 _, [m];\n" + wait})
          .races,
      Contains("RACE_WR m+0 8: write thread 0 (warp 0 lane 0) k.ptx:1; read thread 1 (warp 0 lane 1) k.ptx:3"));
}

TEST(Mbarrier, InvalMustBeOrderedAfterEveryUse) {
  const auto kernel = [](const char* barrier) {
    return Watched{.body = kInit +
                           std::string("@%p0 mbarrier.arrive.shared::cta.b64 _, [m];\nW: "
                                       "mbarrier.try_wait.parity.shared::cta.b64 %p5, [m], 0;\n@!%p5 bra W;\n") +
                           barrier + "\n@%p0 mbarrier.inval.shared.b64 [m];"};
  };
  EXPECT_THAT(watch_all(kernel("bar.sync 0;")), IsEmpty());
  // Where a thread ends the object before the others have seen its phase, they wait until the launch is ended.
  Watched without = kernel("");
  without.instructions = 2000;
  EXPECT_THAT(watch_all(without), Contains(StartsWith("RACE_RW m+0 8: read thread ")));
}

TEST(Flags, AReleaseIsOrderedBeforeTheAcquireThatSeesIt) {
  const auto kernel = [](const char* store, const char* load) {
    return Watched{.body = std::string("@%p0 st.relaxed.cta.shared.u32 [s+16], 0;\nbar.sync 0;\n@!%p0 bra C;\n"
                                       "st.shared.u32 [s], 7;\n") +
                           store + " [s+16], 1;\nC: @%p2 bra E;\nW: " + load +
                           " %r8, [s+16];\nsetp.eq.u32 %p6, %r8, 0;\n@%p6 bra W;\nld.shared.u32 %r9, [s];\nE:"};
  };
  EXPECT_THAT(watch_all(kernel("st.release.cta.shared.u32", "ld.acquire.cta.shared.u32")), IsEmpty());
  EXPECT_THAT(watch_all(kernel("fence.acq_rel.cta; st.relaxed.cta.shared.u32", "ld.acquire.cta.shared.u32")),
              IsEmpty());
  EXPECT_THAT(watch_all(kernel("membar.cta; st.volatile.shared.u32", "ld.acquire.cta.shared.u32")), IsEmpty());
  EXPECT_THAT(
      watch(kernel("st.relaxed.cta.shared.u32", "ld.acquire.cta.shared.u32")).races,
      ElementsAre("RACE_WR s+0 4: write thread 0 (warp 0 lane 0) k.ptx:4; read thread 32 (warp 1 lane 0) k.ptx:10"));
  EXPECT_THAT(watch(kernel("st.release.cta.shared.u32", "ld.relaxed.cta.shared.u32")).races,
              ElementsAre(StartsWith("RACE_WR s+0 4")));
  EXPECT_THAT(watch(kernel("st.volatile.shared.u32", "ld.volatile.shared.u32")).races,
              ElementsAre(StartsWith("RACE_WR s+0 4")));
}

TEST(Flags, AFenceAfterAVolatileReadOrders) {
  EXPECT_THAT(
      watch_all({.body = "@%p0 st.shared.u32 [s+16], 0; bar.sync 0;\n@!%p0 bra C;\nst.shared.u32 [s], "
                         "7;\nmembar.cta;\nred.shared.or.b32 [s+16], 1;\nC: @%p2 bra "
                         "E;\nW: ld.volatile.shared.u32 %r8, [s+16];\nand.b32 %r8, %r8, 1;\nsetp.eq.u32 %p6, %r8, "
                         "0;\n@%p6 bra W;\nmembar.cta;\nld.shared.u32 %r9, [s];\nE:"}),
      IsEmpty());
}

// The cluster barrier only delays CTA 1 until the flag is set: its arrival is relaxed and publishes nothing.
TEST(Flags, EachPublicationReachesTheThreadsOfItsOwnScope) {
  const auto kernel = [](const char* first, const char* second) {
    return Watched{.body = std::string("mov.u32 %r5, %cluster_ctarank;\nsetp.eq.and.u32 %p3, %r5, 0, %p0;\n"
                                       "setp.eq.and.u32 %p4, %r5, 1, %p0;\nmapa.shared::cluster.u32 %r7, %r60, 1;\n"
                                       "@%p3 st.shared::cluster.u32 [%r7], 7;\n@%p3 ") +
                           first + " %r8, [%rd0], 1;\n@%p3 " + second +
                           " %r8, [%rd0], 1;\nbarrier.cluster.arrive.relaxed.aligned;\n"
                           "barrier.cluster.wait.aligned;\n"
                           "@%p4 atom.acquire.cluster.global.add.u32 %r8, [%rd0], 0;\n@%p4 ld.shared.u32 %r9, [s];",
                   .grid = 2,
                   .cluster = {2, 1, 1}};
  };
  const char* const cluster = "atom.release.cluster.global.add.u32";
  const char* const cta = "atom.release.cta.global.add.u32";
  EXPECT_THAT(watch_all(kernel(cluster, cluster)), IsEmpty());
  // The second atomic hands on what the first one published, to the readers of the first one.
  EXPECT_THAT(watch_all(kernel(cluster, cta)), IsEmpty());
  EXPECT_THAT(watch_all(kernel(cta, cta)), Contains(StartsWith("RACE_WR s+0 4")));
}

TEST(Cluster, ItsBarrierOrdersAccessesToSharedMemoryOfOtherCtas) {
  const auto kernel = [](const char* arrive) {
    return Watched{
        .body = std::string("mov.u32 %r5, %cluster_ctarank;\nxor.b32 %r6, %r5, 1;\nmapa.shared::cluster.u32 %r7, "
                            "%r3, %r6;\nst.shared::cluster.u32 [%r7], %r0;\nbarrier.cluster.arrive") +
                arrive + ".aligned;\nbarrier.cluster.wait.aligned;\nld.shared.u32 %r9, [%r3];",
        .grid = 2,
        .cluster = {2, 1, 1}};
  };
  EXPECT_THAT(watch_all(kernel("")), IsEmpty());
  EXPECT_THAT(watch(kernel(".relaxed")).races, Contains(HasSubstr("of rank")));
}

// --- two phases of one barrier ---------------------------------------------------------------------------------------

const std::string kClusterArrive = "barrier.cluster.arrive.release;\n",
                  kClusterWait = "barrier.cluster.wait.acquire;\n";
const std::string kClusterRelaxed = "barrier.cluster.arrive.relaxed;\n";
const std::string kClusterSync = kClusterArrive + kClusterWait;

// All threads arrive at `n` in this phase, and wait for it.
std::string mbarrier_sync(int phase) {
  return fmt::format(
      "mbarrier.arrive.shared::cta.b64 _, [n];\nW{0}: mbarrier.try_wait.parity.shared::cta.b64 %p5, [n], {0};\n"
      "@!%p5 bra W{0};\n",
      phase);
}

// Thread `writer` stores a word that thread `reader` loads, between `first` and `second`, which all threads execute.
Watched between(const std::string& first, const std::string& second, int writer, int reader) {
  return {.body =
              fmt::format("@%p0 mbarrier.init.shared.b64 [n], 64;\nbar.sync 3;\nsetp.eq.u32 %p3, %r0, {};\n"
                          "setp.eq.u32 %p4, %r0, {};\n{}@%p3 st.shared.u32 [s], 7;\n@%p4 ld.shared.u32 %r9, [s];\n{}",
                          writer, reader, first, second)};
}

// A warp may leave the first barrier after another warp has already arrived at the second one. That arrival does not
// order what the two warps do between the barriers.
TEST(Phases, AnArrivalAtTheNextBarrierOrdersNothingBeforeIt) {
  for (const auto& [first, second] :
       std::vector<std::pair<std::string, std::string>>{{kClusterSync, kClusterSync},
                                                        {kClusterSync, kClusterRelaxed + kClusterWait},
                                                        {kClusterRelaxed + kClusterWait, kClusterSync},
                                                        {kClusterSync, ""},
                                                        {"bar.sync 0;\n", "bar.sync 0;\n"},
                                                        {"barrier.sync 1, 64;\n", "barrier.sync 1, 64;\n"},
                                                        {mbarrier_sync(0), mbarrier_sync(1)}}) {
    for (const int writer : {0, 32}) {
      const Watched kernel = between(first, second, writer, 32 - writer);
      EXPECT_THAT(watch_each(kernel), Each(ElementsAre(StartsWith("RACE_")))) << kernel.body;
    }
  }
}

// The same where the second barrier orders the two accesses, or the store comes before the first arrival.
TEST(Phases, EachBarrierOrdersWhatIsBeforeItsArrivals) {
  const std::string store = "@%p0 st.shared.u32 [s], 7;\n", load = "@!%p2 ld.shared.u32 %r9, [s];\n";
  for (const std::string& body :
       {kClusterSync + store + kClusterSync + load + kClusterSync, store + kClusterSync + kClusterSync + load,
        store + kClusterSync + kClusterRelaxed + kClusterWait + load,
        store + kClusterArrive + "add.u32 %r4, %r0, 1;\n" + kClusterWait + load + kClusterSync,
        "@!%p2 exit;\n" + store + kClusterSync + "@%p2 ld.shared.u32 %r9, [s];\n" + kClusterSync,
        store + kClusterArrive + "@%p2 exit;\n" + kClusterWait + load + kClusterSync})
    EXPECT_THAT(watch_all({.body = body}), IsEmpty()) << body;
}

// Between its arrival and its wait, a thread is in no phase that others wait for.
TEST(Phases, AStoreBetweenAnArrivalAndItsWaitIsNotOrderedByThem) {
  const std::string store = "@%p0 st.shared.u32 [s], 7;\n", load = "@!%p2 ld.shared.u32 %r9, [s];\n";
  for (const std::string& body : {kClusterArrive + store + kClusterWait + load + kClusterSync,
                                  store + kClusterRelaxed + kClusterWait + load + kClusterSync})
    EXPECT_THAT(watch_each({.body = body}), Each(Contains(StartsWith("RACE_")))) << body;
}

// Each CTA reads a word of the other one's memory while that CTA may still store it.
TEST(Phases, OfAClusterDoNotOrderTheAccessesOfTwoCtasBetweenThem) {
  const auto kernel = [](const std::string& last) {
    return Watched{.body =
                       "mov.u32 %r5, %cluster_ctarank;\nxor.b32 %r6, %r5, 1;\nmapa.shared::cluster.u32 %r7, %r3, "
                       "%r6;\n" +
                       kClusterSync + "st.shared.u32 [%r3], %r0;\nld.shared::cluster.u32 %r9, [%r7];\n" + last,
                   .threads = 32,
                   .grid = 2,
                   .cluster = {2, 1, 1}};
  };
  for (const std::string& last : {kClusterSync, std::string()})
    EXPECT_THAT(watch_each(kernel(last)), Each(Contains(StartsWith("RACE_")))) << last;
}

}  // namespace
}  // namespace kvscope::ptx::test::barriers_test
