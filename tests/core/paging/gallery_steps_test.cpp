// The statements about single steps in the descriptions of the gallery: "step 3", "blocks 22 and 20", "sequence 5". A
// reader who opens these steps in the viewer must find what the description says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "core/paging/paging_engine.h"
#include "core/scenario/notes.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"

namespace kvscope::gallery_steps_test {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kGallery = fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";

class Steps {
 public:
  explicit Steps(const std::string& name) : Steps(load_scenario(kGallery / (name + ".json"))) {}
  explicit Steps(const Scenario& s) : scenario(s) {
    const std::vector<Request> requests = make_requests(scenario, kGallery);
    trace::MemoryRecorder recorder;
    PagingEngine engine(scenario, requests, recorder);
    while (engine.step()) {
    }
    report = engine.report();
    for (const trace::Event& event : recorder.events()) {
      if (std::holds_alternative<trace::StepBegan>(event)) events_.emplace_back();
      events_.back().push_back(event);
    }
  }

  // The events of one kind in one step.
  template <class E>
  [[nodiscard]] std::vector<E> of(std::size_t step) const {
    std::vector<E> found;
    for (const trace::Event& event : events_.at(step)) {
      if (const E* e = std::get_if<E>(&event)) found.push_back(*e);
    }
    return found;
  }
  // The steps in which one kind happened.
  template <class E>
  [[nodiscard]] std::vector<std::size_t> steps_with() const {
    std::vector<std::size_t> found;
    for (std::size_t step = 0; step < events_.size(); ++step) {
      if (!of<E>(step).empty()) found.push_back(step);
    }
    return found;
  }
  [[nodiscard]] const StepFigures& figures(std::size_t step) const { return report.curve.at(step); }
  // The value of the Timeline's curve at a step: hits as a share of all look-ups so far. [%]
  [[nodiscard]] long hit_rate(std::size_t step) const {
    double hit = 0, query = 0;
    for (std::size_t i = 0; i <= step; ++i) {
      hit += static_cast<double>(figures(i).hit_tokens);
      query += static_cast<double>(figures(i).query_tokens);
    }
    return std::lround(100 * hit / query);
  }
  [[nodiscard]] long last_hit_rate() const { return hit_rate(report.curve.size() - 1); }
  void says(const std::string& sentence) const { EXPECT_THAT(plain_notes(scenario.description), HasSubstr(sentence)); }

  Scenario scenario;
  RunReport report;

