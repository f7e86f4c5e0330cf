// Races of single bytes, stores of equal values, lanes of one instruction; unwritten bytes; ld.global.nc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::bytes_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(RaceBytes, AccessesOfAdjacentPairsOfBytesAreNoRace) {
  EXPECT_THAT(
      watch_all({.body = "shl.b32 %r4, %r0, 1; add.u32 %r4, %r4, %r60; cvt.u16.u32 %h0, %r0;\nst.shared.u16 [%r4], "
                         "%h0;\nld.shared.u16 %h1, [%r4];"}),
      IsEmpty());
  // Odd threads read the bytes next to those that even threads write.
  EXPECT_THAT(
      watch({.body = "shl.b32 %r4, %r0, 1; add.u32 %r4, %r4, %r60; cvt.u16.u32 %h0, %r0;\nst.shared.u16 [%r4], "
                     "%h0;\nand.b32 %r4, %r4, 0xfffffffd;\nld.shared.u16 %h1, [%r4];"})
          .races,
      ElementsAre("RACE_WR s+0 2: write thread 0 (warp 0 lane 0) k.ptx:2; read thread 1 (warp 0 lane 1) k.ptx:4"));
}

TEST(RaceBytes, AccessesOfAdjacentBytesByTwoWarpsAreNoRace) {
  EXPECT_THAT(watch_all({.body = "and.b32 %r4, %r0, 31; shl.b32 %r4, %r4, 1; add.u32 %r4, %r4, %r2; add.u32 %r4, %r4, "
                                 "%r60;\nst.shared.u8 [%r4], %r0;\nld.shared.u8 %r9, [%r4];"}),
              IsEmpty());
}

TEST(SameValue, TwoWarpsThatStoreOneValueGetANote) {
  Watched kernel{.body = "mov.u32 %r4, 5;\n@%p1 st.shared.u32 [s+64], %r4;"};
  EXPECT_EQ(watch(kernel).text,
            "SAME_VALUE  shared 0x00440 (s + 64)  kernel k  cta (0,0,0)\n"
            "  write  thread 0 (warp 0 lane 0)   st.shared.u32          k.ptx:2\n"
            "  write  thread 32 (warp 1 lane 0)  st.shared.u32          k.ptx:2\n"
            "  no order between them; thread 32 has not synchronized since it began; both wrote the same bytes");
  EXPECT_TRUE(watch(kernel).result.clean());
  kernel.checks.race.same_value = SameValue::ignore;
  EXPECT_THAT(watch(kernel).races, IsEmpty());
  kernel.checks.race.same_value = SameValue::error;
  EXPECT_THAT(watch(kernel).races, ElementsAre(StartsWith("RACE_WW s+64 4")));
}

TEST(SameValue, DifferentValuesAreARace) {
  EXPECT_THAT(
      watch({.body = "@%p1 st.shared.u32 [s+64], %r0;"}).races,
      ElementsAre("RACE_WW s+64 4: write thread 0 (warp 0 lane 0) k.ptx:1; write thread 32 (warp 1 lane 0) k.ptx:1"));
}

// The machine itself reports lanes of one instruction that collide: the checker does not report them again.
TEST(Collision, IsReportedOnce) {
  const Seen seen =
      watch({.body = "and.b32 %r4, %r0, 1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r60;\nst.shared.u32 [%r4], "
                     "%r0;",
             .threads = 32});
  ASSERT_EQ(seen.races.size(), 1U);
  EXPECT_THAT(seen.races[0], StartsWith("STORE_COLLISION"));
}

// Two instructions whose lanes access the same bytes in different orders are a race.
TEST(Collision, OfTwoRoundsOfALoopIsARace) {
  EXPECT_THAT(
      watch({.body = "mov.u32 %r5, 0;\nL: xor.b32 %r4, %r3, %r5;\nst.shared.u32 [%r4], %r0;\nadd.u32 %r5, %r5, "
                     "4;\nsetp.lt.u32 %p6, %r5, 8;\n@%p6 bra L;",
             .threads = 32})
          .races,
      ElementsAre("RACE_WW s+4 4: write thread 1 (warp 0 lane 1) k.ptx:3; write thread 0 (warp 0 lane 0) k.ptx:3"));
}

TEST(Atomics, AreNoRaceWithEachOtherButWithAPlainLoad) {
  EXPECT_THAT(watch_all({.body = "@%p0 st.shared.u32 [s], 0;\nbar.sync 0;\nred.shared.add.u32 [s], 1;"}), IsEmpty());
  EXPECT_THAT(watch({.body = "@%p0 st.shared.u32 [s], 0;\nbar.sync 0;\n@%p2 red.shared.add.u32 [s], 1;\n@!%p2 "
                             "ld.shared.u32 %r9, [s];"})
                  .races,
              ElementsAre(StartsWith("RACE_")));
  // A plain read still counts after a strong read of the same bytes.
  EXPECT_THAT(
      watch({.body = "@%p0 ld.shared.u32 %r9, [s];\n@%p0 ld.relaxed.cta.shared.u32 %r9, [s];\n@!%p2 bra E;\nE: @!%p2 "
                     "red.shared.add.u32 [s], 1;"})
          .races,
      ElementsAre("RACE_RW s+0 4: read thread 0 (warp 0 lane 0) k.ptx:1; write thread 32 (warp 1 lane 0) k.ptx:4"));
}

// Random reads of a table without a write in between: their marks are bounded, and none is lost.
TEST(Reads, OfManyLanesInManyOrdersAreAllKept) {
  EXPECT_THAT(
      watch({.body =
                 "mov.u32 %r5, 0;\nmov.u32 %r6, %r0;\nL: mad.lo.u32 %r6, %r6, 1664525, 1013904223;\nshr.u32 %r7, "
                 "%r6, 20;\nand.b32 %r7, %r7, 60;\nadd.u32 %r7, %r7, %r60;\n@!%p0 ld.shared.u32 %r9, "
                 "[%r7];\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p6, %r5, 200;\n@%p6 bra L;\n@%p0 st.shared.u32 [s], 1;"})
          .races,
      Contains("RACE_RW s+0 4: read thread 1 (warp 0 lane 1) k.ptx:7; write thread 0 (warp 0 lane 0) k.ptx:11"));
}

TEST(NcModified, NamesTheStoreThatThisLaunchMade) {
  EXPECT_EQ(watch({.body = "@%p0 st.global.u32 [%rd0+16], %r0;\n@%p0 ld.global.nc.u32 %r5, [%rd0+16];"}).text,
            "NC_MODIFIED  global 0x200000010 (x + 16)  kernel k  cta (0,0,0)\n"
            "  write  thread 0 (warp 0 lane 0) of cta 0  st.global.u32             k.ptx:1\n"
            "  read   thread 0 (warp 0 lane 0)           ld.global.nc.u32          k.ptx:2\n"
            "  ld.global.nc may read what was there before this launch: use ld.global for bytes that it writes");
  EXPECT_THAT(watch_all({.body = "@%p0 st.global.u32 [%rd0+16], %r0;\n@%p0 ld.global.nc.u32 %r5, [%rd0+20];\n@%p0 "
                                 "ld.global.u32 %r5, [%rd0+16];"}),
              IsEmpty());
}

}  // namespace
}  // namespace kvscope::ptx::test::bytes_test
