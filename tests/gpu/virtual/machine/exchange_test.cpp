// shfl, vote, match, redux, elect, bar.warp.sync: their values, and lanes that arrive separately.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gpu/virtual/machine/warp/detail/warp_exchange.h"
#include "gpu/virtual/machine/warp/shfl_source.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::exchange_test {
namespace {

using test::run;

struct ShflRow {
  ShflMode mode;
  std::uint32_t b, c;
  std::array<int, 8> source;  // of lanes 0 1 7 8 15 16 30 31
  std::array<bool, 8> ok;
};

// The pseudocode of the manual, evaluated by hand: a bfly may read an earlier segment, idx wraps in its own.
TEST(Exchange, ShflReadsTheLaneOfTheTable) {
  const std::array rows{
      ShflRow{ShflMode::idx, 3, 0x181f, {3, 3, 3, 11, 11, 19, 27, 27}, {1, 1, 1, 1, 1, 1, 1, 1}},
      ShflRow{ShflMode::up, 1, 0, {0, 0, 6, 7, 14, 15, 29, 30}, {0, 1, 1, 1, 1, 1, 1, 1}},
      ShflRow{ShflMode::up, 1, 0x1800, {0, 0, 6, 8, 14, 16, 29, 30}, {0, 1, 1, 0, 1, 0, 1, 1}},
      ShflRow{ShflMode::down, 3, 0x181f, {3, 4, 7, 11, 15, 19, 30, 31}, {1, 1, 0, 1, 0, 1, 0, 0}},
      ShflRow{ShflMode::bfly, 8, 0x181f, {0, 1, 7, 0, 7, 16, 22, 23}, {0, 0, 0, 1, 1, 0, 1, 1}},
      ShflRow{ShflMode::bfly, 16, 0x100f, {0, 1, 7, 8, 15, 0, 14, 15}, {0, 0, 0, 0, 0, 1, 1, 1}},
  };
  constexpr std::array<int, 8> kShown{0, 1, 7, 8, 15, 16, 30, 31};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < kShown.size(); ++i) {
      const ShflSource from = shfl_source(rows[r].mode, kShown[i], rows[r].b, rows[r].c);
      EXPECT_EQ(from.lane, rows[r].source[i]) << "row " << r << " lane " << kShown[i];
      EXPECT_EQ(from.in_segment, rows[r].ok[i]) << "row " << r << " lane " << kShown[i];
    }
  }
}

constexpr const char* kStore = R"(
    mad.wide.u32 %rd2, %r0, 4, %rd0;
    st.global.u32 [%rd2], %r9;)";

TEST(Exchange, VotesCountTheLanesThatTakePart) {
  const auto ran = run({.body = R"(
    setp.lt.u32 %p1, %r0, 20;
    setp.ge.u32 %p2, %r0, 8;
    @%p1 vote.sync.ballot.b32 %r9, %p2, 0x000fffff;
    @%p1 vote.sync.all.pred %p3, %p2, 0x000fffff;
    @%p1 vote.sync.any.pred %p4, %p2, 0x000fffff;
    @%p1 vote.sync.uni.pred %p5, %p2, 0x000fffff;
    @%p1 vote.sync.ballot.b32 %r8, !%p2, 0x000fffff;
    selp.u32 %r1, 1, 0, %p3; selp.u32 %r2, 2, 0, %p4; selp.u32 %r3, 4, 0, %p5;
    or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3;
    st.global.u32 [%rd0+128], %r1;
    st.global.u32 [%rd0+132], %r8;)" +
                                std::string(kStore),
                        .out_bytes = 256});
  EXPECT_EQ(ran.word(0), 0x000fff00u);
  EXPECT_EQ(ran.word(19), 0x000fff00u);
  EXPECT_EQ(ran.word(33), 0u) << "lane 31 is the last to store, and has no ballot";
  EXPECT_EQ(ran.word(32), 0u);
}

