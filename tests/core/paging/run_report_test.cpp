#include "core/paging/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::run_report_test {
namespace {

using testing::HasSubstr;

RunReport two_steps() {
  RunReport r;
  r.page_size = 4;
  r.blocks = 10;
  r.requests = 1'234'567;
  r.finished = 2;
  r.steps = 2;
  r.duration_us = 1'500'000;
  r.computed_tokens = 999;
  r.hit_tokens = 8;
  r.query_tokens = 32;
  r.peak_used_blocks = 5;
  StepFigures first;
  first.time_us = 700;
  first.used_blocks = 5;
  first.slots_filled = 15;
  first.hit_tokens = 8;
  first.query_tokens = 32;
  first.running = 2;
  StepFigures second;
  second.time_us = 1'500'000;
  r.curve = {first, second};
  return r;
}

TEST(RunReport, TakesMeansOverStepsAndTheHitRateOverTheRun) {
  const RunReport r = two_steps();
  EXPECT_DOUBLE_EQ(r.utilization(), 0.25);             // (5/10 + 0) / 2
  EXPECT_DOUBLE_EQ(r.internal_fragmentation(), 0.25);  // 5 of 20 slots; the second step uses none and does not count
  EXPECT_DOUBLE_EQ(r.prefix_hit_rate(), 0.25);
}

TEST(RunReport, IsZeroThroughoutWhenNothingRan) {
  const RunReport r;
  EXPECT_EQ(r.utilization(), 0.0);
  EXPECT_EQ(r.internal_fragmentation(), 0.0);
  EXPECT_EQ(r.prefix_hit_rate(), 0.0);
  EXPECT_THAT(to_text(r), HasSubstr("steps"));
  EXPECT_THAT(to_text(r), testing::Not(HasSubstr("per step")));
}

TEST(RunReport, PrintsAlignedFiguresAndOneCurveALine) {
  const std::string text = to_text(two_steps());
  EXPECT_THAT(text, HasSubstr("  submitted                      1,234,567\n"));
  EXPECT_THAT(text, HasSubstr("  simulated                        1.500 s  under the scenario's cost model\n"));
  EXPECT_THAT(text, HasSubstr("  found in the cache                     8  25.0 % of 32 looked up\n"));
  EXPECT_THAT(text, HasSubstr("  utilization                  0.0 %    25.0 %    50.0 %  |█ |\n"));
  EXPECT_THAT(text, HasSubstr("  internal fragmentation      25.0 %    25.0 %    25.0 %  |█ |\n"))
      << "a step that uses no block has no fragmentation";
  EXPECT_THAT(text, HasSubstr("  prefix hits                 25.0 %    25.0 %    25.0 %  |█ |\n"))
      << "a step that looks nothing up has no hit rate";
  EXPECT_THAT(text, HasSubstr("  waiting                        0.0       0.0       0.0  |  |\n"));
}

TEST(RunReport, NamesTheNullPageOnlyWhereThereIsOne) {
  RunReport r = two_steps();
  EXPECT_THAT(to_text(r), HasSubstr("  in the pool                           10  and the null page\n"));
  r.paged = false;
  EXPECT_THAT(to_text(r), HasSubstr("  in the pool                           10\n"));
}

TEST(RunReport, SaysWhatForksSharedOnlyWhenTheyDid) {
  RunReport r = two_steps();
  EXPECT_THAT(to_text(r), testing::Not(HasSubstr("by forks")));
  r.forked_tokens = 6;
  EXPECT_THAT(to_text(r),
              HasSubstr("    by forks                             6  prompts shared with further samples\n"));
  EXPECT_EQ(*to_json(r, false).find("forked_tokens")->as_i64(), 6);
}

TEST(RunReport, DrawsAnyNumberOfStepsInAtMost48Columns) {
  RunReport r = two_steps();
  r.curve.clear();
  for (std::int64_t i = 0; i < 1000; ++i) {
    StepFigures f;
    f.used_blocks = i % 500 < 250 ? 8 : 1;
    r.curve.push_back(f);
  }
  const std::string text = to_text(r);
  const std::string twelve_high = "████████████", twelve_low = "▁▁▁▁▁▁▁▁▁▁▁▁";
  EXPECT_THAT(text, HasSubstr("|" + twelve_high + twelve_low + twelve_high + twelve_low + "|"));
}

TEST(RunReport, WritesTheSameFiguresAsJson) {
  const json::Value v = to_json(two_steps(), true);
  EXPECT_EQ(*v.find("requests")->as_i64(), 1'234'567);
  EXPECT_EQ(v.find("utilization")->number(), 0.25);
  const json::Value* curve = v.find("curve");
  ASSERT_NE(curve, nullptr);
  EXPECT_EQ(curve->find("time_us")->as_array()->size(), 2u);
  EXPECT_EQ(*curve->find("used_blocks")->as_array()->front().as_i64(), 5);
  EXPECT_EQ(curve->find("internal_fragmentation")->as_array()->front().number(), 0.25);
  EXPECT_TRUE(curve->find("internal_fragmentation")->as_array()->back().is_null());
  EXPECT_EQ(curve->find("prefix_hit_rate")->as_array()->front().number(), 0.25);
  EXPECT_TRUE(curve->find("prefix_hit_rate")->as_array()->back().is_null());
  EXPECT_EQ(curve->find("utilization")->as_array()->back().number(), 0.0) << "an empty pool is a figure, no gap";
  EXPECT_EQ(to_json(two_steps(), false).find("curve"), nullptr);
}

// The numbers of a printed line: minimum, mean, maximum.
std::vector<std::string> printed_shares(const std::string& text, const std::string& name) {
  std::istringstream words(text.substr(text.find("  " + name + " ") + 2 + name.size()));
  std::vector<std::string> shares(3);
  std::string sign;
  for (std::string& share : shares) words >> share >> sign;
  return shares;
}

std::string as_printed(double share) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << 100 * share;
  return out.str();
}

