// Races in global memory: each source of order, within a CTA and between CTAs, with it and without it; engines, bytes,
// bounds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>

#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::global_races_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr CheckOptions kGlobal{.init = false, .race = {.races = false, .proxy = false}, .global_race = true};

Watched on(std::string body, std::int64_t grid = 1, std::int64_t threads = 64) {
  return {.body = std::move(body), .threads = threads, .grid = grid, .checks = kGlobal};
}

TEST(GlobalRaces, TwoCtasThatWriteOneWordAreNamedWithTheirCtas) {
  EXPECT_EQ(watch(on("mov.u32 %r4, %ctaid.x;\n@%p0 st.global.u32 [%rd0+16], %r4;", 2)).text,
            "RACE write-after-write  global 0x200000010 (x + 16)  kernel k  cta (1,0,0)\n"
            "  write  thread 0 (warp 0 lane 0) of cta (0,0,0)  st.global.u32          k.ptx:2\n"
            "  write  thread 0 (warp 0 lane 0) of cta (1,0,0)  st.global.u32          k.ptx:2\n"
            "  nothing orders them\n"
            "  CTAs are ordered by a release and an acquire at gpu scope, or by a fence, an atomic or volatile access, "
            "and a fence");
}

// Warp 1 stores a row and raises a flag. Only lane 0 of warp 0 acquires it, then all its lanes read the row, four in each chunk.
TEST(GlobalRaces, OneLaneThatHasAcquiredDoesNotOrderItsNeighbors) {
  const std::string body =
      "mad.lo.u32 %r4, %r1, 4, 0; cvt.u64.u32 %rd4, %r4; add.u64 %rd4, %rd0, %rd4; mov.u32 %r5, 1; setp.eq.u32 %p3, "
      "%r0, 32;\n"
      "@!%p2 st.global.u32 [%rd4], %r0;\n"
      "@!%p2 bar.warp.sync 0xffffffff;\n"
      "@%p3 st.release.gpu.global.u32 [%rd0+2048], %r5;\n"
      "@!%p2 bra E;\nW: @%p0 ld.acquire.gpu.global.u32 %r6, [%rd0+2048];\n@!%p0 mov.u32 %r6, 1;\nsetp.ne.u32 %p4, %r6, "
      "1;\n@%p4 bra W;\n"
      "bar.warp.sync 0xffff0000;\nld.global.u32 %r9, [%rd4];\nE:";
  std::string ordered = body;
  ordered.replace(ordered.find("0xffff0000"), 10, "0xffffffff");
  EXPECT_THAT(watch_all(on(ordered)), IsEmpty());
  std::string alone = body;
  alone.replace(alone.find("bar.warp.sync 0xffff0000;"), 25, "");
  EXPECT_THAT(watch(on(alone)).races,
              ElementsAre(StartsWith(
                  "RACE_WR x+4 4: write thread 33 (warp 1 lane 1) of cta (0,0,0) k.ptx:2; read thread 1 (")));
}

// Two lanes in each 16 bytes, one word apart: they access words 0 and 1, then words 1 and 2. Word 1 is then accessed by the lower lane
// after the upper one.
TEST(GlobalRaces, PairsOfLanesThatMoveByAWordMeetTheirNeighbors) {
  const auto body = [](std::string_view first, std::string_view second, std::string_view between) {
    return "shr.u32 %r4, %r1, 1; shl.b32 %r4, %r4, 4; and.b32 %r5, %r1, 1; mad.lo.u32 %r4, %r5, 4, %r4; cvt.u64.u32 "
           "%rd4, %r4; add.u64 %rd4, %rd0, %rd4;\n" +
           std::string(first) + std::string(between) + "\n" + std::string(second);
  };
  const char* const store = "st.global.u32 [%rd4], %r0;\n";
  const char* const load = "ld.global.u32 %r9, [%rd4];\n";
  const char* const next_store = "st.global.u32 [%rd4+4], %r0;";
  const char* const next_load = "ld.global.u32 %r9, [%rd4+4];";
  for (const auto& [first, second, kind] : {std::tuple{store, next_load, "RACE_WR x+4 4: write thread 1"},
                                            std::tuple{store, next_store, "RACE_WW x+4 4: write thread 1"},
                                            std::tuple{load, next_store, "RACE_RW x+4 4: read thread 1"}}) {
    EXPECT_THAT(watch(on(body(first, second, ""), 1, 32)).races, ElementsAre(StartsWith(kind)));
    EXPECT_THAT(watch_all(on(body(first, second, "bar.warp.sync 0xffffffff;"), 1, 32)), IsEmpty());
  }
  EXPECT_THAT(watch_all(on(body(load, next_load, ""), 1, 32)), IsEmpty());
}

