#include "viz/playback/run_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <variant>

#include "core/pipeline/run_scenario.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "tests/viz/playback/memory_source.h"
#include "viz/playback/run.h"

namespace kvscope::viz::run_numbers_test {
namespace {

// Counted from the recorded events, without the timeline.
TEST(RunNumbers, AreThoseOfTheEvents) {
  for (const char* name : {"preemption", "prefix_sharing", "parallel_samples", "real_traffic_slice"}) {
    SCOPED_TRACE(name);
    const std::filesystem::path folder = std::filesystem::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";
    const Scenario scenario = load_scenario(folder / (std::string(name) + ".json"));
    trace::MemoryRecorder recorder;
    static_cast<void>(run_engine(scenario, make_requests(scenario, folder), recorder));
    RunNumbers expected;
    double used = 0, empty = 0, decode = 0, hits = 0, looked_up = 0;
    for (const trace::Event& event : recorder.events()) {
      expected.preemptions += std::holds_alternative<trace::RequestPreempted>(event);
      expected.evictions += std::holds_alternative<trace::BlockEvicted>(event);
      expected.rejected += std::holds_alternative<trace::RequestRefused>(event);
      expected.copies += std::holds_alternative<trace::BlockCopied>(event);
      const auto* ended = std::get_if<trace::StepEnded>(&event);
      if (ended == nullptr) continue;
      const double share = static_cast<double>(ended->used_blocks) / static_cast<double>(scenario.cache.blocks);
      ++expected.steps;
      expected.time_us = ended->time_us;
      used += share;
      expected.most_utilization = std::max(expected.most_utilization, share);
      decode += static_cast<double>(ended->decode_tokens);
      hits += static_cast<double>(ended->hit_tokens);
      looked_up += static_cast<double>(ended->query_tokens);
      const std::int64_t slots = ended->used_blocks * scenario.cache.page_size;
      if (slots > 0) empty += static_cast<double>(slots - ended->slots_filled) / static_cast<double>(slots);
    }
    if (looked_up > 0) expected.hit_rate = hits / looked_up;
    const auto run = Run::open(
        from_memory(recorder.events(), {{"scenario", json::dump(to_json(scenario))}}, recorder.detail()), name);
    const RunNumbers numbers = run_numbers(run->timeline());
    EXPECT_EQ(numbers.steps, expected.steps);
    EXPECT_EQ(numbers.time_us, expected.time_us);
    EXPECT_EQ(numbers.preemptions, expected.preemptions);
    EXPECT_EQ(numbers.evictions, expected.evictions);
    EXPECT_EQ(numbers.rejected, expected.rejected);
    EXPECT_EQ(numbers.copies, expected.copies);
    EXPECT_NEAR(numbers.mean_utilization, used / static_cast<double>(expected.steps), 1e-6);
    EXPECT_NEAR(numbers.most_utilization, expected.most_utilization, 1e-6);
    EXPECT_NEAR(numbers.mean_fragmentation, empty / static_cast<double>(expected.steps), 1e-6);
    EXPECT_NEAR(numbers.hit_rate, expected.hit_rate, 1e-6);
    EXPECT_NEAR(numbers.tokens_per_second, decode * 1e6 / static_cast<double>(expected.time_us), 1e-3);
  }
}

TEST(RunNumbers, OfARunWithoutStepsAreZero) {
  EXPECT_EQ(run_numbers({}), RunNumbers{});
}

}  // namespace
}  // namespace kvscope::viz::run_numbers_test
