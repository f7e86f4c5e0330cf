// The tour: each task is done by a state of the document, wrong tries get a remark, and the statements of the tasks are
// true of their scenario.
#include "viz/model/tour.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/staging/focus.h"
#include "core/staging/staging_events.h"
#include "tests/viz/model/support.h"
#include "viz/playback/run_numbers.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::tour_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::simulate;
using testing_support::Simulated;

const Simulated& first_light() {
  static const Simulated kSimulated = simulate("first_light");
  return kSimulated;
}

std::shared_ptr<const Run> with_pages_of_32() {
  Scenario scenario = first_light().scenario;
  scenario.cache.page_size = 32;
  trace::MemoryRecorder recorder;
  static_cast<void>(run_engine(scenario, first_light().requests, recorder));
  return Run::open(from_memory(recorder.events(), {{"scenario", json::dump(to_json(scenario))}}, trace::Detail::full),
                   "first_light");
}

std::shared_ptr<const Tile> tile_at_step_6() {
  const Simulated& s = first_light();
  TileQuestion question;
  question.path = StagingPath::tma;
  question.seq = SeqIdx{0};
  trace::MemoryRecorder recorder;
  record_tile(s.scenario, state_at(s.scenario, s.requests, StepIdx{6}).cache, question, recorder, TmaBoxes::pages);
  return std::make_shared<const Tile>(fold_tile(recorder.events()));
}

class TourTest : public testing::Test {
 protected:
  TourTest() {
    tour.start();
    document.seek_step(StepIdx{0});
    look();
  }
  void look() { tour.look(document); }
  // To the given task: the ones before it are skipped.
  void go_to(TourTask task) {
    while (tour.task() != task) tour.skip(document);
  }
  [[nodiscard]] std::string remark() const { return tour.remark().toStdString(); }
  [[nodiscard]] const State& state() const { return document.cursor().state(); }
  void select(const Selection& selection) {
    document.pin(selection);
    look();
  }

  Document document{first_light().run, {}};
  Tour tour;
};

// --- the scenario ----------------------------------------------------------------------------------------------------

TEST_F(TourTest, WhatTheTasksStateIsTrueOfTheScenario) {
  document.seek_step(Tour::kSeekTo);
  EXPECT_EQ(state().live.size(), 5U);
  for (std::int64_t block = 0; block < 4; ++block) EXPECT_EQ(state().blocks[block].ref_count, 5) << block;
  const SequenceState& sequence = state().sequences[Tour::kSequence.value];
  const std::int64_t page = (sequence.tokens - 1) / document.run().facts().page_size;
  EXPECT_EQ(state().blocks[sequence.pages[page]].ref_count, 1);  // so that the next task is not done by this one
  EXPECT_GT(state().sequences[Tour::kFoundSequence.value].tokens, Tour::kFoundToken.value);
  document.set_breakpoints({parse_breakpoint("request_finished")});
  document.run_to_breakpoint();
  EXPECT_TRUE(document.at_breakpoint());
  EXPECT_LT(run_numbers(with_pages_of_32()->timeline()).hit_rate, run_numbers(document.run().timeline()).hit_rate);
}

// --- the tasks -------------------------------------------------------------------------------------------------------

TEST_F(TourTest, StepsForwardAndBack) {
  document.seek_step(StepIdx{2});
  look();
  EXPECT_EQ(tour.task(), TourTask::step);
  document.step();
  look();
  EXPECT_EQ(tour.task(), TourTask::step_back);
  document.step();
  look();
  EXPECT_EQ(tour.task(), TourTask::step_back);
  document.step_back();  // to where the task began
  look();
  EXPECT_EQ(tour.task(), TourTask::seek);
  EXPECT_THAT(tour.done(), ElementsAre(true, true));
}

TEST_F(TourTest, AnEventBackIsAStepBackToo) {
  go_to(TourTask::step_back);
  document.previous_event();
  look();
  EXPECT_EQ(tour.task(), TourTask::seek);
}