// Four lanes read all words of a chunk, then each reads one of them. A store that is ordered after the lane that has read its word twice
// races with the other three.
TEST(GlobalRaces, AReadByOneLaneDoesNotTakeThePlaceOfReadsByAll) {
  const std::string body =
      "mad.lo.u32 %r4, %r1, 4, 0; cvt.u64.u32 %rd4, %r4; add.u64 %rd4, %rd0, %rd4; mov.u32 %r5, 1; setp.eq.u32 %p3, "
      "%r0, 33; setp.lt.u32 %p5, %r1, 4;\n@%p2 bra W;\n"
      "@%p5 ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd0];\n"
      "ld.global.u32 %r9, [%rd4];\n"
      "@%p3 st.release.gpu.global.u32 [%rd0+2048], %r5;\nbra E;\n"
      "W: ld.acquire.gpu.global.u32 %r6, [%rd0+2048];\nsetp.ne.u32 %p4, %r6, 1;\n@%p4 bra W;\n"
      "@%p0 st.global.u32 [%rd0+4], %r0;\nE:";
  EXPECT_THAT(watch(on(body)).races, ElementsAre(StartsWith("RACE_RW x+4 4: read thread 32 (warp 1 lane 0) of cta "
                                                            "(0,0,0) k.ptx:3; write thread 0 (")));
}

// A strong store races with the weak reads of a row, not with the strong ones after them.
TEST(GlobalRaces, AStrongReadDoesNotTakeThePlaceOfAWeakOne) {
  const std::string body =
      "mad.lo.u32 %r4, %r1, 4, 0; cvt.u64.u32 %rd4, %r4; add.u64 %rd4, %rd0, %rd4; mov.u32 %r5, 1; setp.eq.u32 %p3, "
      "%r0, 32;\n"
      "@!%p2 ld.global.u32 %r9, [%rd4];\n@!%p2 ld.relaxed.gpu.global.u32 %r9, [%rd4];\n"
      "@%p3 st.relaxed.gpu.global.u32 [%rd0+2048], %r5;\n@!%p2 bra E;\n"
      "W: ld.relaxed.gpu.global.u32 %r6, [%rd0+2048];\nsetp.ne.u32 %p4, %r6, 1;\n@%p4 bra W;\n"
      "st.relaxed.gpu.global.u32 [%rd4], %r0;\nE:";
  EXPECT_THAT(watch(on(body)).races,
              ElementsAre(StartsWith(
                  "RACE_RW x+0 4: read thread 32 (warp 1 lane 0) of cta (0,0,0) k.ptx:2; write thread 0 (")));
}

// Lanes 0 and 1 of warp 1 read one word at one instruction, lane 0 before both raise the flags that warp 0 acquires, and lane 1 after that.
TEST(GlobalRaces, ReadsOfOneInstructionBeforeAndAfterAFlagAreTwo) {
  const std::string body =
      "mov.u32 %r5, 1; mov.u32 %r20, 0; mad.lo.u32 %r4, %r1, 256, 2048; cvt.u64.u32 %rd4, %r4; add.u64 %rd4, %rd0, "
      "%rd4; @%p2 bra A;\n"
      "L: setp.eq.u32 %p3, %r1, %r20;\n@%p3 ld.global.u32 %r9, [%rd0];\nsetp.eq.u32 %p4, %r20, 0;\n"
      "setp.lt.and.u32 %p5, %r1, 2, %p4;\n@%p5 st.release.gpu.global.u32 [%rd4], %r5;\nadd.u32 %r20, %r20, 1;\n"
      "setp.lt.u32 %p4, %r20, 2;\n@%p4 bra L;\n"
      "setp.eq.u32 %p3, %r1, 1;\n@%p3 st.relaxed.gpu.global.u32 [%rd0+3072], %r5;\nbra E;\n"
      "A: @!%p0 bra E;\nB: ld.acquire.gpu.global.u32 %r6, [%rd0+2048];\nsetp.ne.u32 %p4, %r6, 1;\n@%p4 bra B;\n"
      "C: ld.acquire.gpu.global.u32 %r6, [%rd0+2304];\nsetp.ne.u32 %p4, %r6, 1;\n@%p4 bra C;\n"
      "D: ld.relaxed.gpu.global.u32 %r6, [%rd0+3072];\nsetp.ne.u32 %p4, %r6, 1;\n@%p4 bra D;\nst.global.u32 [%rd0], "
      "%r5;\nE:";
  EXPECT_THAT(watch(on(body)).races,
              ElementsAre(StartsWith(
                  "RACE_RW x+0 4: read thread 33 (warp 1 lane 1) of cta (0,0,0) k.ptx:3; write thread 0 (")));
}

