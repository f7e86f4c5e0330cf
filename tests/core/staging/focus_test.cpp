#include "core/staging/focus.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "core/pipeline/run_scenario.h"
#include "tests/core/pipeline/fixtures.h"

namespace kvscope::focus_test {
namespace {

using testing_support::small_scenario;

RunReport report_of(const Scenario& scenario) {
  trace::Recorder off;
  return run_engine(scenario, scenario.requests.list, off).report;
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(FocusStep, IsTheStepWithMostFilledSlotsAndTheFirstOfEquals) {
  RunReport report;
  report.steps = 4;
  report.curve.resize(4);
  report.curve[0].slots_filled = 3;
  report.curve[1].slots_filled = 9;  // the same as step 2: a comparison with >= would select the later one
  report.curve[2].slots_filled = 9;
  report.curve[3].slots_filled = 1;
  EXPECT_EQ(focus_step(small_scenario(), report), StepIdx{1});
}

TEST(FocusStep, TakesTheScenariosStepUpToTheLastAndRejectsTheNext) {
  Scenario scenario = small_scenario();
  const RunReport report = report_of(scenario);
  scenario.focus.step = report.steps - 1;
  EXPECT_EQ(focus_step(scenario, report), StepIdx{report.steps - 1});
  scenario.focus.step = report.steps;
  EXPECT_EQ(message_of([&] { static_cast<void>(focus_step(scenario, report)); }),
            "scenario 'small' rejected: $.focus.step: " + std::to_string(report.steps) + " is outside [0, " +
                std::to_string(report.steps) + "): the run has " + std::to_string(report.steps) + " steps");
}

TEST(FocusStep, SaysThatNothingRanWhenEveryRequestWasRejected) {
  Scenario scenario = small_scenario();
  scenario.requests.list = {Request{0, 1000, 1, {}}};  // the pool holds 76 tokens
  RunReport report = report_of(scenario);
  report.curve.clear();
  EXPECT_EQ(message_of([&] { static_cast<void>(focus_step(scenario, report)); }),
            "scenario 'small' rejected: $.requests: no request ran, so the run has no step: every request was "
            "rejected or none was given");
}

TEST(StateAt, ReplaysToTheVeryStateThatTheRunPassedThrough) {
  const Scenario scenario = small_scenario();
  trace::Recorder off;
  PagingEngine engine(scenario, scenario.requests.list, off);
  for (StepIdx step{0}; engine.step(); ++step) {
    const FocusState focus = state_at(scenario, scenario.requests.list, step);
    EXPECT_EQ(focus.cache, engine.state()) << step.value;
    ASSERT_EQ(focus.token_ids.size(), focus.cache.batch.size());
    for (std::size_t row = 0; row < focus.token_ids.size(); ++row) {
      EXPECT_EQ(focus.token_ids[row], engine.token_ids(static_cast<std::int64_t>(row)));
      EXPECT_EQ(focus.token_ids[row].size(), focus.cache.cache_lengths[row] + focus.cache.new_tokens[row]);
    }
  }
}

TEST(StateAt, RejectsAStepPastTheEndAndSaysHowManyThereAre) {
  const Scenario scenario = small_scenario();
  const std::int64_t steps = report_of(scenario).steps;
  EXPECT_EQ(
      message_of([&] { static_cast<void>(state_at(scenario, scenario.requests.list, StepIdx{steps})); }),
      "step " + std::to_string(steps) + " is outside [0, " + std::to_string(steps) + "): the run is over by then");
}

TEST(LastStepOf, IsTheLastStepThatComputedATokenOfTheSequenceOnceTheAskedOneIsThere) {
  const Scenario scenario = small_scenario();
  // Request 0 stores 14 + 5 - 1 tokens: 0..17. Its last stored token appears in its last step only.
  const std::optional<StepIdx> last = last_step_of(scenario, scenario.requests.list, SeqIdx{0}, TokIdx{17});
  ASSERT_TRUE(last);
  const FocusState focus = state_at(scenario, scenario.requests.list, *last);
  ASSERT_EQ(focus.cache.batch.at(0), SeqIdx{0});
  EXPECT_EQ(focus.cache.cache_lengths.at(0) + focus.cache.new_tokens.at(0), 18u);
  EXPECT_EQ(last_step_of(scenario, scenario.requests.list, SeqIdx{0}, TokIdx{0}), last);
  // The last generated token is never stored, because no further token is computed from it.
  EXPECT_EQ(last_step_of(scenario, scenario.requests.list, SeqIdx{0}, TokIdx{18}), std::nullopt);
}

}  // namespace
}  // namespace kvscope::focus_test
