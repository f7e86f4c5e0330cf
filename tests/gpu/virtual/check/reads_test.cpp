// Reads that have no marks yet: a write that is not ordered after them is a race all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::reads_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Warp 0 reads its words of s over and over.
std::string warp_0_reads(int times) {
  return "setp.ne.u32 %p3, %r2, 0;\n@%p3 bra READ;\nmov.u32 %r20, 0;\nL: "
         "ld.shared.u32 %r12, [%r3];\nadd.u32 %r20, "
         "%r20, 1;\nsetp.lt.u32 %p4, %r20, " +
         std::to_string(times) + ";\n@%p4 bra L;\nREAD:\n";
}
// Twice as many reads of warp 0, each of other places or of other lanes: none repeats an earlier one.
std::string warp_0_reads_all(int times) {
  return "setp.ne.u32 %p3, %r2, 0;\n@%p3 bra READ;\nmov.u32 %r20, 0;\nL: shr.u32 %r13, %r20, 7; mad.lo.u32 %r13, %r13, "
         "%r1, "
         "%r20; shl.b32 %r13, %r13, 2; and.b32 %r13, %r13, 1020; add.u32 %r13, %r13, %r60;\n"
         "ld.shared.u32 %r12, [%r13];\nld.shared.u32 %r12, [%r13+1024];\nadd.u32 %r20, %r20, 1;\nsetp.lt.u32 %p4, "
         "%r20, " +
         std::to_string(times) + ";\n@%p4 bra L;\nREAD:\n";
}
// A flag that orders nothing: relaxed accesses without a fence.
std::string raise_flag(int warp, int flag) {
  const std::string f = std::to_string(2048 + 64 * flag);
  return "mov.u32 %r21, 1;\nsetp.eq.u32 %p5, %r0, " + std::to_string(32 * warp) +
         ";\n@%p5 st.relaxed.cta.shared.u32 [s+" + f + "], %r21;\n";
}
std::string await_flag(int warp, int flag) {
  const std::string f = std::to_string(2048 + 64 * flag), n = std::to_string(flag);
  return "setp.ne.u32 %p5, %r2, " + std::to_string(warp) + ";\n@%p5 bra D" + n + ";\nW" + n +
         ": ld.relaxed.cta.shared.u32 %r22, [s+" + f + "];\nsetp.ne.u32 %p5, %r22, 1;\n@%p5 bra W" + n + ";\nD" + n +
         ":\n";
}
std::string warp_stores(int warp, const std::string& store) {
  return "setp.eq.u32 %p6, %r0, " + std::to_string(32 * warp) + ";\n@%p6 " + store + "\n";
}
const std::string kWord = "st.shared.u32 [s+32], %r0;";
const std::string kChunk = "st.shared.v4.u32 [s+32], {%r0, %r0, %r0, %r0};";

// Lane i reads 4 bytes of row i twice, with bar.warp.sync and a store to both sides of the rows in between. Only the second read races with the
// store of the other lane, although both reads get their marks at that store.
TEST(Rows, AReadOfARowTakesThePlaceOfAnEarlierOne) {
  const std::string body =
      "mad.lo.u32 %r11, %r1, 64, %r60; add.u32 %r11, %r11, 1024; setp.lt.u32 %p3, %r1, 16; selp.u32 %r12, 0, 3072, "
      "%p3; "
      "add.u32 %r12, %r12, %r3; xor.b32 %r13, %r1, 1; mad.lo.u32 %r13, %r13, 64, %r60; add.u32 %r13, %r13, 1024;\n"
      "ld.shared.u32 %r14, [%r11];\nbar.warp.sync 0xffffffff;\nst.shared.u32 [%r12], %r0;\n"
      "ld.shared.u32 %r14, [%r11];\nst.shared.u32 [%r13], %r0;";
  EXPECT_THAT(watch({.body = body, .threads = 32}).races,
              ElementsAre(StartsWith("RACE_RW s+1088 4: read thread 1 (warp 0 lane 1) "
                                     "k.ptx:5; write thread 0")));
}