TEST(GlobalRaces, AreOffByDefault) {
  EXPECT_THAT(watch({.body = "mov.u32 %r4, %ctaid.x;\n@%p0 st.global.u32 [%rd0+16], %r4;", .grid = 2}).races,
              IsEmpty());
}

TEST(GlobalRaces, EqualBytesAreANoteAnErrorOrNothing) {
  Watched kernel = on("mov.u32 %r4, 5;\n@%p0 st.global.u32 [%rd0], %r4;", 2);
  EXPECT_THAT(watch(kernel).races, ElementsAre(StartsWith("SAME_VALUE x+0 4")));
  EXPECT_TRUE(watch(kernel).result.clean());
  kernel.checks.race.same_value = SameValue::error;
  EXPECT_THAT(watch(kernel).races, ElementsAre(StartsWith("RACE_WW x+0 4")));
  kernel.checks.race.same_value = SameValue::ignore;
  EXPECT_THAT(watch(kernel).races, IsEmpty());
}

TEST(GlobalRaces, ABarrierOrdersTheThreadsOfItsCta) {
  EXPECT_THAT(watch_all(on("@%p0 st.global.u32 [%rd0], %r0;\nbar.sync 0;\nld.global.u32 %r9, [%rd0];\nbar.sync 0;\n"
                           "@!%p2 st.global.u32 [%rd0], 3;\n@!%p2 bra E;\nE: ret;",
                           1, 33)),
              IsEmpty());
  EXPECT_THAT(watch(on("@%p0 st.global.u32 [%rd0], %r0;\nld.global.u32 %r9, [%rd0];")).races,
              ElementsAre("RACE_WR x+0 4: write thread 0 (warp 0 lane 0) of cta (0,0,0) k.ptx:1; read thread 1 (warp 0 "
                          "lane 1) of cta (0,0,0) k.ptx:2"));
  EXPECT_THAT(watch(on("ld.global.u32 %r9, [%rd0];\n@%p0 st.global.u32 [%rd0], 3;", 1, 32)).races,
              ElementsAre("RACE_RW x+0 4: read thread 1 (warp 0 lane 1) of cta (0,0,0) k.ptx:1; write thread 0 (warp 0 "
                          "lane 0) of cta (0,0,0) k.ptx:2"));
  // It orders nothing between CTAs, even though the second one starts after the first one has ended.
  EXPECT_THAT(watch(on("mov.u32 %r4, %ctaid.x;\nsetp.eq.u32 %p3, %r4, 0; and.pred %p4, %p3, %p0;\n@%p4 st.global.u32 "
                       "[%rd0], 7;\nbar.sync 0;\n"
                       "@!%p3 ld.global.u32 %r9, [%rd0];",
                       2))
                  .races,
              Contains(StartsWith("RACE_WR x+0 4: write thread 0 (warp 0 lane 0) of cta (0,0,0) k.ptx:3")));
}

// Two lanes that store, and two lanes at each word: the lanes that take part are named, and no others.
TEST(GlobalRaces, OnlyTheLanesThatTakePartAreNamed) {
  const std::string words =
      "shr.u32 %r5, %r1, 1; mul.wide.u32 %rd4, %r5, 4; add.u64 %rd4, %rd4, %rd0; mov.u32 %r4, %ctaid.x;\n";
  EXPECT_THAT(
      watch(
          on(words +
                 "setp.eq.u32 %p3, %r4, 0; and.b32 %r6, %r1, 27; setp.eq.and.u32 %p4, %r6, 9, %p3; @%p4 st.global.u32 "
                 "[%rd4], 7;\n@!%p3 ld.global.u32 %r9, [%rd0+16];",
             2, 32))
          .races,
      ElementsAre(StartsWith("RACE_WR x+16 4: write thread 9 (warp 0 lane 9) of cta (0,0,0)")));
  EXPECT_THAT(
      watch(on(words + "setp.eq.u32 %p3, %r4, 0; @%p3 ld.global.u32 %r9, [%rd4];\n@!%p3 st.global.u32 [%rd0+16], 7;", 2,
               32))
          .races,
      Contains(StartsWith("RACE_RW x+16 4: read thread 8 (warp 0 lane 8) of cta (0,0,0)")));
}