// Figures that rounding does not hide: steps without blocks, without look-ups, without both, at either end and between.
// A text and a JSON that treat such steps differently agree on a run without them.
TEST(RunReport, SaysTheSameInTextAndJsonWhicheverStepsHaveNoShare) {
  for (unsigned idle = 0; idle < 256; ++idle) {
    RunReport r = two_steps();
    r.curve.clear();
    for (unsigned i = 0; i < 4; ++i) {
      StepFigures f;
      f.used_blocks = (idle >> i & 1) != 0 ? 0 : 2 + i;
      f.slots_filled = f.used_blocks * 3 - i % 2;
      if (f.used_blocks == 0) f.slots_filled = 0;
      f.query_tokens = (idle >> (4 + i) & 1) != 0 ? 0 : 10 + i;
      f.hit_tokens = f.query_tokens / (i + 1);
      r.curve.push_back(f);
    }
    const std::string text = to_text(r);
    const json::Value v = to_json(r, true);
    for (const auto& [line, key] : {std::pair<std::string, std::string>{"utilization", "utilization"},
                                    {"internal fragmentation", "internal_fragmentation"},
                                    {"prefix hits", "prefix_hit_rate"}}) {
      std::vector<double> points;
      for (const json::Value& point : *v.find("curve")->find(key)->as_array()) {
        if (!point.is_null()) points.push_back(point.number());
      }
      double sum = 0;
      for (const double point : points) sum += point;
      const double mean = points.empty() ? 0 : sum / static_cast<double>(points.size());
      const auto [low, high] = std::minmax_element(points.begin(), points.end());
      EXPECT_THAT(printed_shares(text, line),
                  testing::ElementsAre(as_printed(points.empty() ? 0 : *low), as_printed(mean),
                                       as_printed(points.empty() ? 0 : *high)))
          << line << ", idle " << idle;
      if (key != "prefix_hit_rate") {
        EXPECT_DOUBLE_EQ(v.find(key)->number(), mean) << key << ", idle " << idle;
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::run_report_test