TEST_F(TourTest, AnotherStepIsRemarked) {
  go_to(TourTask::seek);
  look();
  EXPECT_EQ(remark(), "");
  document.seek_step(StepIdx{9});
  look();
  EXPECT_EQ(remark(), "This is step 9.");
  document.seek_step(StepIdx{6});
  look();
  EXPECT_EQ(tour.task(), TourTask::select_token);
  EXPECT_EQ(remark(), "");
}

TEST_F(TourTest, OnlyTheLastTokenOfItsSequenceCounts) {
  document.seek_step(Tour::kSeekTo);
  go_to(TourTask::select_token);
  const TokIdx last(state().sequences[3].tokens - 1);
  for (const Selection& wrong : {of_token(SeqIdx{3}, last - 1), of_token(SeqIdx{2}, last), of_sequence(SeqIdx{3}),
                                 of_page(SeqIdx{3}, PageIdx{last.value / 16}), of_block(BlockIdx{0})}) {
    select(wrong);
    EXPECT_EQ(tour.task(), TourTask::select_token);
    EXPECT_EQ(remark(), describe(state(), document.run().facts(), wrong));
  }
  select({});
  EXPECT_EQ(remark(), "");
  select(of_token(SeqIdx{3}, last));
  EXPECT_EQ(tour.task(), TourTask::find_block);
}

TEST_F(TourTest, OnlyTheBlockOfThatTokenCountsAndOfBlocksASharedOne) {
  document.seek_step(Tour::kSeekTo);
  go_to(TourTask::find_block);
  const SequenceState& sequence = state().sequences[3];
  const BlockIdx own(sequence.pages[(sequence.tokens - 1) / 16]);
  look();
  EXPECT_EQ(remark(), "");
  for (std::int64_t block = 0; block <= document.run().facts().blocks; ++block) {  // the last is the null page
    if (block == own.value) continue;
    select(of_block(BlockIdx(block)));
    EXPECT_EQ(tour.task(), TourTask::find_block) << block;
    EXPECT_THAT(remark(), HasSubstr(block < document.run().facts().blocks ? "Block " + std::to_string(block) : "null"));
  }
  select(of_block(own));
  ASSERT_EQ(tour.task(), TourTask::shared_block);
  for (std::int64_t block = document.run().facts().blocks; block >= 0; --block) {
    const bool shared = block < document.run().facts().blocks && state().blocks[block].ref_count > 1;
    select(of_block(BlockIdx(block)));
    ASSERT_EQ(tour.task(), shared ? TourTask::find : TourTask::shared_block) << block;
    if (shared) break;
  }
}

TEST_F(TourTest, ASequenceThatHasEndedHasNoBlockToFind) {
  document.to_end();
  go_to(TourTask::find_block);
  select(of_block(BlockIdx{0}));
  EXPECT_EQ(tour.task(), TourTask::find_block);
}

TEST_F(TourTest, OneTokenIsToBeFound) {
  document.seek_step(Tour::kSeekTo);
  go_to(TourTask::find);
  select(of_token(SeqIdx{0}, TokIdx{7}));
  EXPECT_EQ(tour.task(), TourTask::find);
  EXPECT_THAT(remark(), HasSubstr("Sequence 0, token 7"));
  document.go_to(parse_find("0:70", document.run().facts()));
  look();
  EXPECT_EQ(tour.task(), TourTask::tile);
}