TEST(GlobalRaces, AccessesOfAdjacentBytesAreNoRace) {
  EXPECT_THAT(watch_all(on("mov.u32 %r4, %ctaid.x; shl.b32 %r5, %r0, 1; add.u32 %r5, %r5, %r4; cvt.u64.u32 %rd4, %r5;\n"
                           "add.u64 %rd4, %rd4, %rd0;\nst.global.u8 [%rd4], %r0;\nld.global.u8 %r9, [%rd4];",
                           2)),
              IsEmpty());
  EXPECT_THAT(watch(on("mov.u32 %r4, %ctaid.x; shl.b32 %r5, %r4, 1; cvt.u64.u32 %rd4, %r5; add.u64 %rd4, %rd4, %rd0;\n"
                       "@%p0 st.global.u16 [%rd4], 7;\n@%p0 ld.global.u8 %r9, [%rd4+1];",
                       2))
                  .races,
              IsEmpty());
  EXPECT_THAT(watch(on("mov.u32 %r4, %ctaid.x; setp.eq.u32 %p3, %r4, 0; and.pred %p4, %p0, %p3; xor.b32 %r5, %r4, 1; "
                       "setp.eq.u32 %p5, %r5, 0; and.pred %p5, %p5, %p0;\n@%p4 st.global.u16 [%rd0+2], 7;\n"
                       "@%p5 ld.global.u8 %r9, [%rd0+3];",
                       2))
                  .races,
              ElementsAre(StartsWith("RACE_WR x+3 1")));
}

// CTA 0 stores and sets a flag, CTA 1 waits for the flag and loads.
Watched handed_over(const std::string& raise, const std::string& look, const std::string& behind) {
  return on("mov.u32 %r4, %ctaid.x; setp.eq.u32 %p3, %r4, 0; @!%p0 ret;\n@!%p3 bra WAIT;\nst.global.u32 [%rd0], 7;\n" +
                raise + "\nret;\nWAIT: " + look + "\nsetp.ne.u32 %p4, %r5, 1;\n@%p4 bra WAIT;\n" + behind +
                "\nld.global.u32 %r6, [%rd0];",
            2);
}

TEST(GlobalRaces, AReleaseAndAnAcquireAtGpuScopeOrderTwoCtas) {
  const char* const release = "st.release.gpu.global.u32 [%rd0+128], 1;";
  const char* const fenced = "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd0+128], 1;";
  const char* const volatile_ = "membar.gl; st.volatile.global.u32 [%rd0+128], 1;";
  const char* const acquire = "ld.acquire.gpu.global.u32 %r5, [%rd0+128];";
  const char* const relaxed = "ld.relaxed.gpu.global.u32 %r5, [%rd0+128];";
  const char* const exchange = "fence.acq_rel.gpu; atom.relaxed.gpu.global.exch.b32 %r7, [%rd0+128], 1;";
  const auto race =
      Contains(StartsWith("RACE_WR x+0 4: write thread 0 (warp 0 lane 0) of cta (0,0,0) k.ptx:3; read thread 0"));
  for (const char* raise : {release, fenced, volatile_, exchange}) {
    SCOPED_TRACE(raise);
    EXPECT_THAT(watch_all(handed_over(raise, acquire, "")), IsEmpty());
    EXPECT_THAT(watch_all(handed_over(raise, relaxed, "fence.acq_rel.gpu;")), IsEmpty());
    EXPECT_THAT(watch_all(handed_over(raise, "ld.volatile.global.u32 %r5, [%rd0+128];", "membar.gl;")), IsEmpty());
    // A barrier hands on what its threads saw by relaxed reads, but a plain read after it also needs a fence.
    EXPECT_THAT(watch_all(handed_over(raise, relaxed, "bar.warp.sync 1;")), race);
    EXPECT_THAT(watch_all(handed_over(raise, relaxed, "bar.warp.sync 1;\nfence.acq_rel.gpu;")), IsEmpty());
  }
  // The flag is read without acquire.
  EXPECT_THAT(watch_all(handed_over(release, relaxed, "")), race);
  EXPECT_THAT(watch_all(handed_over(release, "ld.volatile.global.u32 %r5, [%rd0+128];", "")), race);
  // The flag is set without release.
  EXPECT_THAT(watch_all(handed_over("st.relaxed.gpu.global.u32 [%rd0+128], 1;", acquire, "")), race);
  EXPECT_THAT(watch_all(handed_over("atom.relaxed.gpu.global.exch.b32 %r7, [%rd0+128], 1;", acquire, "")), race);
  // Scopes that include only one of the two CTAs.
  EXPECT_THAT(watch_all(handed_over("st.release.cta.global.u32 [%rd0+128], 1;", acquire, "")), race);
  EXPECT_THAT(watch_all(handed_over(release, "ld.acquire.cta.global.u32 %r5, [%rd0+128];", "")), race);
  EXPECT_THAT(watch_all(handed_over("fence.acq_rel.cta; st.relaxed.gpu.global.u32 [%rd0+128], 1;", acquire, "")), race);
  EXPECT_THAT(watch_all(handed_over(release, relaxed, "fence.acq_rel.cta;")), race);
}