TEST(ManyReads, AWriteRacesWithTheOneItIsNotOrderedAfter) {
  for (const int times : {1, 40, 1100, 2100}) {
    for (const std::string& store : {kWord, kChunk}) {
      const std::string body = warp_0_reads(times) + raise_flag(0, 0) + await_flag(1, 0) + warp_stores(1, store);
      EXPECT_THAT(watch({.body = body}).races, ElementsAre(StartsWith("RACE_RW s+32 4: read thread 8 (warp "
                                                                      "0 lane 8) k.ptx:4; write thread 32")))
          << times;
    }
  }
}

// The last read of a place counts, if the warp repeats it: its instruction is named, not that of the first.
TEST(ManyReads, OfRepeatedReadsTheLastOneIsNamed) {
  const std::string again = "setp.ne.u32 %p3, %r2, 0;\n@%p3 bra AGAIN;\nld.shared.u32 %r12, [%r3];\nAGAIN:\n";
  const std::string body = warp_0_reads(40) + again + raise_flag(0, 0) + await_flag(1, 0) + warp_stores(1, kWord);
  EXPECT_THAT(watch({.body = body}).races,
              ElementsAre(StartsWith("RACE_RW s+32 4: read thread 8 (warp 0 lane 8) k.ptx:11;")));
}

// A read after a barrier is another one, by the same lanes or by one of them: the barrier orders only the earlier reads.
TEST(ManyReads, AReadAfterABarrierIsAnother) {
  for (const std::string outside : {"%r2, 0", "%r0, 8"}) {
    const std::string again =
        "setp.ne.u32 %p3, " + outside + ";\n@%p3 bra AGAIN;\nld.shared.u32 %r12, [%r3];\nAGAIN:\n";
    const std::string body =
        warp_0_reads(40) + "bar.sync 0;\n" + again + raise_flag(0, 0) + await_flag(1, 0) + warp_stores(1, kWord);
    EXPECT_THAT(watch({.body = body}).races,
                ElementsAre(StartsWith("RACE_RW s+32 4: read thread 8 (warp 0 lane 8) k.ptx:12;")));
  }
}

// Few reads, many reads, and more reads than may be pending without marks.
TEST(ManyReads, OfManyPlacesKeepTheirOrder) {
  for (const int times : {100, 1100, 4200}) {
    for (const std::string& store : {kWord, kChunk}) {
      const std::string racing = warp_0_reads_all(times) + raise_flag(0, 0) + await_flag(1, 0) + warp_stores(1, store);
      EXPECT_THAT(watch({.body = racing}).races, ElementsAre(StartsWith("RACE_RW s+32 "))) << times;
      EXPECT_THAT(watch({.body = warp_0_reads_all(times) + "bar.sync 0;\n" + warp_stores(1, store)}).races, IsEmpty());
    }
  }
}

// Reads of bytes far apart: a write makes marks of those near it, and the others are found by a later write all the same. Reads that reach
// from one place to the other are near both.
TEST(ManyReads, OfFarPlacesAreFoundByALaterWrite) {
  const auto by_warp_0 = [](const std::string& loads) {
    return "setp.ne.u32 %p3, %r2, 0;\n@%p3 bra READ;\n" + loads + "\nREAD:\n";
  };
  const std::string near = "ld.shared.u32 %r12, [%r3];", far = "ld.shared.u32 %r12, [%r3+2048];",
                    across = "mad.lo.u32 %r13, %r1, 68, %r60; ld.shared.u32 %r12, [%r13];";
  // Warp 0 stores again to a word that it has read itself: this word's chunk gets the marks of its reads.
  const std::string own = "setp.eq.u32 %p6, %r0, 0;\n@%p6 st.shared.u32 [s], %r0;\n";
  const std::string order = raise_flag(0, 9) + await_flag(1, 9);
  const auto races = [&](const std::string& loads, const std::string& store) {
    return watch({.body = by_warp_0(loads) + own + order + warp_stores(1, store)}).races;
  };
  const std::string there = "RACE_RW s+2080 4: read thread 8 (warp 0 lane 8)",
                    here = "RACE_RW s+32 4: read thread 8 (warp 0 lane 8)";
  for (const std::string& loads :
       {near + far, far + near, near + across + far, across + far + near, near + far + across, far + near + across}) {
    EXPECT_THAT(races(loads, "st.shared.u32 [s+2080], %r0;"), ElementsAre(StartsWith(there))) << loads;
    EXPECT_THAT(races(loads, "st.shared.v4.u32 [s+2080], {%r0, %r0, %r0, %r0};"), ElementsAre(StartsWith(there)))
        << loads;
    EXPECT_THAT(races(loads, "st.shared.u32 [s+32], %r0;"), ElementsAre(StartsWith(here))) << loads;
    EXPECT_THAT(races(loads, "st.shared.u32 [s+3968], %r0;"), IsEmpty()) << loads;
  }
}