TEST(Exchange, MatchFindsEqualLanesAndReduxReducesThem) {
  const auto ran = run({.body = R"(
    and.b32 %r1, %r0, 3;
    match.any.sync.b32 %r9, %r1, -1;
    match.all.sync.b32 %r2|%p1, %r1, -1;
    match.all.sync.b32 %r3|%p2, 5, -1;
    redux.sync.add.u32 %r4, %r0, -1;
    sub.s32 %r5, %r0, 10;
    redux.sync.min.s32 %r6, %r5, -1;
    redux.sync.max.u32 %r7, %r5, -1;
    redux.sync.xor.b32 %r8, %r0, -1;
    selp.u32 %r10, 1, 0, %p1; selp.u32 %r11, 1, 0, %p2;
    st.global.u32 [%rd0+128], %r2; st.global.u32 [%rd0+132], %r10; st.global.u32 [%rd0+136], %r3;
    st.global.u32 [%rd0+140], %r11; st.global.u32 [%rd0+144], %r4; st.global.u32 [%rd0+148], %r6;
    st.global.u32 [%rd0+152], %r7; st.global.u32 [%rd0+156], %r8;)" +
                                std::string(kStore),
                        .out_bytes = 256});
  EXPECT_EQ(ran.word(0), 0x11111111u);
  EXPECT_EQ(ran.word(31), 0x88888888u);
  EXPECT_EQ(ran.word(32), 0u);
  EXPECT_EQ(ran.word(33), 0u);
  EXPECT_EQ(ran.word(34), 0xffffffffu);
  EXPECT_EQ(ran.word(35), 1u);
  EXPECT_EQ(ran.word(36), 496u);
  EXPECT_EQ(ran.word(37), static_cast<std::uint32_t>(-10)) << "signed";
  EXPECT_EQ(ran.word(38), 0xffffffffu) << "unsigned: -1 is the largest";
  EXPECT_EQ(ran.word(39), 0u);
}

// min and max of f32: NaN is skipped, or spreads with .NaN; -0 is less than +0; .abs is applied first.
TEST(Exchange, ReduxOfFloatsSkipsNanUnlessAskedForIt) {
  struct Case {
    const char* words;
    std::uint32_t even, odd;  // of lanes
    std::uint32_t result;
  };
  constexpr std::uint32_t kNan = 0xffc12345, kCanonical = 0x7fffffff, kInf = 0x7f800000;
  for (const Case& c :
       {Case{"min", 0x40000000, 0xc0400000, 0xc0400000}, Case{"max", 0x40000000, 0xc0400000, 0x40000000},
        Case{"max.abs", 0x40000000, 0xc0400000, 0x40400000}, Case{"min.abs", 0xc0000000, 0xc0400000, 0x40000000},
        Case{"min", kNan, 0x3f800000, 0x3f800000}, Case{"min.NaN", kNan, 0x3f800000, kCanonical},
        Case{"max", kNan, kNan, kCanonical}, Case{"max.abs.NaN", kInf, kNan, kCanonical},
        Case{"min", 0, 0x80000000, 0x80000000}, Case{"max", 0, 0x80000000, 0},
        Case{"max", 0x80000001, 0x80000002, 0x80000001}, Case{"max", kInf, 0x7f7fffff, kInf}}) {
    const auto ran = run({.body = fmt::format("and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0;"
                                              "mov.b32 %r2, 0x{:x}; mov.b32 %r3, 0x{:x}; selp.b32 %r4, %r2, %r3, %p1;"
                                              "redux.sync.{}.f32 %r9, %r4, -1; {}",
                                              c.even, c.odd, c.words, kStore),
                          .out_bytes = 128,
                          .target = "sm_100a"});
    EXPECT_TRUE(ran.messages.empty()) << c.words;
    EXPECT_EQ(ran.word(0), c.result) << c.words;
    EXPECT_EQ(ran.word(31), c.result) << c.words;
  }
}

// Two halves with different masks exchange independently in one instruction, without waiting for each other.
TEST(Exchange, LanesWithDifferentMasksFormDifferentGroups) {
  const auto ran = run({.body = R"(
    setp.lt.u32 %p1, %r0, 16;
    selp.b32 %r1, 0x0000ffff, 0xffff0000, %p1;
    redux.sync.add.u32 %r9, %r0, %r1;)" +
                                std::string(kStore),
                        .out_bytes = 128});
  EXPECT_TRUE(ran.messages.empty());
  EXPECT_EQ(ran.word(0), 120u);
  EXPECT_EQ(ran.word(31), 376u);
}

