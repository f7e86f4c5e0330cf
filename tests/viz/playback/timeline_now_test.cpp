// The timeline's values inside a step against the counts of the engine at its end, and against the pool.
#include "viz/playback/timeline_now.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/viz/playback/support.h"

namespace kvscope::viz::timeline_now_test {
namespace {

using namespace testing_support;

Breakpoint on(std::string_view kind) {
  Breakpoint breakpoint;
  breakpoint.kind = *trace::find_kind(kind);
  return breakpoint;
}

// At the preemption of step 3 all 24 blocks are in use; at the end of the step 23 are. Showing the end's 95.8 % beside
// "24 of 24 blocks used" was the fault.
TEST(TimelineNow, AgreesWithThePoolInsideAStep) {
  const auto run = gallery("preemption").open();
  Cursor cursor(run);
  const std::array preempted{on("request_preempted")};
  ASSERT_TRUE(cursor.run_to(preempted).has_value());
  ASSERT_EQ(cursor.state().step, StepIdx{3});
  ASSERT_EQ(cursor.state().used_blocks, 24);
  EXPECT_EQ(value_now(cursor, Series::utilization), 1.0);
  EXPECT_EQ(value_now(cursor, Series::running), 5.0);
  EXPECT_EQ(value_now(cursor, Series::waiting), 1.0);
  EXPECT_EQ(value_now(cursor, Series::decode), 0.0);  // nothing is computed yet
  EXPECT_EQ(count_now(cursor, Mark::preemption), 1);
  EXPECT_EQ(time_now(cursor), cursor.state().time_us);
  ASSERT_TRUE(cursor.event_back());
  EXPECT_EQ(count_now(cursor, Mark::preemption), 0);
  EXPECT_EQ(value_now(cursor, Series::running), 6.0);
  ASSERT_TRUE(cursor.step());
  EXPECT_FLOAT_EQ(static_cast<float>(value_now(cursor, Series::utilization)), 23.0F / 24);
  EXPECT_EQ(value_now(cursor, Series::decode), 5.0);
}

// Right before step_ended everything has happened that it counts.
TEST(TimelineNow, CountsWhatTheEngineCounts) {
  for (const std::string& name : gallery_names()) {
    const Recorded recorded = gallery(name);
    const auto run = recorded.open();
    Cursor cursor(run);
    for (std::int64_t row = 1; row < run->facts().rows; ++row) {
      Position position = run->end_of_row(row);
      while (!std::holds_alternative<trace::StepEnded>(recorded.events[static_cast<std::size_t>(position.value - 1)]))
        position = position - 1;
      cursor.seek(position - 1);
      ASSERT_TRUE(cursor.state().in_step);
      for (const Series series : {Series::utilization, Series::fragmentation, Series::cached, Series::waiting,
                                  Series::running, Series::prefill, Series::decode}) {
        ASSERT_FLOAT_EQ(static_cast<float>(value_now(cursor, series)),
                        run->timeline()[series][static_cast<std::size_t>(row - 1)])
            << name << ", step " << row - 1 << ", " << viz::name(series);
      }
      for (const Mark mark : {Mark::preemption, Mark::eviction, Mark::refusal, Mark::copy}) {
        ASSERT_EQ(count_now(cursor, mark), run->timeline()[mark][static_cast<std::size_t>(row - 1)])
            << name << ", step " << row - 1 << ", " << viz::name(mark);
      }
    }
  }
}

// The five preemptions of the run are in steps 3, 6, 10, 19 and 26.
TEST(TimelineNow, CountsMarksFromTheStartToThePosition) {
  const auto run = gallery("preemption").open();
  Cursor cursor(run);
  const auto after = [&](std::int64_t step) {
    cursor.seek(run->end_of_row(step + 1));
    return count_so_far(cursor, Mark::preemption);
  };
  EXPECT_EQ(after(0), 0);
  EXPECT_EQ(after(2), 0);
  EXPECT_EQ(after(3), 1);
  EXPECT_EQ(after(9), 2);
  EXPECT_EQ(after(10), 3);
  EXPECT_EQ(after(46), 5);
  cursor.seek(run->end_of_row(7) - 1);  // inside step 6
  EXPECT_EQ(count_so_far(cursor, Mark::preemption), 2);
  cursor.seek(run->end_of_row(6));
  ASSERT_TRUE(cursor.event());
  EXPECT_EQ(count_so_far(cursor, Mark::preemption), 1) << "step 6 has begun, and nothing is preempted yet";
}

// The looked-up tokens of a step are counted at its end.
TEST(TimelineNow, HasTheHitRateOfTheStepsThatEnded) {
  const auto run = gallery("prefix_sharing").open();
  Cursor cursor(run);
  cursor.seek(run->end_of_row(4) - 1);
  EXPECT_EQ(value_now(cursor, Series::hit_rate), run->timeline()[Series::hit_rate][2]);
  cursor.seek(run->end_of_row(1) - 1);
  EXPECT_EQ(value_now(cursor, Series::hit_rate), 0.0);
}

}  // namespace
}  // namespace kvscope::viz::timeline_now_test
