// Kernels that pass data between CTAs in global memory, with the fence that orders it and without. run_clean tests that
// they are clean (K04, K12, K13, K22); this file tests the reports when the fence is removed from the text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::global_race_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The text without every `what` after the kernel's name.
std::string without(std::string text, std::string_view kernel, std::string_view what) {
  const std::size_t from = text.find("// .globl\t" + std::string(kernel));
  EXPECT_NE(from, std::string::npos) << kernel;
  int found = 0;
  for (std::size_t at = text.find(what, from); at != std::string::npos; at = text.find(what, at)) {
    text.erase(at, what.size());
    ++found;
  }
  EXPECT_GT(found, 0) << what;
  return text;
}

LaunchConfig four_ctas(std::string kernel) {
  LaunchConfig config;
  config.kernel = std::move(kernel);
  config.grid = {4, 1, 1};
  config.block = {64, 1, 1};
  return config;
}

std::string reports_of(const std::string& text, const LaunchConfig& like, const std::vector<std::size_t>& sizes,
                       std::uint64_t last, const Schedule& schedule) {
  Device device(ProgramOptions{.target = 90});
  const LoadedModule& module = device.load(parse_module(text, "changed.ptx"));
  std::vector<ParamValue> values;
  for (const std::size_t bytes : sizes) {
    values.emplace_back(
        device.memory().allocate(static_cast<std::int64_t>(bytes), "array" + std::to_string(values.size())));
  }
  values.emplace_back(last);
  LaunchConfig config = like;
  config.params = pack_params(module, config.kernel, values);
  config.options.policy = schedule.policy;
  config.options.jobs = schedule.jobs;
  config.options.seed = schedule.seed;
  Checks checks({.global_race = true});
  return reports_text(device.launch(module, config, checks.monitor()));
}

TEST(GlobalRace, ALastBlocksSumNeedsTheFenceBeforeItsCount) {
  const std::string kept = kept_ptx("reduce.ptx");
  const LaunchConfig config = four_ctas("reduce");
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    const auto run = [&](const std::string& text) {
      return reports_of(text, config, {4, 4, 16, 1000}, 250, schedule);  // total, last, parts, in, n
    };
    EXPECT_THAT(run(kept), Not(HasSubstr("RACE")));
    const std::string said = run(without(kept, "reduce", "membar.gl;"));
    EXPECT_THAT(said, HasSubstr("RACE read-after-write  global"));
    EXPECT_THAT(said, HasSubstr("(array2 + "));
    EXPECT_THAT(said, HasSubstr("ld.volatile.global"));
  }
}

// `text` with `what` replaced in the lines after the kernel's name.
std::string replaced(std::string text, std::string_view kernel, std::string_view what, std::string_view by) {
  const std::size_t from = text.find("// .globl\t" + std::string(kernel));
  EXPECT_NE(from, std::string::npos) << kernel;
  int found = 0;
  for (std::size_t at = text.find(what, from); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
    ++found;
  }
  EXPECT_GT(found, 0) << what;
  return text;
}

// The count's atomic operation is relaxed: a plain read of the parts needs a fence after it. Volatile reads do not race.
TEST(GlobalRace, ALastBlocksPlainReadsNeedAFenceAfterTheCount) {
  const std::string kept = kept_ptx("reduce.ptx");
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    const auto run = [&](const char* read) {
      return reports_of(replaced(kept, "reduce", "ld.volatile.global.u32", read), four_ctas("reduce"), {4, 4, 16, 1000},
                        250, schedule);
    };
    const std::string said = run("ld.global.u32");
    EXPECT_THAT(said, HasSubstr("RACE read-after-write  global"));
    EXPECT_THAT(said, HasSubstr("(array2 + "));
    EXPECT_THAT(run("membar.gl;\n\tld.global.u32"), Not(HasSubstr("RACE")));
  }
}

TEST(GlobalRace, AGridBarrierNeedsItsFences) {
  const std::string kept = kept_ptx("sync.ptx");
  LaunchConfig config = four_ctas("grid_barrier");
  config.options.cooperative = true;
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    const auto run = [&](const std::string& text) { return reports_of(text, config, {48, 4}, 3, schedule); };
    EXPECT_THAT(run(kept), Not(HasSubstr("RACE")));
    EXPECT_THAT(run(without(kept, "grid_barrier", "membar.gl;")), HasSubstr("RACE read-after-write  global"));
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::global_race_test