// Thread 5 of CTA 0 stores, `mine` is executed by all its threads, and after a barrier thread 0 executes `before` and
// counts. Thread 0 of CTA 1 waits for the count and executes `after`; after a barrier, `theirs` and a load by thread 7.
Watched counted(const std::string& mine, const std::string& before, const std::string& after,
                const std::string& theirs) {
  return on(
      "mov.u32 %r4, %ctaid.x; setp.eq.u32 %p3, %r4, 0; setp.eq.u32 %p4, %r0, 5; setp.eq.u32 %p5, %r0, 7;\n"
      "@!%p3 bra WAIT;\n@%p4 st.global.u32 [%rd0], 7;\n" +
          mine + "\nbar.sync 0;\n@!%p0 ret;\n" + before +
          "\natom.global.exch.b32 %r7, [%rd0+128], 1;\nret;\nWAIT: @!%p0 bra MEET;\n"
          "SPIN: atom.global.add.u32 %r5, [%rd0+128], 0;\nsetp.ne.u32 %p6, %r5, 1;\n@%p6 bra SPIN;\n" +
          after + "\nMEET: bar.sync 0;\n" + theirs + "\n@%p5 ld.global.u32 %r6, [%rd0];",
      2);
}

// PTX orders any two fence.sc of the grid. If the reader's came first, its read of the counter would precede the
// addition that it has seen: so a fence of the storing thread counts although another thread counts (PTX ISA, "Fence-SC
// Order"). Fences that are not .sc are ordered by nothing, and must be executed by the thread that counts.
TEST(GlobalRaces, AFenceOfTheStoringThreadCountsIfBothFencesAreSequentiallyConsistent) {
  const auto race = Contains(StartsWith("RACE_WR x+0 4: write thread 5 (warp 0 lane 5) of cta (0,0,0)"));
  for (const char* sc : {"membar.gl;", "fence.sc.gpu;", "fence.sc.sys;"}) {
    SCOPED_TRACE(sc);
    EXPECT_THAT(watch_all(counted(sc, "", sc, "")), IsEmpty());
    EXPECT_THAT(watch_all(counted(sc, "", "", sc)), IsEmpty());  // by the thread that loads
    EXPECT_THAT(watch_all(counted("", sc, sc, "")), IsEmpty());
    EXPECT_THAT(watch_all(counted(sc, "", "", "")), race);
    EXPECT_THAT(watch_all(counted("", "", sc, "")), race);
    EXPECT_THAT(watch_all(counted(sc, "", "fence.acq_rel.gpu;", "")), race);
    EXPECT_THAT(watch_all(counted(sc, "", "fence.sc.cta;", "")), race);
    EXPECT_THAT(watch_all(counted("@!%p4 " + std::string(sc), "", sc, "")), race);  // all threads but the storing one
  }
  EXPECT_THAT(watch_all(counted("fence.acq_rel.gpu;", "", "fence.sc.gpu;", "")), race);
  EXPECT_THAT(watch_all(counted("fence.sc.cta;", "", "fence.sc.gpu;", "")), race);
}

TEST(GlobalRaces, TheReportNamesTheHalfThatIsMissing) {
  const char* const writer =
      "the half of cta (0,0,0) is missing: a fence at gpu scope (__threadfence) after its access";
  const char* const reader =
      "the half of cta (1,0,0) is missing: a fence at gpu scope (__threadfence) after the atomic";
  const char* const narrow = "orders the threads of one CTA or cluster only";
  EXPECT_THAT(watch(counted("", "", "membar.gl;", "")).text, HasSubstr(writer));
  EXPECT_THAT(watch(counted("", "membar.gl;", "", "")).text, HasSubstr(reader));
  EXPECT_THAT(watch(counted("membar.gl;", "", "", "")).text, HasSubstr(reader));
  EXPECT_THAT(watch(counted("", "membar.gl;", "", "")).text, Not(HasSubstr(narrow)));
  EXPECT_THAT(watch(counted("", "membar.cta;", "membar.gl;", "")).text,
              AllOf(HasSubstr(writer), HasSubstr("its fence at k.ptx:"), HasSubstr(narrow)));
  EXPECT_THAT(watch(counted("", "membar.gl;", "membar.cta;", "")).text, AllOf(HasSubstr(reader), HasSubstr(narrow)));
}

