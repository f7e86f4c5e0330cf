#include "core/cache/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvscope {
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
  EXPECT_DOUBLE_EQ(r.utilisation(), 0.25);              // (5/10 + 0) / 2
  EXPECT_DOUBLE_EQ(r.internal_fragmentation(), 0.125);  // (5 of 20 slots + none used) / 2
  EXPECT_DOUBLE_EQ(r.prefix_hit_rate(), 0.25);
}

TEST(RunReport, IsZeroThroughoutWhenNothingRan) {
  const RunReport r;
  EXPECT_EQ(r.utilisation(), 0.0);
  EXPECT_EQ(r.internal_fragmentation(), 0.0);
  EXPECT_EQ(r.prefix_hit_rate(), 0.0);
  EXPECT_THAT(to_text(r), HasSubstr("steps"));
  EXPECT_THAT(to_text(r), testing::Not(HasSubstr("over steps")));
}

TEST(RunReport, PrintsAlignedFiguresAndOneCurveALine) {
  const std::string text = to_text(two_steps());
  EXPECT_THAT(text, HasSubstr("  asked                          1,234,567\n"));
  EXPECT_THAT(text, HasSubstr("  simulated                        1.500 s  under the scenario's cost model\n"));
  EXPECT_THAT(text, HasSubstr("  found in the cache                     8  25.0 % of 32 looked up\n"));
  EXPECT_THAT(text, HasSubstr("  utilisation                  0.0 %    25.0 %    50.0 %  |█ |\n"));
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
  EXPECT_EQ(v.find("utilisation")->number(), 0.25);
  const json::Value* curve = v.find("curve");
  ASSERT_NE(curve, nullptr);
  EXPECT_EQ(curve->find("time_us")->as_array()->size(), 2u);
  EXPECT_EQ(*curve->find("used_blocks")->as_array()->front().as_i64(), 5);
  EXPECT_EQ(curve->find("internal_fragmentation")->as_array()->front().number(), 0.25);
  EXPECT_EQ(to_json(two_steps(), false).find("curve"), nullptr);
}

}  // namespace
}  // namespace kvscope
