#include "viz/playback/timeline.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/viz/playback/support.h"
#include "viz/playback/timeline_fold.h"

namespace kvscope::viz::timeline_test {
namespace {

using namespace testing_support;

Timeline timeline_of(const Facts& facts, const std::vector<trace::Event>& events) {
  TimelineFold fold(facts);
  for (const trace::Event& event : events) fold.add(event);
  return fold.take();
}

// All numbers of a step are different, so that a curve made of a wrong column is found.
TEST(Timeline, EachSeriesIsItsColumn) {
  Facts facts = small_facts();
  facts.blocks = 64;
  facts.page_size = 16;
  trace::StepEnded ended{StepIdx{7}, 90};
  ended.waiting = 3;
  ended.running = 5;
  ended.used_blocks = 32;
  ended.cached_blocks = 8;
  ended.free_blocks = 24;
  ended.slots_filled = 384;  // of 32 * 16 = 512
  ended.prefill_tokens = 11;
  ended.decode_tokens = 13;
  ended.hit_tokens = 20;
  ended.query_tokens = 80;
  const Timeline t = timeline_of(facts, {trace::StepBegan{StepIdx{7}, 40}, ended});
  ASSERT_EQ(t.steps(), 1);
  EXPECT_EQ(t.step[0], 7);
  EXPECT_EQ(t.time_us[0], 90);
  EXPECT_FLOAT_EQ(t[Series::utilization][0], 0.5F);
  EXPECT_FLOAT_EQ(t[Series::fragmentation][0], 0.25F);
  EXPECT_FLOAT_EQ(t[Series::hit_rate][0], 0.25F);
  EXPECT_FLOAT_EQ(t[Series::cached][0], 0.125F);
  EXPECT_EQ(t[Series::waiting][0], 3);
  EXPECT_EQ(t[Series::running][0], 5);
  EXPECT_EQ(t[Series::prefill][0], 11);
  EXPECT_EQ(t[Series::decode][0], 13);
}

// The run report of the engine has the same figures for each step and in total.
TEST(Timeline, AgreesWithTheRunReportOfTheEngine) {
  const Recorded recorded = gallery("real_traffic_slice");
  const auto run = recorded.open();
  const Timeline& t = run->timeline();
  trace::Recorder off;
  const RunReport report = run_engine(recorded.scenario, recorded.requests, off).report;
  ASSERT_EQ(t.steps(), report.steps);
  std::int64_t evictions = 0, copies = 0, preemptions = 0;
  for (std::size_t k = 0; k < report.curve.size(); ++k) {
    const StepFigures& f = report.curve[k];
    EXPECT_EQ(t.step[k], static_cast<std::int64_t>(k));
    EXPECT_EQ(t.time_us[k], f.time_us);
    EXPECT_FLOAT_EQ(t[Series::utilization][k], static_cast<float>(f.used_blocks) / static_cast<float>(report.blocks));
    EXPECT_EQ(t[Series::running][k], static_cast<float>(f.running));
    EXPECT_EQ(t[Mark::preemption][k], f.preemptions);
    preemptions += t[Mark::preemption][k];
    evictions += t[Mark::eviction][k];
    copies += t[Mark::copy][k];
  }
  EXPECT_EQ(preemptions, report.preemptions);
  EXPECT_EQ(evictions, report.evictions);
  EXPECT_EQ(copies, report.copies);
  EXPECT_GT(evictions, 0);
  EXPECT_FLOAT_EQ(t[Series::hit_rate].back(), static_cast<float>(report.prefix_hit_rate()));
}

// The rate is over the run so far, not over the step.
TEST(Timeline, HitRateRemembersTheStepsBefore) {
  trace::StepEnded first{StepIdx{0}, 0}, second{StepIdx{1}, 0}, third{StepIdx{2}, 0};
  first.hit_tokens = 0, first.query_tokens = 10;
  second.hit_tokens = 10, second.query_tokens = 10;
  const Timeline t =
      timeline_of(small_facts(), {trace::StepBegan{StepIdx{0}, 0}, first, trace::StepBegan{StepIdx{1}, 0}, second,
                                  trace::StepBegan{StepIdx{2}, 0}, third});
  EXPECT_EQ(t[Series::hit_rate], (std::vector<float>{0.0F, 0.5F, 0.5F}));
}

TEST(Timeline, MarksAreCountedInTheStepTheyHappenIn) {
  const Timeline t =
      timeline_of(small_facts(),
                  {trace::RequestRefused{SeqIdx{0}, 9, 8}, trace::StepBegan{StepIdx{0}, 0},
                   trace::StepBegan{StepIdx{1}, 0}, trace::BlockEvicted{BlockIdx{0}}, trace::BlockEvicted{BlockIdx{1}},
                   trace::RequestPreempted{SeqIdx{0}, 1}, trace::BlockCopied{}, trace::BlockCopied{},
                   trace::BlockCopied{}, trace::StepBegan{StepIdx{2}, 0}, trace::RequestRefused{SeqIdx{0}, 9, 8}});
  EXPECT_EQ(t[Mark::eviction], (std::vector<std::int32_t>{0, 2, 0}));
  EXPECT_EQ(t[Mark::preemption], (std::vector<std::int32_t>{0, 1, 0}));
  EXPECT_EQ(t[Mark::copy], (std::vector<std::int32_t>{0, 3, 0}));
  EXPECT_EQ(t[Mark::refusal], (std::vector<std::int32_t>{0, 0, 1}));  // the one of the prologue is in no step
}

// A run that ends inside a step: its curves keep the previous values, and it has no computed tokens.
TEST(Timeline, StepThatDoesNotEndKeepsTheNumbersBefore) {
  trace::StepEnded ended{StepIdx{0}, 50};
  ended.used_blocks = 4;
  ended.running = 2;
  ended.decode_tokens = 2;
  const Timeline t =
      timeline_of(small_facts(), {trace::StepBegan{StepIdx{0}, 0}, ended, trace::StepBegan{StepIdx{1}, 60}});
  ASSERT_EQ(t.steps(), 2);
  EXPECT_EQ(t.time_us[1], 60);
  EXPECT_EQ(t[Series::utilization][1], 0.5F);
  EXPECT_EQ(t[Series::running][1], 2);
  EXPECT_EQ(t[Series::decode][1], 0);
}

// Even for inconsistent counts of a trace, shares are in [0, 1] and never NaN.
TEST(Timeline, SharesStayBetweenZeroAndOne) {
  for (const std::int64_t wild : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
                                  std::int64_t{1'000}, std::numeric_limits<std::int64_t>::max()}) {
    for (const std::int64_t blocks : {0, 8}) {
      Facts facts = small_facts();
      facts.blocks = blocks;
      trace::StepEnded ended{StepIdx{0}, 0};
      ended.used_blocks = ended.cached_blocks = ended.slots_filled = ended.hit_tokens = ended.query_tokens = wild;
      const Timeline t = timeline_of(facts, {trace::StepBegan{StepIdx{0}, 0}, ended});
      for (std::size_t s = 0; s < kSeries; ++s) {
        const auto series = static_cast<Series>(s);
        if (!is_share(series)) continue;
        EXPECT_GE(t[series][0], 0.0F) << name(series) << " " << wild;
        EXPECT_LE(t[series][0], 1.0F) << name(series) << " " << wild;
      }
    }
  }
}

TEST(Timeline, SeriesAndMarksHaveNames) {
  const std::vector<std::string_view> expected{"utilization",    "fragmentation",    "prefix hit rate",
                                               "cached blocks",  "waiting requests", "running requests",
                                               "prefill tokens", "decode tokens"};
  for (std::size_t s = 0; s < kSeries; ++s) {
    EXPECT_EQ(name(static_cast<Series>(s)), expected[s]);
    EXPECT_EQ(is_share(static_cast<Series>(s)), s < 4);
  }
  EXPECT_EQ(name(Mark::preemption), "preemption");
  EXPECT_EQ(name(Mark::eviction), "eviction");
  EXPECT_EQ(name(Mark::refusal), "rejection");
  EXPECT_EQ(name(Mark::copy), "copy");
}

}  // namespace
}  // namespace kvscope::viz::timeline_test