// A read is checked against writes that are not ordered before it although its warp is ordered after all that came earlier.
TEST(ManyReads, AreCheckedAgainstWritesAfterTheBarrier) {
  for (const char* place : {"s+32", "s+2080"}) {
    const std::string body = std::string("st.shared.u32 [%r3], %r0;\nst.shared.u32 [%r3+2048], %r0;\nbar.sync 0;\n") +
                             "setp.ne.u32 %p3, %r2, 1;\n@%p3 bra READ;\nld.shared.u32 %r12, [s+32];\nREAD:\n" +
                             warp_stores(0, std::string("st.shared.u32 [") + place + "], 7;") + raise_flag(0, 9) +
                             await_flag(1, 9) +
                             "setp.ne.u32 %p3, %r0, 40;\n@%p3 bra AGAIN;\nld.shared.u32 %r12, [s+32];\nAGAIN:\n";
    const auto races = watch({.body = body}).races;
    if (std::string(place) == "s+32") {
      EXPECT_THAT(races, ::testing::Contains(StartsWith("RACE_WR s+32 4: write thread 0 (warp 0 lane 0)")));
    } else {
      EXPECT_THAT(races, IsEmpty());
    }
  }
}

TEST(ManyReads, ABarrierOrdersThemAll) {
  for (const int times : {1, 40, 1100, 2100}) {
    for (const std::string& store : {kWord, kChunk}) {
      EXPECT_THAT(watch({.body = warp_0_reads(times) + "bar.sync 0;\n" + warp_stores(1, store)}).races, IsEmpty());
    }
  }
}

// Warp 1 is ordered after the reads and overwrites their bytes. Warp 2 is ordered after neither, and races with the later
// access.
TEST(ManyReads, AWriteReplacesThoseBeforeIt) {
  const std::string both = "setp.lt.u32 %p7, %r0, 64;\n@%p7 bar.sync 1, 64;\n";
  for (const int times : {1, 40, 1100}) {
    const std::string body = warp_0_reads(times) + both + warp_stores(1, kChunk) + raise_flag(1, 0) + await_flag(2, 0) +
                             warp_stores(2, kWord);
    EXPECT_THAT(watch({.body = body, .threads = 96}).races,
                ElementsAre(StartsWith("RACE_WW s+32 4: write thread 32 (warp 1 lane 0)")));
  }
}

// The same, with more reads after the write: warp 2 races with these.
TEST(ManyReads, ThoseAfterAWriteAreKept) {
  const std::string both = "setp.lt.u32 %p7, %r0, 64;\n@%p7 bar.sync 1, 64;\n";
  const std::string again = "setp.eq.u32 %p6, %r0, 8;\n@%p6 ld.shared.u32 %r12, [%r3];\n";
  const std::string body = warp_0_reads(40) + both + warp_stores(1, kChunk) + both + again + raise_flag(0, 0) +
                           await_flag(2, 0) + warp_stores(2, kWord);
  EXPECT_THAT(watch({.body = body, .threads = 96}).races,
              ElementsAre(StartsWith("RACE_RW s+32 4: read thread 8 (warp 0 lane 8)"),
                          StartsWith("RACE_WW s+32 4: write thread 32 (warp 1 lane 0)")));
}

// A read that is ordered before some threads is kept while it is not ordered before all.
TEST(ManyReads, AreKeptUntilTheyAreOrderedBeforeAllThreads) {
  const std::string both = "setp.lt.u32 %p7, %r0, 64;\n@%p7 bar.sync 1, 64;\n";
  const std::string body = warp_0_reads(40) + both + raise_flag(0, 0) + await_flag(2, 0) + warp_stores(2, kWord);
  EXPECT_THAT(watch({.body = body, .threads = 96}).races,
              ElementsAre(StartsWith("RACE_RW s+32 4: read thread 8 (warp 0 lane 8)")));
}

}  // namespace
}  // namespace kvscope::ptx::test::reads_test