TEST(GlobalRaces, AStoreAfterAReleaseIsNotOrderedByIt) {
  const auto kernel = [](const char* raise) {
    return handed_over(std::string(raise) + " st.global.u32 [%rd0+4], 8;", "ld.acquire.gpu.global.u32 %r5, [%rd0+128];",
                       "ld.global.u32 %r7, [%rd0+4];");
  };
  const auto race = Contains(StartsWith("RACE_WR x+4 4: write thread 0 (warp 0 lane 0) of cta (0,0,0) k.ptx:4"));
  EXPECT_THAT(watch_all(kernel("st.release.gpu.global.u32 [%rd0+128], 1;")), race);
  EXPECT_THAT(watch_all(kernel("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd0+128], 1;")), race);
}

TEST(GlobalRaces, AReleaseAtClusterScopeOrdersTheCtasOfOneCluster) {
  Watched kernel =
      handed_over("st.release.cluster.global.u32 [%rd0+128], 1;", "ld.acquire.cluster.global.u32 %r5, [%rd0+128];", "");
  EXPECT_THAT(watch_all(kernel), Contains(StartsWith("RACE_WR")));
  kernel.cluster = {2, 1, 1};
  EXPECT_THAT(watch_all(kernel), IsEmpty());
}

// A store to the flag by a thread that publishes nothing replaces what was published before.
TEST(GlobalRaces, AnAtomicKeepsEarlierPublicationsAndAStoreReplacesThem) {
  const auto third = [](const char* second) {
    return on(
        "mov.u32 %r4, %ctaid.x; setp.eq.u32 %p3, %r4, 0; setp.eq.u32 %p4, %r4, 1; @!%p0 ret;\n@%p3 bra A;\n"
        "@%p4 bra B;\nC: ld.acquire.gpu.global.u32 %r5, [%rd0+128];\nsetp.ne.u32 %p5, %r5, 2;\n@%p5 bra C;\n"
        "ld.global.u32 %r6, [%rd0];\nret;\nA: st.global.u32 [%rd0], 7;\nst.release.gpu.global.u32 [%rd0+128], 1;\n"
        "ret;\nB: ld.relaxed.gpu.global.u32 %r5, [%rd0+128];\nsetp.ne.u32 %p5, %r5, 1;\n@%p5 bra B;\n" +
            std::string(second),
        3);
  };
  EXPECT_THAT(watch_all(third("atom.relaxed.gpu.global.add.u32 %r7, [%rd0+128], 1;")), IsEmpty());
  EXPECT_THAT(watch_all(third("st.relaxed.gpu.global.u32 [%rd0+128], 2;")), Contains(StartsWith("RACE_WR x+0 4")));
}

TEST(GlobalRaces, TwoAtomicsAreNoRaceButAnAtomicAndAPlainLoadAre) {
  EXPECT_THAT(watch_all(on("red.global.add.u32 [%rd0], 1;", 3)), IsEmpty());
  EXPECT_THAT(watch(on("red.global.add.u32 [%rd0], 1;\n@%p0 ld.global.u32 %r4, [%rd0];", 1, 32)).races,
              ElementsAre(StartsWith("RACE_WR x+0 4")));
}

TEST(GlobalRaces, OneOfManyReadsIsEnough) {
  EXPECT_THAT(watch(on("mov.u32 %r4, %ctaid.x; setp.eq.u32 %p3, %r4, 8; and.pred %p3, %p3, %p0;\n"
                       "ld.global.u32 %r5, [%rd0];\n@%p3 st.global.u32 [%rd0], 9;",
                       9, 32))
                  .races,
              ElementsAre(StartsWith("RACE_RW x+0 4: read thread 0 (warp 0 lane 0) of cta (0,0,0)")));
  // Of twelve CTAs only the seventh is not waited for.
  EXPECT_THAT(
      watch(on("mov.u32 %r4, %ctaid.x; setp.eq.u32 %p3, %r4, 11; setp.ne.u32 %p4, %r4, 6; @!%p0 ret;\n@%p3 bra LAST;\n"
               "ld.global.u32 %r5, [%rd0];\n@%p4 red.release.gpu.global.add.u32 [%rd0+64], 1;\nret;\n"
               "LAST: ld.acquire.gpu.global.u32 %r5, [%rd0+64];\nst.global.u32 [%rd0], 9;",
               12))
          .races,
      ElementsAre(
          "RACE_RW x+0 4: read thread 0 (warp 0 lane 0) of cta (6,0,0) k.ptx:3; write thread 0 (warp 0 lane 0) of "
          "cta (11,0,0) k.ptx:7"));
}

