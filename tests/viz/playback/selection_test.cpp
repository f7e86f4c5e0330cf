#include "viz/playback/selection.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <utility>

#include "tests/viz/playback/support.h"

namespace kvscope::viz::selection_test {
namespace {

using namespace testing_support;

// Sequence 3 holds blocks 2, 6 and 5; sequence 1 shares the first one and also holds block 0; block 4 is cached;
// sequence 2 waits, sequence 0 has finished, sequence 4 never arrives.
class Selecting : public testing::Test {
 protected:
  Selecting() {
    for (const trace::Event& event : std::vector<trace::Event>{
             trace::StepBegan{StepIdx{0}, 0},
             trace::RequestArrived{SeqIdx{0}, 4, 1},
             trace::RequestAdmitted{SeqIdx{0}, 0},
             trace::BlockAllocated{BlockIdx{4}, SeqIdx{0}, PageIdx{0}},
             trace::TokensWritten{SeqIdx{0}, TokIdx{0}, 4, BlockIdx{4}, 0, false},
             trace::RequestArrived{SeqIdx{3}, 10, 5},
             trace::RequestAdmitted{SeqIdx{3}, 0},
             trace::BlockAllocated{BlockIdx{2}, SeqIdx{3}, PageIdx{0}},
             trace::BlockAllocated{BlockIdx{6}, SeqIdx{3}, PageIdx{1}},
             trace::BlockAllocated{BlockIdx{5}, SeqIdx{3}, PageIdx{2}},
             trace::TokensWritten{SeqIdx{3}, TokIdx{0}, 4, BlockIdx{2}, 0, false},
             trace::TokensWritten{SeqIdx{3}, TokIdx{4}, 4, BlockIdx{6}, 0, false},
             trace::TokensWritten{SeqIdx{3}, TokIdx{8}, 2, BlockIdx{5}, 0, false},
             trace::RequestArrived{SeqIdx{1}, 6, 1},
             trace::RequestAdmitted{SeqIdx{1}, 4},
             trace::BlockShared{BlockIdx{2}, SeqIdx{1}, PageIdx{0}, 2},
             trace::BlockAllocated{BlockIdx{0}, SeqIdx{1}, PageIdx{1}},
             trace::TokensWritten{SeqIdx{1}, TokIdx{4}, 1, BlockIdx{0}, 0, false},
             trace::RequestArrived{SeqIdx{2}, 1, 0},
             trace::RequestFinished{SeqIdx{0}, 5},
         }) {
      apply(state, facts, event);
    }
    just_finished = state;
    apply(state, facts, trace::BlockReleased{BlockIdx{4}, SeqIdx{0}, PageIdx{0}, 0, true});
  }

  [[nodiscard]] Lit lit(const Selection& selection) const { return resolve(state, facts, selection); }
  [[nodiscard]] std::string said(const Selection& selection) const { return describe(state, facts, selection); }

