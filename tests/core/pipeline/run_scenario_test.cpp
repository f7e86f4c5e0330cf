#include "core/pipeline/run_scenario.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "core/pipeline/run_report_text.h"
#include "tests/core/pipeline/fixtures.h"

namespace kvscope::run_scenario_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::continuous_scenario;
using testing_support::mla_scenario;
using testing_support::quantized_scenario;
using testing_support::small_scenario;

RunOutcome run(const Scenario& scenario, const GoldenOptions& golden = {}) {
  trace::Recorder off;
  return run_scenario(scenario, scenario.requests.list, off, {}, golden);
}

TEST(RunScenario, BothSecondPathsAgreeForEveryKindOfCacheAndMask) {
  for (Scenario scenario : {small_scenario(), quantized_scenario(), mla_scenario(), continuous_scenario()}) {
    for (const MaskKind mask : {MaskKind::none, MaskKind::causal, MaskKind::sliding_window, MaskKind::chunked}) {
      scenario.attention.mask = mask;
      scenario.attention.window = 3;
      scenario.attention.soft_cap = 5.0;
      scenario.attention.alibi = true;
      scenario.attention.sinks = true;
      const RunOutcome outcome = run(scenario);
      ASSERT_TRUE(outcome.golden) << outcome.golden_skipped;
      EXPECT_TRUE(outcome.golden->second_path.passed()) << outcome.golden->second_path.worst_ratio;
      EXPECT_TRUE(outcome.golden->kernel_flow.passed()) << outcome.golden->kernel_flow.worst_ratio;
      EXPECT_GT(outcome.golden->kernel_flow.worst_ratio, 0) << "two paths in different precision cannot be equal";
      EXPECT_TRUE(passed(outcome));
    }
  }
}

// A check that cannot fail is none: an agreement past its bound must fail the run.
TEST(RunScenario, DoesNotPassWhenAPathDisagreesOrAnInvariantIsBroken) {
  RunOutcome outcome = run(small_scenario());
  outcome.golden->kernel_flow.worst_ratio = 1.01;
  EXPECT_FALSE(passed(outcome));
  EXPECT_THAT(to_text(small_scenario(), outcome),
              HasSubstr("tiled flow in f32        DIFFERS   largest error 1.01x the rounding bound"));
  outcome = run(small_scenario());
  outcome.engine.broken_invariants = {"after step 3: block 2 is owned twice"};
  EXPECT_FALSE(passed(outcome));
  EXPECT_THAT(to_text(small_scenario(), outcome),
              HasSubstr("invariants of the pool: BROKEN\n  after step 3: block 2 is owned twice\n"));
}

TEST(RunScenario, LeavesAGoldenOutThatIsTooLargeAndSaysWhatToDo) {
  GoldenOptions options;
  options.max_layer_bytes = layer_bytes(small_scenario()) - 1;
  RunOutcome outcome = run(small_scenario(), options);
  EXPECT_FALSE(outcome.golden);
  EXPECT_EQ(outcome.golden_skipped,
            "one layer of the pool takes 0.0 GiB, and values are generated for at most 0.0 GiB: lower $.cache.blocks");
  EXPECT_TRUE(passed(outcome)) << "nothing is wrong, something is left out";
  EXPECT_THAT(to_text(small_scenario(), outcome), HasSubstr("golden attention: skipped: one layer of the pool"));

  options = {};
  options.max_multiply_adds = 100;
  outcome = run(small_scenario(), options);
  EXPECT_THAT(outcome.golden_skipped,
              testing::MatchesRegex("attention at step [0-9]+ takes [0-9e+.]+ multiply-adds, more than "
                                    "1e\\+02: choose an earlier \\$\\.focus\\.step"));
  EXPECT_THROW(static_cast<void>(run_golden(
                   small_scenario(), state_at(small_scenario(), small_scenario().requests.list, StepIdx{3}), options)),
               GeometryError);
}

TEST(RunScenario, OfNoRequestsHasNoGolden) {
  Scenario scenario = small_scenario();
  scenario.requests.list.clear();
  const RunOutcome outcome = run(scenario);
  EXPECT_EQ(outcome.engine.report.steps, 0);
  EXPECT_FALSE(outcome.golden);
  EXPECT_EQ(outcome.golden_skipped, "no step was run: there is no cache to compute attention over");
  EXPECT_TRUE(passed(outcome));
}

TEST(RunEngine, ProgressCountsUpToAllRequestsAndMayCancel) {
  const Scenario scenario = small_scenario();
  std::vector<std::int64_t> done;
  EngineOptions options;
  options.progress = [&](std::int64_t finished, std::int64_t all) {
    EXPECT_EQ(all, 3);
    done.push_back(finished);
    return true;
  };
  trace::Recorder off;
  static_cast<void>(run_engine(scenario, scenario.requests.list, off, options));
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(done.back(), 3);
  options.progress = [](std::int64_t, std::int64_t) { return false; };
  EXPECT_THROW(static_cast<void>(run_engine(scenario, scenario.requests.list, off, options)), Cancelled);
}

TEST(RunScenario, JsonHasTheTotalsTheCurveAndTheVerdicts) {
  const RunOutcome outcome = run(quantized_scenario());
  const json::Value value = to_json(quantized_scenario(), outcome);
  EXPECT_EQ(*value.find("passed")->as_bool(), true);
  EXPECT_EQ(*value.find("run")->find("steps")->as_i64(), outcome.engine.report.steps);
  EXPECT_EQ(*value.find("golden")->find("tiled_double")->find("passed")->as_bool(), true);
  EXPECT_GT(value.find("golden")->find("quantization_error")->number(), 0);
  EXPECT_EQ(json::parse(json::dump(value), "dump"), value);
}

}  // namespace
}  // namespace kvscope::run_scenario_test