// One byte is written of a word that many threads have read: the reads count for each byte.
TEST(GlobalRaces, ReadsOfAWordAreReadsOfItsBytes) {
  EXPECT_THAT(
      watch(on("mov.u32 %r4, %ctaid.x; setp.eq.u32 %p3, %r4, 5; setp.ne.u32 %p4, %r4, 3; @!%p0 ret;\n@%p3 bra LAST;\n"
               "ld.global.u32 %r5, [%rd0];\n@%p4 red.release.gpu.global.add.u32 [%rd0+64], 1;\nret;\n"
               "LAST: ld.acquire.gpu.global.u32 %r5, [%rd0+64];\nst.global.u8 [%rd0+2], 9;",
               6))
          .races,
      ElementsAre(
          "RACE_RW x+2 1: read thread 0 (warp 0 lane 0) of cta (3,0,0) k.ptx:3; write thread 0 (warp 0 lane 0) of "
          "cta (5,0,0) k.ptx:7"));
}

// --- engines ---------------------------------------------------------------------------------------------------------

TEST(GlobalRaces, ABulkStoreIsOrderedByTheWaitForItsWrite) {
  const auto kernel = [](const char* wait) {
    return on(
        "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 16;\n@%p0 cp.async.bulk.commit_group;\n@%p0 " +
        std::string(wait) + "\nbar.sync 0;\nld.global.u32 %r9, [%rd0+12];");
  };
  EXPECT_THAT(watch_all(kernel("cp.async.bulk.wait_group 0;")), IsEmpty());
  EXPECT_THAT(
      watch_all(kernel("cp.async.bulk.wait_group.read 0;")),
      Contains("RACE_WR x+12 4: write bulk store issued by thread 0 of cta (0,0,0) k.ptx:1; read thread 0 (warp 0 "
               "lane 0) of cta (0,0,0) k.ptx:5"));
}

TEST(GlobalRaces, AReductionByAnEngineIsStrong) {
  EXPECT_THAT(watch_all(on("@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [s], 16;\n@%p0 "
                           "cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;",
                           3)),
              IsEmpty());
}

TEST(GlobalRaces, ACpAsyncReadsUntilItIsWaitedFor) {
  const auto kernel = [](const char* wait) {
    return on("@%p0 cp.async.ca.shared.global [s], [%rd0], 16;\n" + std::string(wait) +
              "\nbar.sync 0;\n@!%p2 st.global.u32 [%rd0+8], 5;");
  };
  EXPECT_THAT(watch_all(kernel("cp.async.wait_all;")), ::testing::Each(StartsWith("SAME_VALUE")));
  EXPECT_THAT(watch_all(kernel("")),
              Contains(StartsWith("RACE_RW x+8 4: read cp.async issued by thread 0 of cta (0,0,0) "
                                  "k.ptx:1; write thread 32")));
}

TEST(GlobalRaces, ABulkLoadReadsUntilItsPhaseIsOver) {
  const auto kernel = [](const char* wait) {
    return on(
        "@%p0 mbarrier.init.shared.b64 [m], 1;\nbar.sync 0;\n@!%p0 bra W;\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [m], 16;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd0], 16, [m];\nW: " +
            std::string(wait) + "\n@%p6 bra S;\nbra W;\nS: @%p0 st.global.u32 [%rd0+8], 5;",
        1, 32);
  };
  EXPECT_THAT(watch_all(kernel("mbarrier.try_wait.parity.shared.b64 %p6, [m], 0;")), IsEmpty());
  EXPECT_THAT(
      watch_all(kernel("setp.eq.u32 %p6, 0, 0;")),
      Contains(StartsWith("RACE_RW x+8 4: read bulk load issued by thread 0 of cta (0,0,0) k.ptx:5; write thread 0")));
}

// --- the barrier of a cooperative grid -------------------------------------------------------------------------------

