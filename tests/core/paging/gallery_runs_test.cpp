// Runs the scenarios that come with the program: the engine must give the figures of their descriptions to the last
// digit. A change of the engine that changes a figure must change the description.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "core/paging/paging_engine.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "tests/whole_grid.h"

namespace kvscope::gallery_runs_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kGallery = fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";

Scenario gallery(const std::string& name) {
  return load_scenario(kGallery / (name + ".json"));
}

RunReport run(const Scenario& scenario) {
  trace::Recorder off;
  const std::vector<Request> requests = make_requests(scenario, kGallery);
  PagingEngine engine(scenario, requests, off);
  while (engine.step()) {
  }
  EXPECT_THAT(engine.broken_invariants(), testing::IsEmpty());
  return engine.report();
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

struct Running {
  std::int64_t mean = 0, most = 0;
};
Running running(const RunReport& r) {
  std::int64_t sum = 0, most = 0;
  for (const StepFigures& f : r.curve) {
    sum += f.running;
    most = std::max(most, f.running);
  }
  return {std::lround(static_cast<double>(sum) / static_cast<double>(r.steps)), most};
}

// The same 200 requests on the same 16,384 tokens of memory, three times.
TEST(GalleryRuns, SmallPagesWasteLeastAndRunMost) {
  Scenario s = gallery("page_size_fragmentation");
  const std::string said = s.description;
  const RunReport large = run(s);
  EXPECT_THAT(said, HasSubstr("fragmentation of " + percent(large.internal_fragmentation()) + " on average"));
  EXPECT_THAT(said, HasSubstr(std::to_string(large.peak_used_blocks) + " of the 64 pages"));
  EXPECT_THAT(said, HasSubstr(std::to_string(running(large).mean) + " requests run at once on average, and " +
                              std::to_string(large.steps) + " steps"));
  s.cache.page_size = 16;
  s.cache.blocks = 1024;
  const RunReport small = run(s);
  EXPECT_THAT(said, HasSubstr("fragmentation is then " + percent(small.internal_fragmentation()) + ", " +
                              std::to_string(running(small).mean) + " requests run at once on average (at most " +
                              std::to_string(running(small).most) + ", the batch limit), and " +
                              std::to_string(small.steps) + " steps"));
  EXPECT_EQ(running(small).most, s.scheduler.max_batch);

  const Scenario one_block = gallery("continuous");
  const RunReport continuous = run(one_block);
  EXPECT_THAT(one_block.description,
              HasSubstr("at most " + std::to_string(running(continuous).most) + " sequences run at once, and " +
                        percent(continuous.internal_fragmentation()) + " of the slots"));
  EXPECT_THAT(one_block.description,
              HasSubstr(std::to_string(continuous.steps) + " here, " + std::to_string(large.steps) +
                        " on pages of 256 tokens, " + std::to_string(small.steps) + " on pages of 16"));
}

TEST(GalleryRuns, PreemptionComputesTokensTwice) {
  const RunReport r = run(gallery("preemption"));
  EXPECT_GT(r.preemptions, 0);
  EXPECT_GT(r.recomputed_tokens, 0);
  EXPECT_EQ(r.finished, 6);
  EXPECT_TRUE(std::any_of(r.curve.begin(), r.curve.end(), [](const StepFigures& f) { return f.free_blocks == 0; }));
}

TEST(GalleryRuns, ParallelSamplesCopyTheLastPageTwiceAndFindTwoPagesByContent) {
  const RunReport r = run(gallery("parallel_samples"));
  EXPECT_EQ(r.requests, 4);
  EXPECT_EQ(r.copies, 2);
  EXPECT_EQ(r.forked_tokens, 2 * 21);
  EXPECT_EQ(r.hit_tokens - r.forked_tokens, 16);
  EXPECT_EQ(r.curve[0].used_blocks, 3);
  EXPECT_EQ(r.curve[1].used_blocks, 5);
  EXPECT_EQ(r.curve[2].running, 4);
}

TEST(GalleryRuns, AnHourOfTrafficFindsLessThanWasSaidBefore) {
  Scenario s = gallery("real_traffic_like");
  const std::string said = s.description;
  const RunReport r = run(s);
  EXPECT_THAT(said, HasSubstr("a third could be found, but only " + percent(r.prefix_hit_rate()) + " is"));
  EXPECT_THAT(said, HasSubstr(std::to_string(r.preemptions) + " in the hour"));
  std::int64_t busiest = 0;  // a 48th of the steps, as a column of the printed curve
  for (std::int64_t c = 0; c < 48; ++c) {
    std::int64_t in_column = 0;
    for (std::int64_t i = c * r.steps / 48; i < (c + 1) * r.steps / 48; ++i) {
      in_column += r.curve[static_cast<std::size_t>(i)].preemptions;
    }
    busiest = std::max(busiest, in_column);
  }
  EXPECT_EQ(busiest, 8) << "half of them in one stretch";
  const auto longest = std::ranges::max_element(r.curve, {}, &StepFigures::waiting);
  EXPECT_THAT(said, HasSubstr("longest in the same stretch: " + std::to_string(longest->waiting) +
                              " requests wait in step " + std::to_string(longest - r.curve.begin())));
  EXPECT_EQ(r.steps, 409'635);
  EXPECT_THAT(said, HasSubstr("409,635 steps"));
  if (test::size_for_sanitizers(1, 3) == 1) return;  // the same code twice more takes 16 s
  s.cache.blocks *= 2;
  EXPECT_THAT(said, HasSubstr("with twice the blocks it is " + percent(run(s).prefix_hit_rate())));
  s.cache.blocks *= 2;
  EXPECT_THAT(said, HasSubstr("with four times " + percent(run(s).prefix_hit_rate())));
}

}  // namespace
}  // namespace kvscope::gallery_runs_test
