// A report of the virtual GPU in the words of a lab, and its picture: without registers, mangled names and options of
// other commands; one line a test.
#include "apps/labs/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kvscope::labs::report_text_test {
namespace {

using testing::HasSubstr;
using testing::Not;

KernelRun run_with(ptx::Report report) {
  KernelRun run;
  run.finished = true;
  run.source = "first\n  part[t] = x[t];\nthird\n  sum += part[t + 1];\n";
  run.reports.push_back(std::move(report));
  return run;
}

ptx::Report race() {
  ptx::Report report;
  report.kind = ptx::ReportKind::race_wr;
  report.severity = ptx::Severity::error;
  report.kernel = "sum";
  report.address = {.space = ptx::Space::shared,
                    .absolute = 0x440,
                    .symbol = "_ZZ3sumE4part",
                    .offset = 64,
                    .bytes = 4,
                    .known = true};
  report.parties = {{.action = "write", .actor = "thread 16", .opcode = "", .source = "sum.cu:2"},
                    {.action = "read", .actor = "thread 0", .opcode = "", .source = "copies.h:9  <- sum.cu:4"}};
  report.message = "no order between them";
  return report;
}

TEST(ReportText, ARaceNamesTheLinesOfTheStudentsFileAndTheDeclaredVariable) {
  const KernelRun run = run_with(race());
  EXPECT_EQ(fault_of(run), "RACE line 2 and line 4: no order between them");
  EXPECT_THAT(report_case(run), HasSubstr("shared 0x00440 (part + 64)"));
}

// A headline of several lines breaks the list of tests.
TEST(ReportText, TheHeadlineHasOneLine) {
  ptx::Report report = race();
  report.message = "first sentence\nsecond sentence";
  EXPECT_EQ(fault_of(run_with(report)), "RACE line 2 and line 4: first sentence");
  EXPECT_THAT(report_case(run_with(report)), HasSubstr("second sentence"));
}

TEST(ReportText, OptionsOfOtherCommandsAreNotNamed) {
  ptx::Report report = race();
  report.message =
      "only shfl.sync.bfly.b32 at sum.cu:3 is between them\nbar.warp.sync does; --check collectives_order accepts it";
  EXPECT_THAT(fault_of(run_with(report)), HasSubstr("__syncthreads orders all threads of the CTA"));
  EXPECT_THAT(report_case(run_with(report)), Not(HasSubstr("--check")));
}

TEST(ReportText, BetweenCtasTheHeadlineNamesTheSideThatLacksItsFence) {
  ptx::Report report = race();
  report.message = "nothing orders them";
  report.hint = "the half of cta (0,0,0) is missing: a fence at gpu scope";
  EXPECT_EQ(fault_of(run_with(report)),
            "RACE line 2 and line 4: nothing orders them; the half of cta (0,0,0) is missing");
}

// Each warp repeats the wait and its arrivals.
TEST(ReportText, ADeadlockSaysWhatTheBarrierLacksOnceForAllWarps) {
  ptx::Report report;
  report.kind = ptx::ReportKind::deadlock;
  const std::string wait =
      " lanes ffffffff mbarrier.try_wait.parity.shared::cta.b64 p, [%r160], %r23 at tma.h:36  <- tile.cu:27 (line "
      "339): "
      "mbarrier _ZZ4tileE4full + 0: parity 0, phase 0, pending 127 of 128, tx 0, 8 copies";
  report.message = "warp 0" + wait + "\nwarp 1" + wait;
  report.parties = {{.action = "waits", .actor = "warp 0", .opcode = "", .source = "tile.cu:4"}};
  const KernelRun run = run_with(report);
  EXPECT_EQ(
      fault_of(run),
      "DEADLOCK line 4: threads wait for ever: full waits for 128 arrivals in a phase, and 127 of them are missing");
  const std::string text = report_case(run);
  EXPECT_EQ(text.find("pending 127"), text.rfind("pending 127"));
  EXPECT_THAT(text, Not(HasSubstr("%r160")));
  EXPECT_THAT(text, Not(HasSubstr("line 339")));
}

TEST(ReportText, ADeadlockSaysHowManyBytesTheBarrierLacks) {
  ptx::Report report;
  report.kind = ptx::ReportKind::deadlock;
  report.message =
      "warp 0 lanes ffffffff mbarrier.try_wait.parity.shared::cta.b64 p, [%r160], %r23 at tile.cu:27: mbarrier full + "
      "0: "
      "parity 0, phase 0, pending 0 of 1, tx 16, 1 copies of 32 bytes in total";
  report.parties = {{.action = "waits", .actor = "warp 0", .opcode = "", .source = "tile.cu:4"}};
  EXPECT_EQ(fault_of(run_with(report)),
            "DEADLOCK line 4: threads wait for ever: full waits for 16 more bytes than the copies bring");
}

// A warning of one warp comes first; the error concerns all threads.
TEST(ReportText, AnErrorIsShownBeforeAWarning) {
  ptx::Report warning = race();
  warning.severity = ptx::Severity::warning;
  warning.message = "the warning";
  KernelRun run = run_with(warning);
  EXPECT_THAT(fault_of(run), HasSubstr("the warning"));
  run.reports.push_back(race());
  EXPECT_THAT(fault_of(run), HasSubstr("no order between them"));
}

// PTX of a student may have a name of a megabyte.
TEST(ReportText, ALongNameIsCutOff) {
  ptx::Report report = race();
  report.message = "at _Z" + std::string(1'000'000, 'a');
  EXPECT_LT(fault_of(run_with(report)).size(), 5000U);
  EXPECT_LT(report_case(run_with(report)).size(), 5000U);
}

TEST(ReportPicture, LinksTheTwoAccessesAndQuotesTheirLines) {
  const CasePicture picture = report_picture(run_with(race()));
  ASSERT_EQ(picture.grids.size(), 1U);
  const PictureGrid& grid = picture.grids.front();
  ASSERT_EQ(grid.rows.size(), 3U);
  EXPECT_THAT(grid.title, HasSubstr("4 bytes at part + 64"));
  EXPECT_EQ(grid.rows[0].cells[0].text, "write, line 2");
  EXPECT_EQ(grid.rows[0].cells[0].note, "part[t] = x[t];");
  EXPECT_EQ(grid.rows[2].cells[1].text, "read, line 4");
  EXPECT_EQ(grid.rows[2].cells[1].note, "sum += part[t + 1];");
  ASSERT_EQ(grid.links.size(), 1U);
  EXPECT_EQ(grid.links.front().text, "no order");
  EXPECT_THAT(picture_svg("title", "text", picture), HasSubstr("<line x1="));
}

TEST(ReportPicture, IsEmptyWithoutTwoAccesses) {
  ptx::Report report = race();
  report.parties.resize(1);
  EXPECT_TRUE(report_picture(run_with(report)).empty());
  EXPECT_TRUE(report_picture(KernelRun()).empty());
}

// The file of the outermost place is the student's. Triton's own functions are in .py files too.
TEST(StudentLine, IsTheInnermostOneOfTheStudentsFile) {
  EXPECT_EQ(student_line("sum.cu:4"), 4);
  EXPECT_EQ(student_line("copies.h:9  <- stream.cu:14"), 14);
  EXPECT_EQ(student_line("stream.cu:3  <- stream.cu:14"), 3);
  EXPECT_EQ(student_line("standard.py:287  <- standard.py:314  <- decode.py:24"), 24);
  EXPECT_EQ(student_line("standard.py:287  <- decode.py:9  <- decode.py:24"), 9);
  EXPECT_EQ(student_line(""), -1);
  EXPECT_EQ(student_line("no place"), -1);
}

TEST(SectorLines, AreTheLinesWithTheMostSectors) {
  KernelRun run = run_with(race());
  const auto line = [](std::string source, std::int64_t sectors) {
    ptx::LineCounts counts;
    counts.source = std::move(source);
    counts.counts.sectors = sectors;
    return counts;
  };
  run.lines = {line("sum.cu:2", 5), line("sum.cu:4", 70), line("copies.h:3  <- sum.cu:2", 6), line("sum.cu:1", 0)};
  EXPECT_EQ(
      sector_lines(run),
      "the lines with the most sectors:\nline 4: 70 sectors   sum += part[t + 1];\nline 2: 11 sectors   part[t] = "
      "x[t];");
}

}  // namespace
}  // namespace kvscope::labs::report_text_test