  Facts facts = small_facts();
  State state = empty_state(facts);
  State just_finished;  // sequence 0 has not released its block yet
};

// A damaged session can have any pages: 10^18 of them were visited one by one, and those before page 0 too.
TEST_F(Selecting, FlowTileOfAnyPagesLightsThoseOfTheTable) {
  Selection tile = of_flow_tile(SeqIdx{3}, 0, TokIdx{0}, TokIdx{8}, 4);
  const Lit two = lit(tile);
  EXPECT_EQ(two.blocks, (std::vector<BlockIdx>{BlockIdx{2}, BlockIdx{6}}));
  tile.end_page = PageIdx{6};
  const Lit all = lit(tile);
  EXPECT_EQ(all.places.size(), 6U);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const auto& [first, end] : {std::pair<std::int64_t, std::int64_t>{0, kMost}, {-kMost, 6}, {-kMost - 1, kMost}}) {
    tile.page = PageIdx{first};
    tile.end_page = PageIdx{end};
    EXPECT_EQ(lit(tile), all) << first << ' ' << end;
  }
  for (const auto& [first, end] : {std::pair<std::int64_t, std::int64_t>{6, kMost}, {kMost, -kMost}, {3, 3}, {-9, 0}}) {
    tile.page = PageIdx{first};
    tile.end_page = PageIdx{end};
    EXPECT_EQ(lit(tile), Lit{}) << first << ' ' << end;
  }
}

TEST_F(Selecting, TokenLightsItsPageItsBlockItsSlotAndItsCell) {
  Lit expected;
  expected.seq = SeqIdx{3};
  expected.token = TokIdx{9};
  expected.page = PageIdx{2};
  expected.block = BlockIdx{5};
  expected.slot = 1;
  expected.places = {{SeqIdx{3}, PageIdx{2}}};
  expected.blocks = {BlockIdx{5}};
  EXPECT_EQ(lit(of_token(SeqIdx{3}, TokIdx{9})), expected);
}

TEST_F(Selecting, BlockLightsEveryPageItStandsFor) {
  Lit expected;
  expected.block = BlockIdx{2};
  expected.places = {{SeqIdx{1}, PageIdx{0}}, {SeqIdx{3}, PageIdx{0}}};
  expected.blocks = {BlockIdx{2}};
  EXPECT_EQ(lit(of_block(BlockIdx{2})), expected);
}

TEST_F(Selecting, BlockOfOneSequenceNamesItAndItsPage) {
  const Lit one = lit(of_block(BlockIdx{6}));
  EXPECT_EQ(one.seq, SeqIdx{3});
  EXPECT_EQ(one.page, PageIdx{1});
  EXPECT_EQ(one.places, (std::vector<TablePlace>{{SeqIdx{3}, PageIdx{1}}}));
}

TEST_F(Selecting, SequenceLightsAllItsPagesAndBlocksInOrder) {
  Lit expected;
  expected.seq = SeqIdx{3};
  expected.places = {{SeqIdx{3}, PageIdx{0}}, {SeqIdx{3}, PageIdx{1}}, {SeqIdx{3}, PageIdx{2}}};
  expected.blocks = {BlockIdx{2}, BlockIdx{5}, BlockIdx{6}};
  EXPECT_EQ(lit(of_sequence(SeqIdx{3})), expected);
}

// A cell of the lookup table after the last page points at the null page, which a kernel would read.
TEST_F(Selecting, UnusedCellOfTheTableLightsTheNullPage) {
  const Lit padding = lit(of_page(SeqIdx{3}, PageIdx{3}));
  EXPECT_EQ(padding.block, BlockIdx{8});
  EXPECT_EQ(padding.blocks, std::vector{BlockIdx{8}});
  EXPECT_EQ(padding.places, (std::vector<TablePlace>{{SeqIdx{3}, PageIdx{3}}}));
  EXPECT_EQ(lit(of_page(SeqIdx{3}, PageIdx{5})).block, BlockIdx{8});
  EXPECT_EQ(lit(of_page(SeqIdx{3}, PageIdx{6})), Lit{});  // the table has 6 columns
}

// With the facts of another run with a narrower table, nothing outside this table is read.
TEST_F(Selecting, TokenPastTheTableLightsNothing) {
  facts.table_columns = 2;
  EXPECT_EQ(lit(of_token(SeqIdx{3}, TokIdx{9})), Lit{});
  EXPECT_EQ(said(of_token(SeqIdx{3}, TokIdx{9})), "Sequence 3, token 9: not in the cache");
  EXPECT_EQ(lit(of_token(SeqIdx{3}, TokIdx{7})).block, BlockIdx{6});
}

TEST_F(Selecting, BlocksWithoutHoldersHighlightOnlyThemselves) {
  for (const std::int64_t number : {1, 4, 8}) {  // free, cached, null page
    Lit expected;
    expected.block = BlockIdx{number};
    expected.blocks = {BlockIdx{number}};
    EXPECT_EQ(lit(of_block(BlockIdx{number})), expected) << number;
  }
}

TEST_F(Selecting, ObjectsThatDoNotExistNowHighlightNothing) {
  for (const Selection& gone :
       {Selection{}, of_step(StepIdx{0}), of_sequence(SeqIdx{0}), of_sequence(SeqIdx{4}), of_sequence(SeqIdx{5}),
        of_sequence(SeqIdx{-1}), of_page(SeqIdx{0}, PageIdx{0}), of_page(SeqIdx{3}, PageIdx{-1}),
        of_token(SeqIdx{3}, TokIdx{10}), of_token(SeqIdx{3}, TokIdx{-1}), of_token(SeqIdx{9}, TokIdx{0}),
        of_token(SeqIdx{2}, TokIdx{0}), of_block(BlockIdx{9}), of_block(BlockIdx{-1})}) {
    EXPECT_EQ(lit(gone), Lit{}) << said(gone);
  }
  EXPECT_EQ(lit(of_sequence(SeqIdx{2})).seq, SeqIdx{2});  // it waits: its row exists
}

// Between its end and its last release a sequence still holds blocks, though it is no longer among the live ones.
TEST_F(Selecting, FinishedSequenceLightsWhatItHasNotGivenBackYet) {
  EXPECT_EQ(resolve(just_finished, facts, of_sequence(SeqIdx{0})).blocks, std::vector{BlockIdx{4}});
  EXPECT_EQ(resolve(just_finished, facts, of_block(BlockIdx{4})).seq, SeqIdx{0});
  EXPECT_EQ(describe(just_finished, facts, of_block(BlockIdx{4})),
            "Block 4: page 0 of sequence 0, 4 of 4 slots filled");
}

TEST_F(Selecting, IsDescribedInOneSentence) {
  EXPECT_EQ(said(of_token(SeqIdx{3}, TokIdx{1})),
            "Sequence 3, token 1: page 0, slot 1 of block 2, shared by 2 sequences");
  EXPECT_EQ(said(of_token(SeqIdx{3}, TokIdx{9})), "Sequence 3, token 9: page 2, slot 1 of block 5");
  EXPECT_EQ(said(of_token(SeqIdx{3}, TokIdx{10})), "Sequence 3, token 10: not in the cache");
  EXPECT_EQ(said(of_page(SeqIdx{3}, PageIdx{2})), "Sequence 3, page 2: block 5, 2 of 4 slots filled");
  EXPECT_EQ(said(of_page(SeqIdx{1}, PageIdx{0})),
            "Sequence 1, page 0: block 2, 4 of 4 slots filled, shared by 2 sequences");
  EXPECT_EQ(said(of_page(SeqIdx{3}, PageIdx{4})),
            "Sequence 3, page 4: not assigned, its entry points at the null page, block 8");
  EXPECT_EQ(said(of_page(SeqIdx{0}, PageIdx{0})), "Sequence 0, page 0: no such page now");
  EXPECT_EQ(said(of_block(BlockIdx{2})), "Block 2: page 0 of sequence 3, 4 of 4 slots filled, shared by 2 sequences");
  EXPECT_EQ(said(of_block(BlockIdx{4})), "Block 4: cached, page 0 of sequence 0, 4 of 4 slots filled");
  EXPECT_EQ(said(of_block(BlockIdx{7})), "Block 7: free");
  EXPECT_EQ(said(of_block(BlockIdx{8})), "Block 8: the null page, which unused entries of the lookup table point at");
  EXPECT_EQ(said(of_block(BlockIdx{9})), "Block 9: not in this pool");
  EXPECT_EQ(said(of_step(StepIdx{12})), "Step 12");
  EXPECT_EQ(said({}), "");
}

TEST_F(Selecting, DescriptionsOfSequencesHaveTheirProgress) {
  EXPECT_EQ(said(of_sequence(SeqIdx{3})),
            "Sequence 3: running, 10 tokens in 3 pages, prompt of 10 tokens, 5 to generate");
  EXPECT_EQ(said(of_sequence(SeqIdx{2})), "Sequence 2: waiting, prompt of 1 token, 0 to generate");
  EXPECT_EQ(said(of_sequence(SeqIdx{0})), "Sequence 0: finished");
  EXPECT_EQ(said(of_sequence(SeqIdx{4})), "Sequence 4: has not arrived");
  EXPECT_EQ(said(of_sequence(SeqIdx{5})), "Sequence 5: not in this run");
  apply(state, facts, trace::RequestPreempted{SeqIdx{3}, 10});
  EXPECT_EQ(said(of_sequence(SeqIdx{3})),
            "Sequence 3: preempted 1 time, waiting to be computed again, prompt of 10 tokens, 5 to generate");
  apply(state, facts, trace::RequestRefused{SeqIdx{2}, 99, 32});
  EXPECT_EQ(said(of_sequence(SeqIdx{2})),
            "Sequence 2: rejected, because it can never fit, prompt of 1 token, 0 to generate");
}

TEST_F(Selecting, BlocksOfATraceOfStepsAreUnknown) {
  facts.detail = trace::Detail::steps;
  EXPECT_EQ(said(of_block(BlockIdx{2})), "Block 2: unknown, because the trace has events of steps only");
  EXPECT_EQ(said(of_block(BlockIdx{8})), "Block 8: the null page, which unused entries of the lookup table point at");
}

// For whole runs: a page is highlighted with its block, its sequence and its tokens, and with no other object.
TEST(Selection, LightsTheSameFromEveryPanel) {
  ASSERT_TRUE(rc::check([] {
    const Recorded recorded = *crowded_runs();
    const auto run = recorded.open();
    const Facts& of = run->facts();
    const State state = run->state_at(Position{*rc::gen::inRange<std::int64_t>(0, of.events + 1)});
    std::map<std::int64_t, std::vector<TablePlace>> by_block;
    for (SeqIdx seq{0}; seq.value < of.sequences; ++seq) {
      const PageTable& pages = state.sequences[seq.value].pages;
      std::vector<TablePlace> places;
      for (PageIdx page{0}; page.value < pages.size(); ++page) {
        if (pages[page.value] < 0) continue;
        places.push_back({seq, page});
        by_block[pages[page.value]].push_back({seq, page});
        RC_ASSERT(resolve(state, of, of_page(seq, page)).block == BlockIdx{pages[page.value]});
      }
      RC_ASSERT(resolve(state, of, of_sequence(seq)).places == places);
      for (TokIdx token{0}; token.value < state.sequences[seq.value].tokens; ++token) {
        const Lit lit = resolve(state, of, of_token(seq, token));
        RC_ASSERT(lit.places == (std::vector<TablePlace>{{seq, PageIdx{token.value / of.page_size}}}));
        RC_ASSERT(*lit.slot == token.value % of.page_size);
        RC_ASSERT(lit.block == BlockIdx{pages[token.value / of.page_size]});
      }
    }
    for (BlockIdx block{0}; block.value < of.blocks; ++block) {
      RC_ASSERT(resolve(state, of, of_block(block)).places == by_block[block.value]);
    }
  }));
}

}  // namespace
}  // namespace kvscope::viz::selection_test
