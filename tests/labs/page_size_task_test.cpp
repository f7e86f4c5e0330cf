#include "apps/labs/page_size_task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/pipeline/run_scenario.h"
#include "core/scenario/scenario_json.h"

namespace kvscope::labs::page_size_task_test {
namespace {

PageSizeTask task_of(int student) {
  return make_page_size_task(task_seed("student " + std::to_string(student), "14_page_size"));
}

// The steps of the engine without an engine: each takes 20 ms, prefills the requests that have arrived, and adds one
// token to each of the others. The share of empty slots at the end of a step, mean over the steps that hold a block.
double waste_by_hand(const std::vector<Request>& requests, std::int64_t page_size) {
  struct Running {
    std::int64_t stored = 0, prompt = 0, last = 0;
  };
  std::vector<Running> running;
  std::size_t arrived = 0;
  std::int64_t clock = 0, steps = 0;
  double shares = 0;
  while (arrived < requests.size() || !running.empty()) {
    if (running.empty()) clock = std::max(clock, requests[arrived].arrival_us);
    for (; arrived < requests.size() && requests[arrived].arrival_us <= clock; ++arrived) {
      running.push_back({0, requests[arrived].prompt_tokens, stored_tokens(requests[arrived])});
    }
    std::int64_t tokens = 0, slots = 0;
    for (Running& one : running) one.stored = one.stored == 0 ? one.prompt : one.stored + 1;
    std::erase_if(running, [](const Running& one) { return one.stored == one.last; });
    for (const Running& one : running) {
      tokens += one.stored;
      slots += (one.stored / page_size + (one.stored % page_size != 0 ? 1 : 0)) * page_size;
    }
    if (slots > 0) shares += 1 - static_cast<double>(tokens) / static_cast<double>(slots), ++steps;
    clock += 20'000;
  }
  return 100 * shares / static_cast<double>(steps);
}

TEST(PageSizeTask, WasteIsThatOfACountWithoutTheEngine) {
  for (int student = 0; student < 8; ++student) {
    const PageSizeTask task = task_of(student);
    const PageSizeCurves curves = page_size_curves(task);
    for (std::size_t i = 0; i < kPageSizes.size(); ++i) {
      EXPECT_NEAR(curves.waste[i], waste_by_hand(task.requests, kPageSizes[i]), 1e-9) << kPageSizes[i];
    }
  }
}

Request request_of(std::int64_t prompt, std::int64_t generate) {
  Request request;
  request.prompt_tokens = prompt;
  request.generate_tokens = generate;
  return request;
}

// The handout's example: 6 prompt tokens and 4 generated ones on pages of 4 tokens. The longest request, 40 tokens on
// 10 pages, gives rows of 16 + 16 entries.
TEST(PageSizeTask, CountsTheExampleOfTheHandout) {
  PageSizeTask task;
  task.requests = {request_of(6, 4)};
  task.slots = 131072;
  task.max_batch = 64;
  const PageSizeCurves curves = page_size_curves(task);
  EXPECT_DOUBLE_EQ(curves.waste_at_end[0], 25);
  EXPECT_EQ(curves.lookups[0], 7);
  task.requests = {request_of(6, 4), request_of(37, 4)};
  EXPECT_EQ(page_size_curves(task).table_bytes[0], 64 * 32 * 4);
}

// The tolerance of the waste, 0.15 points or 1 % of at most 60, must not decide which page size is the cheapest.
TEST(PageSizeTask, TheCheapestPageSizeIsClear) {
  for (int student = 0; student < 40; ++student) {
    const PageSizeTask task = task_of(student);
    const PageSizeCurves curves = page_size_curves(task);
    PageSizeCurve costs = curves.cost;
    std::ranges::sort(costs);
    EXPECT_GT(task.cost_of_lookups, 0) << student;
    EXPECT_GT(costs[1] - costs[0], 0.6 * task.cost_of_percent) << student;
    EXPECT_GE(curves.cheapest(), 8) << student;
    EXPECT_LE(curves.cheapest(), 64) << student;
  }
}

// Otherwise the page size would change which requests run at once, and the waste with it.
TEST(PageSizeTask, NobodyWaitsAndNothingIsPreempted) {
  for (int student = 0; student < 20; ++student) {
    const PageSizeTask task = task_of(student);
    trace::Recorder off;
    const RunReport report = run_engine(parse_scenario(page_size_scenario(task, 256), "s"), task.requests, off).report;
    EXPECT_EQ(report.preemptions, 0);
    EXPECT_EQ(report.finished, 100);
    for (const StepFigures& step : report.curve) EXPECT_EQ(step.waiting, 0);
  }
}

TEST(PageSizeTask, StudentsHaveOtherTraffic) {
  EXPECT_EQ(task_of(1).traffic, task_of(1).traffic);
  EXPECT_NE(task_of(1).traffic, task_of(2).traffic);
}

}  // namespace
}  // namespace kvscope::labs::page_size_task_test