// Both sides of an if contain the same instruction: the lanes exchange values, which is reported as a note.
TEST(Exchange, LanesMeetFromTwoPlacesAndThatIsNoted) {
  const auto ran = run({.body = R"(
    setp.lt.u32 %p1, %r0, 16;
    @!%p1 bra ELSE;
    shfl.sync.idx.b32 %r9, %r0, 20, 0x1f, -1;
    bra JOIN;
  ELSE: shfl.sync.idx.b32 %r9, %r0, 3, 0x1f, -1;
  JOIN: add.u32 %r8, %r8, 0;)" + std::string(kStore),
                        .out_bytes = 128});
  ASSERT_EQ(ran.messages.size(), 1u);
  EXPECT_EQ(ran.messages[0], "WARP_PC_MIX lanes of mask ffffffff meet from different instructions");
  EXPECT_TRUE(ran.result.clean());
  EXPECT_EQ(ran.word(0), 20u);
  EXPECT_EQ(ran.word(31), 3u);
}

// A partner that has returned is not waited for. Lanes 8 to 15 read one: PTX does not define their value.
TEST(Exchange, LanesThatHaveExitedDoNotCount) {
  const auto ran = run({.body = R"(
    setp.ge.u32 %p1, %r0, 16;
    @%p1 exit;
    shfl.sync.down.b32 %r9, %r0, 8, 0x1f, -1;)" +
                                std::string(kStore),
                        .out_bytes = 128});
  ASSERT_EQ(ran.messages.size(), 1u);
  EXPECT_EQ(ran.messages[0],
            "ABSENT_THREADS lanes 0000ff00 read lanes that have exited: PTX does not define the value, and they keep "
            "their own here");
  EXPECT_FALSE(ran.result.clean());
  const Report& r = ran.result.reports[0];
  ASSERT_EQ(r.parties.size(), 2u);
  EXPECT_EQ(r.parties[0].action, "arrived");
  EXPECT_EQ(r.parties[0].lanes, 0x0000ffffu);
  EXPECT_TRUE(r.parties[0].opcode.starts_with("shfl"));
  EXPECT_EQ(r.parties[1].action, "exited");
  EXPECT_EQ(r.parties[1].lanes, 0xffff0000u);
  EXPECT_EQ(r.parties[1].opcode, "exit");
  EXPECT_EQ(ran.word(0), 8u);
  EXPECT_EQ(ran.word(15), 15u) << "its source is gone: its own value";
}

// The if has no else: its lanes exchange after the others have gone to the end. Each result lacks those lanes.
TEST(Exchange, AFullMaskThatOnlySomeLanesReachIsReported) {
  struct Case {
    const char* statement;
    Severity severity;
    const char* message;
  };
  const char* const kAlone =
      "lanes ffff0000 of the mask ffffffff have exited: the result is that of the other lanes alone";
  const char* const kNotWaited = "lanes ffff0000 of the mask ffffffff have exited: they are not waited for";
  for (const Case& c : {Case{"vote.sync.ballot.b32 %r9, 1, -1;", Severity::warning, kAlone},
                        Case{"match.any.sync.b32 %r9, %r0, -1;", Severity::warning, kAlone},
                        Case{"redux.sync.add.u32 %r9, %r0, -1;", Severity::warning, kAlone},
                        Case{"shfl.sync.idx.b32 %r9, %r0, 3, 0x1f, -1;", Severity::note, kNotWaited},
                        Case{"bar.warp.sync -1;", Severity::note, kNotWaited}}) {
    const auto ran =
        run({.body = "setp.ge.u32 %p1, %r0, 16; @%p1 bra OUT;" + std::string(c.statement) +
                     "setp.eq.u32 %p2, %r0, 0; @%p2 st.global.u32 [%rd0], %r9; OUT: add.u32 %r1, %r1, 0;"});
    ASSERT_EQ(ran.result.reports.size(), 1u) << c.statement;
    const Report& r = ran.result.reports[0];
    EXPECT_EQ(r.kind, ReportKind::absent_threads);
    EXPECT_EQ(r.severity, c.severity) << c.statement;
    EXPECT_EQ(r.message, c.message) << c.statement;
    ASSERT_EQ(r.parties.size(), 2u) << c.statement;
    EXPECT_EQ(r.parties[0].lanes, 0x0000ffffu);
    EXPECT_EQ(r.parties[1].lanes, 0xffff0000u);
  }
}

