#include "gpu/virtual/machine/diagnosis/report.h"

#include <gtest/gtest.h>

namespace kvscope::ptx::report_test {
namespace {

Report race() {
  Report r;
  r.kind = ReportKind::race_rw;
  r.kernel = "decode";
  r.cta = {3, 0, 0};
  r.address = {
      .space = Space::shared, .absolute = 0xc00, .symbol = "ring.k[1]", .offset = 0, .bytes = 16, .known = true};
  r.parties = {{.action = "read",
                .actor = "thread 40 (warp 1 lane 8)",
                .thread = 40,
                .warp = 1,
                .lanes = 1u << 8,
                .pc = 7,
                .opcode = "ldmatrix.x4",
                .source = "decode.cuh:134  <- decode_main.cu:22"},
               {.action = "write",
                .actor = "tensor load, mbarrier full[1] issued by thread 0",
                .pc = 9,
                .opcode = "",
                .source = "decode.cuh:108  <- decode_main.cu:22"}};
  r.message = "no order between them; thread 40 last synchronized at decode.cuh:121 (mbarrier wait)";
  return r;
}

// Unrolled code has many instructions of one line: one report, with a count. Without line information each
// instruction is a separate place. A warning is not hidden by an error.
TEST(Report, InstructionsOfOneLineAreReportedTogether) {
  const auto at = [](std::int32_t pc, std::string source, bool has_line) {
    Report r;
    r.kind = ReportKind::race_ww;
    ReportParty p;
    p.pc = pc;
    p.source = std::move(source);
    p.has_line = has_line;
    r.parties.push_back(p);
    return r;
  };
  Reports reports;
  EXPECT_TRUE(reports.add(at(1, "a.cu:7", true)));
  EXPECT_FALSE(reports.add(at(2, "a.cu:7", true)));
  EXPECT_FALSE(reports.add(at(3, "a.cu:7", true)));
  EXPECT_TRUE(reports.add(at(4, "a.cu:8", true)));
  EXPECT_TRUE(reports.add(at(5, "a.cu:7  <- b.cu:1", true))) << "inlined elsewhere";
  EXPECT_TRUE(reports.add(at(6, "k.ptx:7", false)));
  EXPECT_TRUE(reports.add(at(7, "k.ptx:7", false)));
  Report mild = at(8, "a.cu:7", true);
  mild.severity = Severity::warning;
  EXPECT_TRUE(reports.add(mild));
  EXPECT_EQ(reports.all()[0].repeated, 2);
  EXPECT_EQ(reports.repeated(), 2);
}

// The name as people write it, if it is known.
TEST(Report, HasTheShortNameOfTheKernel) {
  Report r;
  r.kind = ReportKind::deadlock;
  r.kernel = "_ZN2ns6decodeILi64EEEvPf";
  EXPECT_EQ(to_text(r), "DEADLOCK  kernel _ZN2ns6decodeILi64EEEvPf  cta (0,0,0)");
  r.short_kernel = "decode";
  EXPECT_EQ(to_text(r), "DEADLOCK  kernel decode  cta (0,0,0)");
}

TEST(Report, ARaceIsWrittenInColumns) {
  EXPECT_EQ(to_text(race()),
            "RACE write-after-read  shared 0x00c00 (ring.k[1] + 0)  kernel decode  cta (3,0,0)\n"
            "  read   thread 40 (warp 1 lane 8)     ldmatrix.x4          decode.cuh:134  <- decode_main.cu:22\n"
            "  write  tensor load, mbarrier full[1] issued by thread 0   decode.cuh:108  <- decode_main.cu:22\n"
            "  no order between them; thread 40 last synchronized at decode.cuh:121 (mbarrier wait)");
}

// The opposite case for the columns: here the thread's line is the longer one.
TEST(Report, AMissingFenceIsWrittenInColumns) {
  Report r;
  r.kind = ReportKind::proxy_fence;
  r.kernel = "store_tile";
  r.address = {.space = Space::shared, .absolute = 0x2400, .symbol = "tile", .offset = 0, .bytes = 16, .known = true};
  r.parties = {
      {.action = "write", .actor = "thread 5 (warp 0 lane 5)", .opcode = "st.shared.v4.f32", .source = "store.cu:31"},
      {.action = "read", .actor = "tensor store issued by thread 0", .opcode = "", .source = "store.cu:40"}};
  r.message = "ordinary stores must be followed by fence.proxy.async before the barrier";
  EXPECT_EQ(to_text(r),
            "PROXY_FENCE  shared 0x02400 (tile + 0)  kernel store_tile  cta (0,0,0)\n"
            "  write  thread 5 (warp 0 lane 5)  st.shared.v4.f32          store.cu:31\n"
            "  read   tensor store issued by thread 0                     store.cu:40\n"
            "  ordinary stores must be followed by fence.proxy.async before the barrier");
}

TEST(Report, LinesOfAMessageAndTheHintAreIndented) {
  Report r;
  r.kind = ReportKind::deadlock;
  r.kernel = "k";
  r.message = "warp 0 waits\nwarp 1 waits";
  r.hint = "arrive";
  EXPECT_EQ(to_text(r), "DEADLOCK  kernel k  cta (0,0,0)\n  warp 0 waits\n  warp 1 waits\n  arrive");
}

TEST(Report, SeveritiesAreThoseOfTheTable) {
  EXPECT_EQ(severity_of(ReportKind::store_collision), Severity::warning);
  EXPECT_EQ(severity_of(ReportKind::nc_modified), Severity::warning);
  EXPECT_EQ(severity_of(ReportKind::div_by_zero), Severity::warning);
  for (const ReportKind kind :
       {ReportKind::tma_all_fill, ReportKind::warp_pc_mix, ReportKind::same_value, ReportKind::leak}) {
    EXPECT_EQ(severity_of(kind), Severity::note) << name(kind);
  }
  for (const ReportKind kind : {ReportKind::out_of_bounds, ReportKind::trap, ReportKind::deadlock,
                                ReportKind::dsmem_after_exit, ReportKind::mbar_tx}) {
    EXPECT_EQ(severity_of(kind), Severity::error) << name(kind);
  }
  EXPECT_EQ(name(ReportKind::race_wr), "RACE_WR");
  EXPECT_EQ(name(ReportKind::assert_), "ASSERT");
  EXPECT_EQ(name(Severity::note), "note");
}

// One report per pair of positions, however often it occurs; another position is a separate report.
TEST(Report, TheSamePositionsAreKeptOnceAndCounted) {
  Reports reports(2);
  EXPECT_TRUE(reports.add(race()));
  Report elsewhere = race();
  elsewhere.step = 99;
  EXPECT_FALSE(reports.add(elsewhere));
  EXPECT_EQ(reports.repeated(), 1);
  elsewhere.parties[1].pc = 10;
  EXPECT_FALSE(reports.full());
  EXPECT_TRUE(reports.add(elsewhere));
  EXPECT_TRUE(reports.full());
  elsewhere.parties[1].pc = 11;
  EXPECT_FALSE(reports.add(elsewhere)) << "there are enough";
  EXPECT_EQ(reports.all().size(), 2u);
}

}  // namespace
}  // namespace kvscope::ptx::report_test
