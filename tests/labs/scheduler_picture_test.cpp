#include "apps/labs/scheduler_picture.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace kvscope::labs::scheduler_picture_test {
namespace {

using Decisions = std::vector<SchedulerDecision>;

struct Drawn {
  SchedulerRun run;
  std::vector<SchedulerStep> timeline;
  CasePicture picture;
};

// The picture of the first fault.
Drawn drawn(const SchedulerCase& trace, const Decisions& decisions) {
  Drawn result;
  result.run = replay(trace, decisions, &result.timeline);
  if (!result.run.faults.empty()) result.picture = scheduler_picture(trace, result.run.faults.front(), result.timeline);
  return result;
}

std::size_t count_of(const PictureGrid& grid, CellMark mark) {
  std::size_t count = 0;
  for (const PictureRow& row : grid.rows) {
    for (const PictureCell& cell : row.cells) count += cell.mark == mark ? 1 : 0;
  }
  return count;
}

// The example of the handout: request 2 is admitted in step 1 and preempted in step 2, directly after its admission.
const SchedulerCase kExample{6, 4, 4, {{0, 6, 8}, {0, 7, 6}, {1, 4, 4}}};

TEST(SchedulerPicture, ShowsTheStepsUpToThePreemptionThatBreaksTheRule) {
  const Drawn made = drawn(kExample, {{{}, {0, 1}}, {{}, {2}}, {{2}, {}}});
  ASSERT_FALSE(made.run.faults.empty());
  EXPECT_EQ(made.run.faults.front().rule, SchedulerRule::watermark);
  EXPECT_EQ(made.run.faults.front().request, 2);
  const PictureGrid& grid = made.picture.grids.at(0);
  EXPECT_EQ(grid.columns, (std::vector<std::string>{"step 0", "step 1", "step 2"}));
  ASSERT_EQ(grid.rows.size(), 4U);
  const auto texts = [&](std::size_t row) {
    std::vector<std::string> result;
    for (const PictureCell& cell : grid.rows[row].cells) result.push_back(cell.text);
    return result;
  };
  // 6 and 7 prompt tokens are 2 blocks each. In step 2 request 1 stores its ninth token, in a third block.
  EXPECT_EQ(texts(0), (std::vector<std::string>{"2", "2", "2"}));
  EXPECT_EQ(texts(1), (std::vector<std::string>{"2", "2", "3"}));
  EXPECT_EQ(texts(2), (std::vector<std::string>{"", "1", "preempted"}));
  EXPECT_EQ(texts(3), (std::vector<std::string>{"2", "1", "1"}));
  EXPECT_EQ(grid.rows[2].cells[0].mark, CellMark::none);
  EXPECT_EQ(grid.rows[2].cells[2].mark, CellMark::wrong);
  EXPECT_EQ(count_of(grid, CellMark::wrong), 1U);
}

// The same step without the preemption: requests 1 and 2 need a block each, and one is free.
TEST(SchedulerPicture, AnOverCommittedPoolLacksBlocks) {
  const Drawn made = drawn(kExample, {{{}, {0, 1}}, {{}, {2}}, {{}, {}}});
  ASSERT_FALSE(made.run.faults.empty());
  EXPECT_EQ(made.run.faults.front().rule, SchedulerRule::capacity);
  const PictureGrid& grid = made.picture.grids.at(0);
  EXPECT_EQ(grid.rows.back().heading, "free blocks");
  EXPECT_EQ(grid.rows.back().cells.back().mark, CellMark::wrong);
  EXPECT_EQ(grid.rows.back().cells.back().note, "1 missing");
  EXPECT_EQ(count_of(grid, CellMark::wrong), 1U);
}

TEST(SchedulerPicture, ARequestThatFinishesHoldsItsBlocksInItsLastStep) {
  const Drawn made = drawn({6, 4, 4, {{0, 6, 2}, {0, 1, 9}}}, {{{}, {0}}, {{}, {}}, {{}, {}}});
  ASSERT_EQ(made.timeline.size(), 3U);
  EXPECT_EQ(made.timeline[1].requests[0].status, RequestStatus::finishing);
  EXPECT_EQ(made.timeline[1].requests[0].tokens, 7);
  EXPECT_EQ(made.timeline[1].free_blocks, 4);
  EXPECT_EQ(made.timeline[2].requests[0].status, RequestStatus::finished);
  EXPECT_EQ(made.timeline[2].requests[1].status, RequestStatus::waiting);
  EXPECT_EQ(made.timeline[2].free_blocks, 6);
}

// A long trace does not fit on a page; the request of the message must be in the picture whatever its number.
TEST(SchedulerPicture, ShowsTheLastStepsAndTheRequestOfTheFault) {
  SchedulerCase trace{400, 4, 40, {}};
  for (int r = 0; r < 40; ++r) trace.requests.push_back({0, 4, 30});
  Decisions decisions(20);
  for (int r = 0; r < 40; ++r) decisions[0].admit.push_back(r);
  decisions[15].preempt = {37};
  const Drawn made = drawn(trace, decisions);
  ASSERT_FALSE(made.run.faults.empty());
  EXPECT_EQ(made.run.faults.front().rule, SchedulerRule::need);
  const PictureGrid& grid = made.picture.grids.at(0);
  EXPECT_EQ(grid.columns.front(), "step 4");
  EXPECT_EQ(grid.columns.back(), "step 15");
  EXPECT_EQ(grid.rows.size(), 15U);
  EXPECT_EQ(grid.rows[13].heading, "request 37: 4 + 30 tokens");
  EXPECT_EQ(grid.rows[13].cells.back().mark, CellMark::wrong);
}

}  // namespace
}  // namespace kvscope::labs::scheduler_picture_test