TEST_F(TourTest, ATileIsShownAndLoaded) {
  document.seek_step(Tour::kSeekTo);
  go_to(TourTask::tile);
  document.show_tile(tile_at_step_6());  // arrives, and another view is shown
  look();
  EXPECT_EQ(tour.task(), TourTask::tile);
  document.show_no_tile(QStringLiteral("the stride is not a multiple of 16"));
  document.follow_tile(true);
  look();
  EXPECT_EQ(remark(), "the stride is not a multiple of 16");
  document.show_tile(tile_at_step_6());
  look();
  ASSERT_EQ(tour.task(), TourTask::land);
  ASSERT_TRUE(document.tile_now().complete);  // how a tile is shown at first
  look();
  EXPECT_EQ(tour.task(), TourTask::land);
  document.tile_to_start();
  look();
  EXPECT_EQ(remark(), "");
  while (!document.tile_now().complete) {
    ASSERT_EQ(tour.task(), TourTask::land);
    const std::int64_t landed = document.tile_now().landed;
    if (landed > 0) {
      EXPECT_EQ(remark(), std::to_string(landed) + " of " + std::to_string(document.tile()->chunks.size()) +
                              " chunks have landed.");
    }
    document.tile_step();
    look();
  }
  ASSERT_EQ(tour.task(), TourTask::select_register);
  select(of_tile_row(2));
  EXPECT_EQ(remark(), describe(document.shown_state(), document.run().facts(), document.tile(), of_tile_row(2)));
  select(of_tile_register({0, 3, 0, 0}));
  EXPECT_EQ(tour.task(), TourTask::run_to_event);
}

TEST_F(TourTest, TheRunStopsAtABreakpoint) {
  document.seek_step(Tour::kSeekTo);
  go_to(TourTask::run_to_event);
  document.next_event();
  look();
  EXPECT_EQ(tour.task(), TourTask::run_to_event);
  document.set_breakpoints({parse_breakpoint("request_finished")});
  look();
  EXPECT_EQ(tour.task(), TourTask::run_to_event);
  document.run_to_breakpoint();
  look();
  EXPECT_EQ(tour.task(), TourTask::change);
}

TEST_F(TourTest, AChangedRunIsComparedWithTheFiles) {
  go_to(TourTask::change);
  look();
  EXPECT_EQ(tour.task(), TourTask::change);
  Document changed(with_pages_of_32(), {});
  tour.look(changed);
  ASSERT_EQ(tour.task(), TourTask::compare);
  changed.set_compared(first_light().run);
  tour.look(changed);
  EXPECT_EQ(tour.task(), TourTask::compare);
  changed.show_beside(true);
  tour.look(changed);
  EXPECT_EQ(tour.task(), TourTask::end);
  tour.look(changed);
  EXPECT_EQ(tour.done().size(), kTourTasks);
}

// --- the tour --------------------------------------------------------------------------------------------------------

TEST_F(TourTest, SkippedTasksAreKeptApart) {
  int changes = 0;
  QObject::connect(&tour, &Tour::changed, &tour, [&changes] { ++changes; });
  tour.skip(document);
  document.previous_event();
  look();
  EXPECT_THAT(tour.done(), ElementsAre(false, true));
  EXPECT_EQ(changes, 2);
  look();  // nothing is new
  EXPECT_EQ(changes, 2);
  go_to(TourTask::end);
  tour.skip(document);
  EXPECT_EQ(tour.done().size(), kTourTasks);
}

TEST_F(TourTest, AnEndedTourObservesNothingAndStartsAgainAtItsFirstTask) {
  go_to(TourTask::seek);
  tour.end();
  EXPECT_FALSE(tour.active());
  document.seek_step(Tour::kSeekTo);
  look();
  tour.skip(document);
  EXPECT_EQ(tour.task(), TourTask::seek);
  tour.start();
  EXPECT_EQ(tour.task(), TourTask::step);
  EXPECT_TRUE(tour.done().empty());
}

// A changed scenario may have fewer sequences.
TEST_F(TourTest, AnyRunCanBeObservedAtAnyTask) {
  Document other(testing_support::run_of_steps(3), {});
  for (std::size_t task = 0; task < kTourTasks; ++task) {
    tour.start();
    go_to(static_cast<TourTask>(task));
    other.seek_step(StepIdx{1});
    other.pin(of_block(BlockIdx{0}));
    tour.look(other);
    other.pin(of_token(Tour::kSequence, TokIdx{0}));
    tour.look(other);
  }
}

}  // namespace
}  // namespace kvscope::viz::tour_test