// A shuffle in a block of 16 threads that reads lanes 16 and up; a vote there has all lanes that exist.
TEST(Exchange, LanesThatNeverExistedAreReportedOnlyWhereTheyAreRead) {
  const auto read = run({.body = "shfl.sync.bfly.b32 %r9, %r0, 16, 0x1f, -1;" + std::string(kStore), .threads = 16});
  ASSERT_EQ(read.messages.size(), 1u);
  EXPECT_EQ(read.messages[0],
            "ABSENT_THREADS lanes 0000ffff read lanes that do not exist: PTX does not define the value, and they keep "
            "their own here");
  const auto vote =
      run({.body = "vote.sync.ballot.b32 %r9, 1, -1; bar.warp.sync -1;" + std::string(kStore), .threads = 16});
  EXPECT_TRUE(vote.messages.empty());
  EXPECT_EQ(vote.word(0), 0xffffu);
}

// The same with a later exit: the waiting lanes must be woken by it.
TEST(Exchange, WaitingLanesContinueWhenTheOthersExit) {
  const auto ran = run({.body = R"(
    setp.ge.u32 %p1, %r0, 16;
    @%p1 bra OUT;
    bar.warp.sync -1;
    st.global.u32 [%rd0], 1;
  OUT: add.u32 %r1, %r1, 0;)"});
  EXPECT_TRUE(ran.result.clean()) << "a note alone";
  EXPECT_EQ(ran.word(0), 1u);
}

TEST(Exchange, ALaneOutsideItsOwnMaskIsAnError) {
  const auto ran = run({.body = "redux.sync.add.u32 %r9, %r0, 0x0000ffff;" + std::string(kStore), .out_bytes = 128});
  ASSERT_EQ(ran.messages.size(), 1u);
  EXPECT_EQ(ran.messages[0], "DIVERGED lanes ffff0000 are not in the mask 0000ffff that they name");
}

// Each lane names a mask of its own, so each waits alone. An exit wakes them all: they continue as one lane group, which
// splits into as many again. There is room for that many lane groups only once those that were merged are removed.
TEST(Exchange, LanesThatWaitAloneAreMergedAndSplitAgain) {
  const auto ran = run({.body = "vote.sync.ballot.b32 %r9, %p0, %r0;"});
  ASSERT_FALSE(ran.messages.empty());
  EXPECT_EQ(ran.messages[0], "DIVERGED lanes 00000001 are not in the mask 00000000 that they name");
  EXPECT_FALSE(ran.result.clean());
}

TEST(Exchange, ElectNamesTheLowestLaneThatIsLeft) {
  const auto ran = run({.body = R"(
    setp.lt.u32 %p1, %r0, 5;
    @%p1 exit;
    elect.sync %r9|%p2, 0xfffffff0;)" +
                                std::string(kStore),
                        .out_bytes = 128});
  static_cast<void>(ran);
  EXPECT_EQ(ran.word(6), 5u);
}

// The report of a deadlock within a warp: both places, and the missing lanes.
TEST(Exchange, LanesThatWaitForEachOtherAtDifferentInstructionsHaveDiverged) {
  const auto ran = run({.body = R"(
    setp.lt.u32 %p1, %r0, 16;
    @!%p1 bra ELSE;
    bar.warp.sync -1;
    bra JOIN;
  ELSE: redux.sync.add.u32 %r9, %r0, -1;
  JOIN: add.u32 %r8, %r8, 0;)"});
  ASSERT_EQ(ran.messages.size(), 1u);
  EXPECT_EQ(
      ran.messages[0],
      "DIVERGED warp 0 lanes 0000ffff bar.warp.sync -1 at one.ptx:14 (line 14): mask ffffffff: lanes 0000ffff are "
      "here; missing lanes ffff0000 at redux.sync.add.u32 %r9, %r0, -1 at one.ptx:16 (line 16)\n"
      "warp 0 lanes ffff0000 redux.sync.add.u32 %r9, %r0, -1 at one.ptx:16 (line 16): mask ffffffff: lanes "
      "ffff0000 are here; missing lanes 0000ffff at bar.warp.sync -1 at one.ptx:14 (line 14)");
}

}  // namespace
}  // namespace kvscope::ptx::exchange_test
