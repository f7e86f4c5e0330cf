// Reports left out by kind, kernel and source line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/errors.h"
#include "gpu/virtual/machine/diagnosis/suppressions.h"

namespace kvscope::ptx::suppressions_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Report race(const std::string& source, const std::string& kernel = "_ZN2ns6decodeILi64EEEvPf") {
  Report r;
  r.kind = ReportKind::race_rw;
  r.kernel = kernel;
  r.parties.resize(2);
  r.parties[0].source = source;
  r.parties[1].source = "ring.cuh:7  <- main.cu:1";
  return r;
}

bool suppressed(const std::string& line, const Report& report) {
  Suppressions s;
  s.add(line, "known.txt");
  return s.matches(report);
}

TEST(Suppressions, MatchByKindKernelAndAnySource) {
  const Report r = race("decode.cuh:134  <- main.cu:22");
  for (const char* line :
       {"RACE_RW | ns::decode<64> | decode.cuh:134", "* | * | *", "RACE_RW|decode*|ring.cuh:7", "* | _ZN2ns* | *:134",
        "  RACE_RW | decode | *cuh:1*4  ", "* | void ns::decode<64>(float*) | decode.cuh:134"}) {
    EXPECT_TRUE(suppressed(line, r)) << line;
  }
  for (const char* line : {"RACE_WR | * | *", "* | other | *", "* | * | decode.cuh:13", "* | * | main.cu:22",
                           "* | * | ", "* | decode<6 | *", "# * | * | *"}) {
    EXPECT_FALSE(suppressed(line, r)) << line;
  }
}

// All notes can be left out, and warnings and errors stay.
TEST(Suppressions, MatchBySeverity) {
  Report r = race("a.cu:1");
  for (const Severity severity : {Severity::note, Severity::warning, Severity::error}) {
    r.severity = severity;
    EXPECT_EQ(suppressed("note | * | *", r), severity == Severity::note);
    EXPECT_EQ(suppressed("warning | decode | a.cu:1", r), severity == Severity::warning);
    EXPECT_EQ(suppressed("error | * | b.cu:*", r), false);
  }
}

TEST(Suppressions, AReportWithoutPlacesHasAnEmptySource) {
  Report r;
  r.kind = ReportKind::deadlock;
  r.kernel = "k";
  EXPECT_TRUE(suppressed("DEADLOCK | k | ", r));
  EXPECT_TRUE(suppressed("DEADLOCK | k | *", r));
  EXPECT_FALSE(suppressed("DEADLOCK | k | a.cu:1", r));
}

TEST(Suppressions, CountWhatTheyMatchAndNameWhatTheyDoNot) {
  Suppressions s;
  s.add("# ours\nRACE_RW | * | a.cu:1\n\nRACE_RW | * | b.cu:2\r\n", "known.txt");
  Reports reports(20, &s);
  EXPECT_FALSE(reports.add(race("a.cu:1")));
  EXPECT_FALSE(reports.add(race("a.cu:1")));
  EXPECT_TRUE(reports.add(race("c.cu:3")));
  EXPECT_EQ(s.matched(), 2);
  EXPECT_THAT(s.unmatched(), ElementsAre("known.txt:4"));
  EXPECT_EQ(reports.repeated(), 0);
}

TEST(Suppressions, SuggestedLinesMatchTheirReports) {
  Report deadlock;
  deadlock.kind = ReportKind::deadlock;
  deadlock.kernel = "k";
  const std::vector<Report> reports{race("a.cu:1"), race("a.cu:1"), race("b.cu:2  <- c.cu:3", "plain"), deadlock};
  const std::string text = suggested_suppressions(reports);
  EXPECT_EQ(text,
            "# kind | kernel | source\nRACE_RW | void ns::decode<64>(float*) | a.cu:1\nRACE_RW | plain | b.cu:2\n"
            "DEADLOCK | k | \n");
  Suppressions s;
  s.add(text, "suggested.txt");
  for (const Report& r : reports) EXPECT_TRUE(s.matches(r));
  EXPECT_TRUE(s.unmatched().empty());
}

TEST(Suppressions, EachMalformedLineIsAFault) {
  Suppressions s;
  try {
    s.add("RACE_RW | *\nRACE | * | *\n* | * | * | *\n", "known.txt");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("line 1: has 2 parts"));
    EXPECT_THAT(error.what(), HasSubstr("line 2: 'RACE' is no kind of report"));
    EXPECT_THAT(error.what(), HasSubstr("line 3: has 4 parts"));
  }
}

}  // namespace
}  // namespace kvscope::ptx::suppressions_test