 private:
  std::vector<std::vector<trace::Event>> events_;
};

template <class E, class Member>
std::vector<std::int64_t> numbers(const std::vector<E>& events, Member E::*member) {
  std::vector<std::int64_t> out;
  for (const E& e : events) out.push_back(trace::to_i64(e.*member));
  return out;
}

std::string percent(long share) {
  return std::to_string(share) + " %";
}

TEST(GallerySteps, FirstLightSharesInStepsThreeAndSix) {
  const Steps run("first_light");
  EXPECT_EQ(run.figures(0).prefill_tokens, run.scenario.scheduler.max_step_tokens);
  EXPECT_EQ(run.figures(0).prefill_tokens + run.figures(1).prefill_tokens, 90);
  const auto third = run.of<trace::BlockShared>(3), sixth = run.of<trace::BlockShared>(6);
  EXPECT_THAT(numbers(third, &trace::BlockShared::block), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(numbers(third, &trace::BlockShared::seq), ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
  EXPECT_EQ(run.figures(6).running, 5);
  EXPECT_THAT(numbers(sixth, &trace::BlockShared::block), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(numbers(sixth, &trace::BlockShared::ref_count), ElementsAre(5, 5, 5, 5, 2));
  EXPECT_THAT(numbers(sixth, &trace::BlockShared::seq), Each(4));
  EXPECT_EQ(run.scenario.requests.list[0].content, run.scenario.requests.list[4].content);

  const auto released = run.of<trace::BlockReleased>(7);
  EXPECT_THAT(numbers(released, &trace::BlockReleased::seq), Each(2));
  EXPECT_THAT(numbers(released, &trace::BlockReleased::block), ElementsAre(8, 7, 3, 2, 1, 0));
  EXPECT_THAT(numbers(released, &trace::BlockReleased::cached), ElementsAre(0, 1, 0, 0, 0, 0));
  EXPECT_THAT(numbers(run.of<trace::BlockReleased>(24), &trace::BlockReleased::block), ElementsAre(13, 9, 3, 2, 1, 0));
  EXPECT_EQ(run.report.steps, 25);

  run.says("hit rate ends at " + percent(run.hit_rate(24)));
  Scenario larger = run.scenario;
  larger.cache.page_size = 32;
  run.says("The hit rate falls to " + percent(Steps(larger).last_hit_rate()) + ", then to 0");
  larger.cache.page_size = 128;
  EXPECT_EQ(Steps(larger).report.hit_tokens, 0);
}

TEST(GallerySteps, PrefixSharingFindsLosesAndComputesAgain) {
  const Steps run("prefix_sharing");
  run.says("climbs to " + percent(run.hit_rate(3)) + " by step 3");
  run.says("to " + percent(run.hit_rate(12)) + " in step 12");
  for (std::size_t step = 3; step < 12; ++step) EXPECT_GT(run.hit_rate(step), run.hit_rate(12)) << step;
  run.says("The curve ends at " + percent(run.last_hit_rate()));

  const auto evicted = [&](std::size_t step) {
    return numbers(run.of<trace::BlockEvicted>(step), &trace::BlockEvicted::block);
  };
  EXPECT_THAT(numbers(run.of<trace::BlockAllocated>(0), &trace::BlockAllocated::block), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(run.steps_with<trace::BlockEvicted>().front(), 10u);
  EXPECT_THAT(evicted(10), ElementsAre(4, 6));
  EXPECT_THAT(evicted(12), ElementsAre(5, 11, 3, 2));  // 5 and 11 held questions; the prefix was in blocks 0 to 3
  EXPECT_THAT(evicted(13), ElementsAre(1, 0, 12));

  const auto found = [&](std::size_t step, std::int64_t seq, std::int64_t tokens) {
    const auto admitted = run.of<trace::RequestAdmitted>(step);
    EXPECT_THAT(numbers(admitted, &trace::RequestAdmitted::seq), ElementsAre(seq));
    EXPECT_THAT(numbers(admitted, &trace::RequestAdmitted::hit_tokens), ElementsAre(tokens));
    return run.scenario.requests.list[static_cast<std::size_t>(seq)].content[0].content;
  };
  EXPECT_EQ(found(17, 10, 0), 1u);
  EXPECT_EQ(found(18, 11, 32), 1u);
  EXPECT_EQ(found(19, 12, 8), 2u);

  Scenario roomy = run.scenario;
  roomy.cache.blocks = 36;
  const Steps all(roomy);
  EXPECT_EQ(all.report.evictions, 0);
  run.says("the curve ends at " + percent(all.last_hit_rate()));
}

TEST(GallerySteps, ParallelSamplesCopyInStepOneAndAPromptOfWholePagesCopiesNothing) {
  const Steps run("parallel_samples");
  const auto copied = run.of<trace::BlockCopied>(1);
  EXPECT_THAT(numbers(copied, &trace::BlockCopied::from), ElementsAre(2, 2));
  EXPECT_THAT(numbers(copied, &trace::BlockCopied::seq), ElementsAre(0, 1));
  EXPECT_THAT(numbers(run.of<trace::TokensWritten>(1), &trace::TokensWritten::block), ElementsAre(3, 4, 2));
  EXPECT_THAT(numbers(run.of<trace::RequestAdmitted>(2), &trace::RequestAdmitted::seq), ElementsAre(3));
  Scenario whole = run.scenario;
  whole.requests.list[0].prompt_tokens = whole.requests.list[0].content[0].length = 24;
  EXPECT_EQ(Steps(whole).report.copies, 0);
}

TEST(GallerySteps, PreemptionThrowsTheYoungestOut) {
  const Steps run("preemption");
  EXPECT_EQ(run.figures(1).running, 6);
  run.says("all six requests run and use " + std::to_string(run.figures(1).used_blocks) + " blocks");
  EXPECT_THAT(run.steps_with<trace::RequestPreempted>(), ElementsAre(3, 6, 10, 19, 26));
  std::vector<std::int64_t> who;
  for (const std::size_t step : run.steps_with<trace::RequestPreempted>()) {
    who.push_back(run.of<trace::RequestPreempted>(step).at(0).seq.value);
  }
  EXPECT_THAT(who, ElementsAre(5, 4, 3, 2, 5));
  EXPECT_THAT(numbers(run.of<trace::BlockReleased>(3), &trace::BlockReleased::block), ElementsAre(22, 20, 19));
  EXPECT_THAT(numbers(run.of<trace::BlockAllocated>(3), &trace::BlockAllocated::block), ElementsAre(23, 22, 20));
  EXPECT_THAT(numbers(run.of<trace::BlockAllocated>(3), &trace::BlockAllocated::seq), ElementsAre(0, 1, 4));
  EXPECT_EQ(run.figures(2).free_blocks, 1);
  EXPECT_EQ(run.figures(19).running, 2);
  EXPECT_THAT(numbers(run.of<trace::RequestFinished>(21), &trace::RequestFinished::seq), ElementsAre(0, 1));
  EXPECT_THAT(numbers(run.of<trace::RequestAdmitted>(22), &trace::RequestAdmitted::seq), ElementsAre(2, 3, 4));
  run.says("Of " + std::to_string(run.report.computed_tokens) + " computed tokens, " +
           std::to_string(run.report.recomputed_tokens) + " are computed twice");
  Scenario fewer = run.scenario;
  fewer.scheduler.max_batch = 3;
  const Steps three(fewer);
  fewer.scheduler.max_batch = 2;
  const Steps two(fewer);
  EXPECT_EQ(three.report.preemptions, 1);
  EXPECT_EQ(two.report.preemptions, 0);
  run.says(std::to_string(three.report.steps) + " and " + std::to_string(two.report.steps) + " steps instead of " +
           std::to_string(run.report.steps));
}

TEST(GallerySteps, LargePagesAndReservedBlocksFillThePoolWithinSevenSteps) {
  const Steps paged("page_size_fragmentation"), continuous("continuous");
  EXPECT_EQ(paged.figures(5).waiting, 0);
  EXPECT_GT(paged.figures(6).waiting, 0);
  EXPECT_EQ(paged.figures(6).running, 63);
  paged.says("Step 6: " + std::to_string(paged.figures(6).used_blocks) + " of the 64 pages");

  EXPECT_EQ(continuous.figures(3).waiting, 0);
  EXPECT_EQ(continuous.figures(4).used_blocks, 32);
  EXPECT_EQ(continuous.figures(4).slots_filled, 2436);
  continuous.says("Step 4: all 32 blocks are reserved, 2,436 of their 16,384 slots hold a token");
  continuous.says(std::to_string(continuous.figures(31).waiting) + " requests wait by step 31");
  Scenario half = continuous.scenario;
  half.cache.max_tokens = 256;
  half.cache.blocks = 64;
  const Steps shorter(half);
  EXPECT_EQ(shorter.report.peak_used_blocks, 64);
  EXPECT_EQ(shorter.report.refused, 0);
  continuous.says("Twice as many sequences run at once, and the run takes " + std::to_string(shorter.report.steps) +
                  " steps");
}

// Pages that are completely before the window of the query at `token`: stored, but no longer read.
std::int64_t pages_before_window(const Scenario& s, std::int64_t token) {
  return (token + 1 - s.attention.window) / s.cache.page_size;
}

TEST(GallerySteps, SlidingWindowLeavesPagesBehind) {
  const Steps run("sliding_window");
  const auto written = run.of<trace::TokensWritten>(6);
  EXPECT_THAT(numbers(written, &trace::TokensWritten::first_token), ElementsAre(154));
  EXPECT_EQ(154 + 1 - run.scenario.attention.window, 115);
  EXPECT_EQ(115 / run.scenario.cache.page_size, 9);
  EXPECT_EQ(115 % run.scenario.cache.page_size, 7);
  EXPECT_EQ(pages_before_window(run.scenario, 154), 9);
  run.says("keep their blocks: 9 of the " + std::to_string(run.figures(6).used_blocks) + " that are used");
  EXPECT_EQ(run.figures(2).running, 3);
  EXPECT_EQ(run.figures(2).prefill_tokens, 64);
  Scenario small = run.scenario;
  small.cache.page_size = 4;
  small.cache.blocks = 120;
  const std::int64_t behind = pages_before_window(small, 154);
  run.says("leaves " + std::to_string(behind) + " of " + std::to_string(Steps(small).figures(6).used_blocks) +
           " blocks behind, " + std::to_string(behind * 4) + " tokens instead of " + std::to_string(9 * 12));
}

TEST(GallerySteps, MlaAndEightBitsMoveInTheirFirstSteps) {
  const Steps mla("mla"), e4m3("quantized_e4m3");
  EXPECT_THAT(numbers(mla.of<trace::BlockShared>(2), &trace::BlockShared::block), ElementsAre(0, 1));
  EXPECT_THAT(numbers(mla.of<trace::BlockShared>(2), &trace::BlockShared::ref_count), ElementsAre(2, 2));
  EXPECT_THAT(numbers(mla.of<trace::RequestAdmitted>(2), &trace::RequestAdmitted::hit_tokens), ElementsAre(128));
  EXPECT_EQ(61 * mla.scenario.cache.page_size, 3904);  // the rows of a block of the whole model
  EXPECT_EQ(mla.scenario.model.layers * mla.scenario.cache.page_size, 128);

  EXPECT_EQ(e4m3.figures(1).running, 2);
  EXPECT_EQ(e4m3.figures(1).used_blocks, 9);
  const ModelGeometry& m = e4m3.scenario.model;
  const std::int64_t values = 2 * m.kv_heads * m.head_size, scales = values / 64 * 4;
  e4m3.says("takes " + std::to_string(values + scales) + " bytes per layer for two heads of K and V: " +
            std::to_string(values) + " of values and " + std::to_string(scales) + " of scales");
  EXPECT_EQ(m.kv_heads, 2);
  EXPECT_THAT(numbers(e4m3.of<trace::RequestFinished>(2), &trace::RequestFinished::seq), ElementsAre(2));
  EXPECT_THAT(numbers(e4m3.of<trace::BlockReleased>(2), &trace::BlockReleased::block), ElementsAre(12, 11, 10, 9));
  EXPECT_THAT(numbers(e4m3.of<trace::BlockReleased>(2), &trace::BlockReleased::cached), Each(1));
}

TEST(GallerySteps, ASliceOfTrafficFillsItsPoolInThirtyFourSteps) {
  const Steps run("real_traffic_slice");
  std::size_t full = 0, longest = 0;
  while (run.figures(full).used_blocks < 288) ++full;
  for (std::size_t i = 0; i < run.report.curve.size(); ++i) {
    if (run.figures(i).waiting > run.figures(longest).waiting) longest = i;
  }
  const std::size_t first = run.steps_with<trace::RequestPreempted>().front();
  run.says("Step " + std::to_string(full) + ": the pool of 288 blocks is full for the first time. Step " +
           std::to_string(first) + ": the first of " + std::to_string(run.report.preemptions) + " preemptions");
  run.says(percent(std::lround(100 * run.report.utilization())) + " on average");
  run.says("longest in step " + std::to_string(longest) + ", where " + std::to_string(run.figures(longest).waiting) +
           " requests wait");
  const auto with = [&](std::int64_t blocks) {
    Scenario s = run.scenario;
    s.cache.blocks = blocks;
    return percent(Steps(s).last_hit_rate());
  };
  run.says("In a pool without evictions, " + with(100'000) + " of all prompt tokens would be found; here " +
           percent(run.last_hit_rate()) + " are");
  run.says("with twice the blocks, which finds " + with(2 * 288) + ", and with four times the blocks, which finds " +
           with(4 * 288));
}

}  // namespace
}  // namespace kvscope::gallery_steps_test
