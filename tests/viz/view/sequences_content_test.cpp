#include "viz/view/sequences_content.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "tests/viz/view/pool_scene.h"
#include "tests/viz/view/runs.h"

namespace kvscope::viz::sequences_content_test {
namespace {

using testing::ElementsAre;
using namespace trace;

// No request runs yet; `waiting` requests of 20 tokens have arrived.
std::shared_ptr<const Run> queue_of(int waiting) {
  std::vector<Event> events;
  for (int k = 0; k < waiting; ++k) events.push_back(RequestArrived{SeqIdx{k}, 20, 4});
  events.push_back(StepBegan{StepIdx{0}, 0});
  events.push_back(StepEnded{StepIdx{0}, 10});
  return run_of(10, events);
}

// --- a long queue ----------------------------------------------------------------------------------------------------

// With a row for each of seventy waiting requests, running ones would have two px each.
TEST(SequenceRows, ALongQueueSharesOneLine) {
  const Staged six(queue_of(6)), seven(queue_of(7));
  EXPECT_EQ(sequence_rows(six.scene.state()).count(), 6);
  EXPECT_EQ(sequence_rows(six.scene.state()).waiting, 0);
  const SequenceRows rows = sequence_rows(seven.scene.state());
  EXPECT_EQ(rows.count(), 0);
  EXPECT_EQ(rows.waiting, 7);
  EXPECT_EQ(rows.first_waiting, SeqIdx{0});
  EXPECT_EQ(rows.last_waiting, SeqIdx{6});
  const SequencesExtent extent = sequences_extent(seven.scene.facts(), seven.scene.state(), rows);
  EXPECT_TRUE(extent.note);
}

// Running and preempted sequences keep their rows, and every row is found by its sequence.
TEST(SequenceRows, HaveEverySequenceOnceInOrder) {
  for (const char* name : {"continuous", "preemption", "page_size_fragmentation"}) {
    Staged staged(gallery_run(name));
    for (std::int64_t row = 1; row < staged.run->facts().rows; row += 5) {
      staged.cursor.seek_row(row);
      const State& state = staged.scene.state();
      const SequenceRows rows = sequence_rows(state);
      ASSERT_EQ(rows.count() + rows.waiting, std::ssize(state.live));
      ASSERT_TRUE(std::is_sorted(rows.seqs.begin(), rows.seqs.end()));
      for (const SeqIdx seq : state.live) {
        const std::optional<std::int64_t> found = rows.row_of(seq);
        if (found) {
          ASSERT_EQ(rows.seq(*found), seq);
        } else {
          ASSERT_EQ(state.sequences[seq.value].phase, Phase::waiting);
          ASSERT_TRUE(rows.first_waiting <= seq && seq <= rows.last_waiting);
        }
      }
      ASSERT_EQ(rows.row_of(SeqIdx{1'000'000}), std::nullopt);
    }
  }
}

// Prefill writes one event per page: those of one sequence are merged into one run, those of two sequences into two.
TEST(WrittenRuns, FollowOneAnotherIntoOne) {
  Marks marks;
  marks.written = {{SeqIdx{1}, TokIdx{16}, 16, BlockIdx{4}, 0, false},
                   {SeqIdx{0}, TokIdx{32}, 1, BlockIdx{9}, 0, true},
                   {SeqIdx{1}, TokIdx{0}, 16, BlockIdx{3}, 0, false},
                   {SeqIdx{1}, TokIdx{40}, 2, BlockIdx{5}, 8, false},
                   {SeqIdx{1}, TokIdx{32}, 4, BlockIdx{5}, 0, false}};
  EXPECT_THAT(written_runs(marks),
              ElementsAre(WrittenRun{SeqIdx{0}, 32, 33}, WrittenRun{SeqIdx{1}, 0, 36}, WrittenRun{SeqIdx{1}, 40, 42}));
}

// According to the scenario's description, step 6 stores token 154, whose query sees tokens 115 to 154.
TEST(LeftBehind, IsWhatTheWindowHasPassed) {
  Staged staged(gallery_run("sliding_window"));
  staged.cursor.seek_row(7);
  const SequenceRow row = sequence_row(staged.scene, SeqIdx{0});
  EXPECT_EQ(row.tokens, 155);
  EXPECT_EQ(row.behind, 115);
  Facts facts = staged.scene.facts();
  EXPECT_EQ(left_behind(facts, 0), 0);
  EXPECT_EQ(left_behind(facts, 40), 0);
  EXPECT_EQ(left_behind(facts, 41), 1);
  facts.scenario->attention.mask = MaskKind::chunked;  // of 40
  EXPECT_EQ(left_behind(facts, 40), 0) << "token 39 is the last of its chunk and sees all of it";
  EXPECT_EQ(left_behind(facts, 41), 40);
  EXPECT_EQ(left_behind(facts, 155), 120);
  facts.scenario->attention.mask = MaskKind::causal;
  EXPECT_EQ(left_behind(facts, 155), 0);
  facts.scenario.reset();
  EXPECT_EQ(left_behind(facts, 155), 0) << "without a scenario the mask is unknown";
}

TEST(PageTokens, AreThoseOfThatPage) {
  SequenceRow row;
  row.tokens = 37;
  EXPECT_EQ(page_tokens(row, 0, 16), 16);
  EXPECT_EQ(page_tokens(row, 2, 16), 5);
  EXPECT_EQ(page_tokens(row, 3, 16), 0);
}

}  // namespace
}  // namespace kvscope::viz::sequences_content_test
