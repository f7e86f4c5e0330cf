// Conditions that must not change a kernel's results: monitors, the layout of registers, the host's instruction set,
// repeated runs.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/bugs.h"
#include "tests/gpu/virtual/kernels/decode_case.h"

namespace kvscope::ptx::test::sameness_test {
namespace {

struct Done {
  std::uint64_t fnv = 0;
  std::uint64_t steps = 0;
  std::string reports;
  friend bool operator==(const Done&, const Done&) = default;
};

Done decode(const Schedule& schedule, const ProgramOptions& options, bool checked) {
  const DecodeCase data(277);
  Gpu gpu("decode.ptx", schedule, options);
  const DecodeCase::Launch launch = data.launch(gpu, "paged_decode");
  const LaunchResult result = checked ? gpu.run_checked(launch.run) : gpu.run(launch.run, nullptr);
  return {fnv_of(data.output(gpu, launch)), result.steps, reports_text(result)};
}

TEST(DecodeIsTheSame, WithAndWithoutCheckers) {
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    EXPECT_EQ(decode(schedule, {}, true), decode(schedule, {}, false));
  }
}

TEST(DecodeIsTheSame, WithARowForEveryRegister) {
  ProgramOptions options;
  options.registers_by_liveness = false;
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    EXPECT_EQ(decode(schedule, options, false), decode(schedule, {}, false));
  }
}

TEST(DecodeIsTheSame, OnEveryInstructionSetOfTheHost) {
  for (const Simd simd : {Simd::baseline, Simd::avx2, Simd::avx512}) {
    if (simd > best_simd()) continue;
    ProgramOptions options;
    options.simd = simd;
    EXPECT_EQ(decode(kLate, options, false), decode(kLate, {}, false)) << static_cast<int>(simd);
  }
}

// Reports contain threads, places and steps: all of them must be equal.
TEST(EverySeededBugIsTheSame, RunTwice) {
  for (const SeededBug& bug : kvscope::test::cases_for_sanitizers("seeded bugs", seeded_bugs(), 5))
    for (const Schedule& schedule : {kSchedules[0], kSchedules[2]}) {
      SCOPED_TRACE(std::string(bug.name) + ' ' + schedule.name);
      const LaunchResult first = bug.run(schedule).result, second = bug.run(schedule).result;
      EXPECT_EQ(first.steps, second.steps);
      EXPECT_EQ(reports_text(first), reports_text(second));
      EXPECT_EQ(first.repeated_reports, second.repeated_reports);
    }
}

// The steps, too: a launch that falls back on one thread repeats everything.
TEST(EverySeededBugIsTheSame, OnAnyNumberOfThreads) {
  for (const SeededBug& bug : kvscope::test::cases_for_sanitizers("seeded bugs", seeded_bugs(), 3)) {
    const LaunchResult one = bug.run(kLate).result;
    for (const std::int64_t jobs : {2, 3, 8}) {
      SCOPED_TRACE(std::string(bug.name) + ' ' + std::to_string(jobs));
      const LaunchResult several = bug.run({"threads", Policy::late, 0, jobs}).result;
      EXPECT_EQ(one.steps, several.steps);
      EXPECT_EQ(reports_text(one), reports_text(several));
      EXPECT_EQ(one.repeated_reports, several.repeated_reports);
      EXPECT_EQ(one.printed, several.printed);
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::sameness_test