// The barrier `number` of cooperative_groups, as nvcc compiles it: thread 0 of each CTA adds to a counter in the workspace,
// CTA 0 so that the highest bit flips when all have, and polls that bit.
std::string grid_sync(int number) {
  return fmt::format(
      "bar.sync 0;\n@!%p0 bra D{0};\natom.add.release.gpu.u32 %r43, [%rd9], %r42;\n"
      "P{0}: ld.acquire.gpu.u32 %r44, [%rd9];\nxor.b32 %r44, %r44, %r43;\nsetp.gt.s32 %p6, %r44, -1;\n@%p6 bra P{0};\n"
      "D{0}: bar.sync 0;\n",
      number);
}

// 3 CTAs, whose threads 0 have a word each, at %rd4, and see that of the next CTA, at %rd5.
Watched in_grid(const std::string& body) {
  Watched kernel = on(
      "mov.u32 %r40, %envreg2; mov.u32 %r41, %envreg1; cvt.u64.u32 %rd8, %r40; cvt.u64.u32 %rd9, %r41; bfi.b64 %rd9, "
      "%rd9, %rd8, 32, 32; add.u64 %rd9, %rd9, 4; mov.u32 %r4, %ctaid.x; setp.eq.u32 %p3, %r4, 0; selp.b32 %r42, "
      "0x7ffffffe, 1, %p3; mad.wide.u32 %rd4, %r4, 4, %rd0; setp.eq.u32 %p4, %r4, 2; add.u32 %r5, %r4, 1; selp.b32 "
      "%r5, 0, "
      "%r5, %p4; mad.wide.u32 %rd5, %r5, 4, %rd0;\n" +
          body,
      3);
  kernel.launch.cooperative = true;
  kernel.instructions = 10'000'000;  // of CTAs that poll
  return kernel;
}

// A CTA may poll the first barrier after the others have already added to the counter at the second one.
TEST(GlobalRaces, AnArrivalAtTheNextBarrierOfTheGridOrdersNothingBeforeIt) {
  const std::string store = "@%p0 st.global.u32 [%rd4], 7;\n", load = "@%p0 ld.global.u32 %r9, [%rd5];\n";
  for (const std::string& last : {grid_sync(2), std::string()}) {
    EXPECT_THAT(watch_each(in_grid(grid_sync(1) + store + load + last)),
                Each(AllOf(Not(IsEmpty()), Each(StartsWith("RACE_")))))
        << last;
    EXPECT_THAT(watch_all(in_grid(grid_sync(1) + store + grid_sync(3) + load + last)), IsEmpty()) << last;
    EXPECT_THAT(watch_all(in_grid(store + grid_sync(1) + grid_sync(3) + load + last)), IsEmpty()) << last;
  }
}

// --- bounds ----------------------------------------------------------------------------------------------------------

TEST(GlobalRaces, ReachingTheLimitIsReported) {
  GlobalRaces few({.most_cells = 256});  // a page: 1024 bytes
  Watched kernel{.body =
                     "shl.b32 %r4, %r0, 5; cvt.u64.u32 %rd4, %r4; add.u64 %rd4, %rd4, %rd0;\nst.global.u32 [%rd4], 1;\n"
                     "st.global.u32 [%rd4+4], 1;",
                 .checks = {.init = false}};
  kernel.also = &few;
  const Seen seen = watch(kernel);
  EXPECT_THAT(seen.races, ElementsAre(StartsWith("WATCH_LIMIT")));
  EXPECT_FALSE(seen.result.clean());
  EXPECT_THAT(seen.text, HasSubstr("global_race keeps 256 cells of 4 bytes"));
  // 64 threads have published: with room for fewer locations, no race is reported rather than a false one.
  GlobalRaces blind({.most_flags = 30});
  kernel.body =
      "fence.acq_rel.gpu; shl.b32 %r4, %r0, 2; cvt.u64.u32 %rd4, %r4; add.u64 %rd4, %rd4, %rd0;\n"
      "red.global.add.u32 [%rd4], 1;\nst.global.u32 [%rd0+2048], %r0;\nld.global.u32 %r5, [%rd0+2048];";
  kernel.also = &blind;
  const Seen after = watch(kernel);
  EXPECT_THAT(after.races, Contains(StartsWith("WATCH_LIMIT")));
  EXPECT_THAT(after.races, ::testing::Not(Contains(StartsWith("RACE"))));
}

}  // namespace
}  // namespace kvscope::ptx::test::global_races_test
