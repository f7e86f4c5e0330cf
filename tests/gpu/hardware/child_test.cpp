#include "gpu/hardware/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/hardware/check_report.h"
#include "gpu/hardware/probe.h"

namespace kvscope::gpu::child_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Heard {
  std::vector<std::string> lines;
  ChildEnd end;
};

Heard shell(const std::string& script, double most_silence = 20) {
  Heard heard;
  heard.end = run_child({"/bin/sh", "-c", script}, most_silence,
                        [&](std::string_view line) { heard.lines.emplace_back(line); });
  return heard;
}

TEST(RunChild, WholeLinesAreHeardInOrderAndAHalfOneIsNot) {
  const Heard heard = shell("echo one; echo; echo three; printf half");
  EXPECT_THAT(heard.lines, ElementsAre("one", "", "three"));
  EXPECT_THAT(heard.end.words(), IsEmpty());
}

// More output than a pipe holds: the child must not block on one stream while the other is read.
TEST(RunChild, MuchOnBothStreamsArrivesAndTheEndOfTheErrorsIsKept) {
  const Heard heard = shell(
      "i=0; while [ $i -lt 5000 ]; do echo out$i; echo a long line of complaint $i >&2; "
      "i=$((i+1)); done; exit 3");
  ASSERT_EQ(heard.lines.size(), 5000U);
  EXPECT_EQ(heard.lines.back(), "out4999");
  EXPECT_EQ(heard.end.errors.size(), 4000U);
  EXPECT_THAT(heard.end.errors, HasSubstr("complaint 4999"));
  EXPECT_EQ(heard.end.words(), "exit code 3");
}

TEST(RunChild, ASignalIsNamed) {
  EXPECT_EQ(shell("kill -ABRT $$").end.words(), "killed by signal 6 (Aborted)");
}

TEST(RunChild, SilenceEndsItAndWhatItSaidBeforeCounts) {
  const Heard heard = shell("echo one; exec sleep 60", 0.5);
  EXPECT_THAT(heard.lines, ElementsAre("one"));
  EXPECT_EQ(heard.end.words(), "silent for 0.5 s, killed");
}

// The limit applies to the time between two lines, not to the whole run: a kernel with many cases takes long.
TEST(RunChild, OneWithRegularOutputMayTakeLongerThanTheLimit) {
  const Heard heard = shell("for i in 1 2 3 4 5 6 7 8; do sleep 0.5; echo $i; done", 2.5);
  EXPECT_EQ(heard.lines.size(), 8U);
  EXPECT_THAT(heard.end.words(), IsEmpty());
}

// Output on standard error does not count: a driver may print errors repeatedly while a kernel hangs.
TEST(RunChild, ErrorsDoNotKeepItAlive) {
  EXPECT_EQ(shell("while :; do echo still here >&2; sleep 0.1; done", 0.7).end.words(), "silent for 0.7 s, killed");
}

TEST(RunChild, AProgramThatIsNotThereIsAnExitCode) {
  const ChildEnd end = run_child({"/no/such/program"}, 20, [](std::string_view) {});
  EXPECT_EQ(end.words(), "exit code 127");
}

// --- verdicts of a report --------------------------------------------------------------------------------------------

ProbeRecord probe_of(const std::vector<std::string>& verdicts) {
  ProbeRecord probe{.id = "H1", .question = "?", .experiment = "!", .parts = {}};
  for (const std::string& verdict : verdicts)
    probe.parts.push_back({.name = "part", .measured = "m", .verdict = verdict, .expected = "e", .details = {}});
  return probe;
}

CheckReport report_of(const std::vector<std::string>& verdicts) {
  CheckReport report;
  report.device.name = "NVIDIA H200 (141 GB)";
  report.date = "2026-03-01";
  report.probes.push_back(probe_of(verdicts));
  return report;
}

TEST(CheckReport, AProbeIsWhatItsWeightiestPartIs) {
  EXPECT_EQ(probe_of({"as expected", "not applicable"}).verdict(), "as expected");
  EXPECT_EQ(probe_of({"as expected", "settled"}).verdict(), "settled");
  EXPECT_EQ(probe_of({"settled", "differs", "as expected"}).verdict(), "differs");
  EXPECT_EQ(probe_of({"differs", "failed"}).verdict(), "failed");
  EXPECT_EQ(probe_of({}).verdict(), "failed");
}

TEST(CheckReport, OnlyWhatDiffersOrHasNoAnswerFails) {
  EXPECT_TRUE(report_of({"as expected", "settled", "not applicable"}).passed());
  EXPECT_FALSE(report_of({"as expected", "differs"}).passed());
  EXPECT_FALSE(report_of({"failed"}).passed());
}

TEST(CheckReport, NothingAskedIsNothingPassed) {
  EXPECT_FALSE(CheckReport{}.passed());
  EXPECT_FALSE(report_of({"not applicable"}).passed());
}

TEST(CheckReport, AFailedCaseAndAMissedTargetFail) {
  CheckReport report = report_of({"as expected"});
  report.cases.push_back({.kernel = "k", .name = "n", .what = "w", .passed = true, .seconds = 1, .faults = {}});
  EXPECT_TRUE(report.passed());
  report.bench_passed = false;
  EXPECT_FALSE(report.passed());
  report.bench_passed = true;
  report.cases.push_back(
      {.kernel = "k", .name = "bad", .what = "w", .passed = false, .seconds = 1, .faults = {"one\ntwo"}});
  EXPECT_FALSE(report.passed());
  EXPECT_THAT(summary(report), HasSubstr("FAILED  k bad: one\n"));
}

TEST(CheckReport, FilesAreNamedAfterGpuAndDay) {
  EXPECT_EQ(report_name(report_of({"settled"})), "report-nvidia-h200-141-gb-2026-03-01");
}

TEST(CheckReport, ABarInAnAnswerDoesNotBreakThePagesTable) {
  CheckReport report = report_of({"settled"});
  report.probes[0].parts[0].measured = "a|b\nc";
  EXPECT_THAT(markdown_report(report), HasSubstr("| a\\|b c |"));
}

TEST(Answer, IsJudgedByWhatWasExpected) {
  EXPECT_EQ(answer("1", "1").verdict, ProbeVerdict::as_expected);
  EXPECT_EQ(answer("1", "2").verdict, ProbeVerdict::differs);
  EXPECT_EQ(answer("1", std::nullopt).verdict, ProbeVerdict::settled);
}

}  // namespace
}  // namespace kvscope::gpu::child_test
