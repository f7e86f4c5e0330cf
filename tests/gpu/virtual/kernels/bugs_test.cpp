// B01 .. B35 (see README.md): each mistake is reported, and the same kernel without it is clean.
#include "tests/gpu/virtual/kernels/bugs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "gpu/virtual/check/race_checker.h"
#include "tests/gpu/virtual/kernels/decode_case.h"

namespace kvscope::ptx::test {

void PrintTo(const SeededBug& bug, std::ostream* out) {
  *out << bug.name << ": " << bug.what;
}
void PrintTo(const FixedTwin& twin, std::ostream* out) {
  *out << twin.name;
}

namespace {

bool says(const LaunchResult& result, const Finding& finding) {
  return std::any_of(result.reports.begin(), result.reports.end(), [&](const Report& report) {
    const std::string text = to_text(report);
    return report.kind == finding.kind &&
           std::all_of(finding.words.begin(), finding.words.end(),
                       [&](const auto& word) { return text.find(word) != std::string::npos; });
  });
}

class SeededBugs : public ::testing::TestWithParam<SeededBug> {};

TEST_P(SeededBugs, AreNamed) {
  const SeededBug& bug = GetParam();
  const Outcome outcome = bug.run(kLate);
  for (const Finding& finding : bug.findings)
    EXPECT_TRUE(says(outcome.result, finding))
        << ptx::name(finding.kind) << " with " << testing::PrintToString(finding.words) << "\nis missing among\n"
        << reports_text(outcome.result);
  if (bug.wrong_numbers) {
    EXPECT_FALSE(outcome.right_numbers);
    EXPECT_TRUE(outcome.result.clean()) << reports_text(outcome.result);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SeededBugs, ::testing::ValuesIn(seeded_bugs()),
                         [](const auto& which) { return std::string(which.param.name); });

// Lanes of a warp that execute the next mma together have completed their reads: with collectives_order this is
// ordered.
TEST(B11, IsToleratedWhereCollectivesOrderTheirLanes) {
  const DecodeCase data(512);
  Gpu gpu("decode_bugs.ptx");
  RaceChecker races(RaceOptions{.collectives_order = true});
  const LaunchResult result = gpu.run(data.launch(gpu, "paged_decode_wrong", 11).run, &races);
  EXPECT_TRUE(result.clean()) << reports_text(result);
}

class FixedTwins : public ::testing::TestWithParam<FixedTwin> {};

TEST_P(FixedTwins, AreClean) {
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    const LaunchResult result = GetParam().run(schedule);
    EXPECT_TRUE(result.clean()) << reports_text(result);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, FixedTwins, ::testing::ValuesIn(fixed_twins()),
                         [](const auto& which) { return std::string(which.param.name); });

}  // namespace
}  // namespace kvscope::ptx::test
