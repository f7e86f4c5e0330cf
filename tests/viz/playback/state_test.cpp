// The effect of each event on the state, and the events that a state rejects.
#include "viz/playback/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/errors.h"
#include "tests/viz/playback/support.h"

namespace kvscope::viz::state_test {
namespace {

using namespace testing_support;
using trace::BlockAllocated;
using trace::BlockCopied;
using trace::BlockEvicted;
using trace::BlockReleased;
using trace::BlockShared;
using trace::RequestAdmitted;
using trace::RequestArrived;
using trace::RequestFinished;
using trace::RequestPreempted;
using trace::RequestRefused;
using trace::StepBegan;
using trace::StepEnded;
using trace::TokensWritten;

// Blocks of 4 tokens, 8 of them; sequences 0 to 4.
class Fold : public testing::Test {
 protected:
  void run(const std::vector<trace::Event>& events) {
    for (const trace::Event& event : events) apply(state, facts, event);
  }
  // The message for a rejected event; the state must be unchanged.
  std::string rejected(const trace::Event& event) {
    const State before = state;
    try {
      apply(state, facts, event);
    } catch (const InputError& error) {
      EXPECT_EQ(state, before) << error.what();
      EXPECT_EQ(error.source(), "trace");
      EXPECT_EQ(error.faults().front().where, "event");
      return error.faults().front().message;
    }
    return "taken";
  }
  const BlockState& block(std::int64_t number) const { return state.blocks[number]; }
  const SequenceState& seq(std::int64_t number) const { return state.sequences[number]; }

  Facts facts = small_facts();
  State state = empty_state(facts);
};

// Sequence 0 has 6 tokens in blocks 7 and 3.
const std::vector<trace::Event> kSixTokens{
    StepBegan{StepIdx{0}, 0},
    RequestArrived{SeqIdx{0}, 6, 3},
    RequestAdmitted{SeqIdx{0}, 0},
    BlockAllocated{BlockIdx{7}, SeqIdx{0}, PageIdx{0}},
    BlockAllocated{BlockIdx{3}, SeqIdx{0}, PageIdx{1}},
    TokensWritten{SeqIdx{0}, TokIdx{0}, 4, BlockIdx{7}, 0, false},
    TokensWritten{SeqIdx{0}, TokIdx{4}, 2, BlockIdx{3}, 0, false},
};

TEST_F(Fold, TokensFillTheBlocksOfTheirPages) {
  run(kSixTokens);
  EXPECT_EQ(block(7), (BlockState{0, 0, 1, 4, false}));
  EXPECT_EQ(block(3), (BlockState{0, 1, 1, 2, false}));
  EXPECT_EQ(seq(0).tokens, 6);
  EXPECT_EQ(seq(0).pages.size(), 2);
  EXPECT_EQ(seq(0).pages[0], 7);
  EXPECT_EQ(seq(0).pages[1], 3);
  EXPECT_EQ(seq(0).pages[2], -1);
  EXPECT_EQ(state.used_blocks, 2);
  EXPECT_EQ(state.free_blocks(), 6);
  EXPECT_TRUE(state.in_step);
}

// A sample holds the parent's pages, the partly filled one too; its first own token moves that page into a copy.
TEST_F(Fold, CopyOnWriteLeavesTheOldBlockToTheOthers) {
  run(kSixTokens);
  run({RequestArrived{SeqIdx{1}, 6, 3}, RequestAdmitted{SeqIdx{1}, 6},
       BlockShared{BlockIdx{7}, SeqIdx{1}, PageIdx{0}, 2}, BlockShared{BlockIdx{3}, SeqIdx{1}, PageIdx{1}, 2}});
  EXPECT_EQ(seq(1).tokens, 6);
  EXPECT_EQ(seq(1).hit_tokens, 6);
  EXPECT_EQ(block(3), (BlockState{0, 1, 2, 2, false}));
  EXPECT_EQ(state.used_blocks, 2);

  // The owner moves out: the block is the other's now.
  run({BlockCopied{BlockIdx{3}, BlockIdx{0}, SeqIdx{0}, PageIdx{1}, 2}});
  EXPECT_EQ(block(0), (BlockState{0, 1, 1, 2, false}));
  EXPECT_EQ(block(3), (BlockState{1, 1, 1, 2, false}));
  EXPECT_EQ(seq(0).pages[1], 0);
  EXPECT_EQ(seq(0).tokens, 6);
  EXPECT_EQ(state.used_blocks, 3);
}

// The block's owner, which gives its color and name, becomes the lowest-numbered sequence that still holds it.
TEST_F(Fold, BlockPassesFromItsOwnerToTheLowestThatHoldsIt) {
  run(kSixTokens);
  for (const std::int64_t other : {4, 2}) {
    run({RequestArrived{SeqIdx{other}, 5, 1}, RequestAdmitted{SeqIdx{other}, 4},
         BlockShared{BlockIdx{7}, SeqIdx{other}, PageIdx{0}, other == 4 ? 2 : 3}});
  }
  EXPECT_EQ(block(7).owner, 0);
  run({RequestFinished{SeqIdx{0}, 9}, BlockReleased{BlockIdx{3}, SeqIdx{0}, PageIdx{1}, 0, false},
       BlockReleased{BlockIdx{7}, SeqIdx{0}, PageIdx{0}, 2, false}});
  EXPECT_EQ(block(7), (BlockState{2, 0, 2, 4, false}));
  EXPECT_EQ(block(3), BlockState{});
  run({BlockReleased{BlockIdx{7}, SeqIdx{2}, PageIdx{0}, 1, false}});
  EXPECT_EQ(block(7).owner, 4);
}

TEST_F(Fold, CachedBlockKeepsItsContentUntilItIsFoundOrEvicted) {
  run(kSixTokens);
  run({RequestPreempted{SeqIdx{0}, 6}, BlockReleased{BlockIdx{3}, SeqIdx{0}, PageIdx{1}, 0, false}});
  EXPECT_EQ(seq(0).tokens, 4);
  run({BlockReleased{BlockIdx{7}, SeqIdx{0}, PageIdx{0}, 0, true}});
  EXPECT_EQ(block(7), (BlockState{0, 0, 0, 4, true}));
  EXPECT_EQ(seq(0).tokens, 0);
  EXPECT_EQ(seq(0).pages, PageTable{});
  EXPECT_EQ(state.used_blocks, 0);
  EXPECT_EQ(state.cached_blocks, 1);
  EXPECT_EQ(state.free_blocks(), 7);

  const State cached = state;
  run({RequestArrived{SeqIdx{1}, 5, 1}, RequestAdmitted{SeqIdx{1}, 4},
       BlockShared{BlockIdx{7}, SeqIdx{1}, PageIdx{0}, 1}});
  EXPECT_EQ(block(7), (BlockState{1, 0, 1, 4, false}));
  EXPECT_EQ(seq(1).tokens, 4);
  EXPECT_EQ(state.used_blocks, 1);
  EXPECT_EQ(state.cached_blocks, 0);

  state = cached;
  run({BlockEvicted{BlockIdx{7}}});
  EXPECT_EQ(block(7), BlockState{});
  EXPECT_EQ(state.cached_blocks, 0);
}

TEST_F(Fold, SequencesLiveFromArrivalToTheirEnd) {
  const auto live = [&] { return state.live; };
  run({StepBegan{StepIdx{0}, 5}, RequestArrived{SeqIdx{3}, 6, 3}, RequestArrived{SeqIdx{1}, 2, 1},
       RequestArrived{SeqIdx{2}, 900, 1}, RequestRefused{SeqIdx{2}, 900, 32}});
  EXPECT_EQ(live(), (std::vector{SeqIdx{1}, SeqIdx{3}}));
  EXPECT_EQ(seq(2).phase, Phase::refused);
  EXPECT_EQ(seq(0).phase, Phase::absent);
  run({RequestAdmitted{SeqIdx{1}, 0}, RequestAdmitted{SeqIdx{3}, 0}});
  EXPECT_EQ(seq(3).phase, Phase::running);
  run({RequestPreempted{SeqIdx{3}, 0}});
  EXPECT_EQ(seq(3).phase, Phase::preempted);
  EXPECT_EQ(seq(3).preemptions, 1);
  EXPECT_EQ(live(), (std::vector{SeqIdx{1}, SeqIdx{3}}));
  run({RequestFinished{SeqIdx{1}, 3}, RequestAdmitted{SeqIdx{3}, 0}});
  EXPECT_EQ(live(), (std::vector{SeqIdx{3}}));
  EXPECT_EQ(seq(1).phase, Phase::finished);
  EXPECT_EQ(seq(3).phase, Phase::running);
  EXPECT_EQ(seq(3).prompt_tokens, 6);
  EXPECT_EQ(seq(3).generate_tokens, 3);
}

// The prefix hits of an admission are lost with the blocks.
TEST_F(Fold, PreemptionForgetsWhatWasFound) {
  run({RequestArrived{SeqIdx{1}, 9, 1}, RequestAdmitted{SeqIdx{1}, 8}});
  EXPECT_EQ(seq(1).hit_tokens, 8);
  run({RequestPreempted{SeqIdx{1}, 8}});
  EXPECT_EQ(seq(1).hit_tokens, 0);
}

// A trace may begin in the middle of a run, or have only events of blocks.
TEST_F(Fold, SequenceWithoutArrivalRuns) {
  run({BlockAllocated{BlockIdx{5}, SeqIdx{2}, PageIdx{0}},
       TokensWritten{SeqIdx{2}, TokIdx{0}, 3, BlockIdx{5}, 0, false}});
  EXPECT_EQ(seq(2).phase, Phase::running);
  EXPECT_EQ(seq(2).prompt_tokens, 0);
  EXPECT_EQ(state.live, std::vector{SeqIdx{2}});
  EXPECT_EQ(rejected(RequestArrived{SeqIdx{2}, 3, 1}),
            "request_arrived seq=2 prompt_tokens=3 generate_tokens=1: sequence 2 is running");
}

// After a release of a page in the middle, the tokens that are reachable from the first one end there.
TEST_F(Fold, ReleaseInTheMiddleCutsTheSequenceThere) {
  run(kSixTokens);
  run({BlockReleased{BlockIdx{7}, SeqIdx{0}, PageIdx{0}, 0, false}});
  EXPECT_EQ(seq(0).tokens, 0);
  EXPECT_EQ(seq(0).pages.size(), 2);
  EXPECT_EQ(seq(0).pages[0], -1);
  run({BlockReleased{BlockIdx{3}, SeqIdx{0}, PageIdx{1}, 0, false}});
  EXPECT_EQ(seq(0).pages.size(), 0);
}

// An engine does not do this, but it is consistent: fewer tokens are copied than the block has.
TEST_F(Fold, CopyOfAPartKeepsThePart) {
  run(kSixTokens);
  run({BlockShared{BlockIdx{7}, SeqIdx{1}, PageIdx{0}, 2}});
  run({BlockCopied{BlockIdx{7}, BlockIdx{1}, SeqIdx{0}, PageIdx{0}, 3}});
  EXPECT_EQ(block(1).filled, 3);
  EXPECT_EQ(seq(0).tokens, 3);
  EXPECT_EQ(seq(1).tokens, 4);
}

TEST_F(Fold, TokensMayBeWrittenAgain) {
  run(kSixTokens);
  run({TokensWritten{SeqIdx{0}, TokIdx{4}, 1, BlockIdx{3}, 0, true}});
  EXPECT_EQ(block(3).filled, 2);
  EXPECT_EQ(seq(0).tokens, 6);
}

// A trace of detail `steps` has no block events: the counts are those of step_ended.
TEST_F(Fold, WithoutBlockEventsTheCountsAreTheStepsOwn) {
  facts.detail = trace::Detail::steps;
  run({StepBegan{StepIdx{0}, 0}, RequestArrived{SeqIdx{0}, 6, 3}, RequestAdmitted{SeqIdx{0}, 4}});
  StepEnded ended{StepIdx{0}, 7};
  ended.used_blocks = 5;
  ended.cached_blocks = 2;
  run({ended});
  EXPECT_EQ(state.used_blocks, 5);
  EXPECT_EQ(state.cached_blocks, 2);
  EXPECT_EQ(state.free_blocks(), 1);
  EXPECT_EQ(block(0), BlockState{});
  EXPECT_EQ(seq(0).tokens, 0);
  EXPECT_EQ(seq(0).hit_tokens, 4);
  EXPECT_EQ(rejected(BlockEvicted{BlockIdx{1}}), "block_evicted block=1: a trace of detail 'steps' has none of these");
  run({StepBegan{StepIdx{1}, 7}});
  ended.step = StepIdx{1};
  for (const auto& [used, cached] : {std::pair{7, 2}, {9, 0}, {-1, 2}, {5, -1}}) {
    ended.used_blocks = used;
    ended.cached_blocks = cached;
    EXPECT_THAT(rejected(ended), testing::EndsWith("finished=0: the pool has 8 blocks"));
  }
}

// --- events that contradict the state --------------------------------------------------------------------------------

TEST_F(Fold, StepsFollowOneAnotherAndTheClockNeverGoesBack) {
  EXPECT_THAT(rejected(StepEnded{StepIdx{0}, 0}), testing::EndsWith("finished=0: no step has begun"));
  run({StepBegan{StepIdx{4}, 100}});
  EXPECT_EQ(rejected(StepBegan{StepIdx{5}, 100}), "step_began step=5 time_us=100: step 4 has not ended");
  EXPECT_THAT(rejected(StepEnded{StepIdx{3}, 100}), testing::EndsWith("finished=0: step 4 has begun"));
  EXPECT_THAT(rejected(StepEnded{StepIdx{4}, 99}), testing::EndsWith("finished=0: the clock is already at 100 us"));
  run({StepEnded{StepIdx{4}, 120}});
  EXPECT_EQ(rejected(StepBegan{StepIdx{4}, 120}), "step_began step=4 time_us=120: it must come after step 4");
  EXPECT_EQ(rejected(StepBegan{StepIdx{5}, 119}), "step_began step=5 time_us=119: the clock is already at 120 us");
  EXPECT_EQ(rejected(StepBegan{StepIdx{9}, 120}), "taken");
}

TEST_F(Fold, RequestsLiveInOrder) {
  EXPECT_EQ(rejected(RequestArrived{SeqIdx{5}, 1, 1}),
            "request_arrived seq=5 prompt_tokens=1 generate_tokens=1: sequences are numbered [0, 5)");
  EXPECT_EQ(rejected(RequestAdmitted{SeqIdx{-1}, 0}),
            "request_admitted seq=-1 hit_tokens=0: sequences are numbered [0, 5)");
  EXPECT_EQ(rejected(RequestFinished{SeqIdx{0}, 1}), "request_finished seq=0 tokens=1: sequence 0 has not arrived");
  EXPECT_EQ(rejected(RequestArrived{SeqIdx{0}, -1, 0}),
            "request_arrived seq=0 prompt_tokens=-1 generate_tokens=0: a number of tokens must be at least 0");
  run({RequestArrived{SeqIdx{0}, 1, 1}});
  EXPECT_EQ(rejected(RequestArrived{SeqIdx{0}, 1, 1}),
            "request_arrived seq=0 prompt_tokens=1 generate_tokens=1: sequence 0 is waiting");
  EXPECT_EQ(rejected(RequestPreempted{SeqIdx{0}, 1}), "request_preempted seq=0 tokens_lost=1: sequence 0 is waiting");
  EXPECT_EQ(rejected(BlockAllocated{BlockIdx{0}, SeqIdx{0}, PageIdx{0}}),
            "block_allocated block=0 seq=0 page=0: sequence 0 is waiting");
  EXPECT_EQ(rejected(RequestAdmitted{SeqIdx{0}, -4}),
            "request_admitted seq=0 hit_tokens=-4: a number of tokens must be at least 0");
  run({RequestAdmitted{SeqIdx{0}, 0}});
  EXPECT_EQ(rejected(RequestAdmitted{SeqIdx{0}, 0}), "request_admitted seq=0 hit_tokens=0: sequence 0 is running");
  EXPECT_EQ(rejected(RequestRefused{SeqIdx{0}, 9, 8}), "request_refused seq=0 tokens=9 limit=8: sequence 0 is running");
  run({RequestPreempted{SeqIdx{0}, 0}});
  EXPECT_EQ(rejected(RequestPreempted{SeqIdx{0}, 0}), "request_preempted seq=0 tokens_lost=0: sequence 0 is preempted");
  run({RequestAdmitted{SeqIdx{0}, 0}, RequestFinished{SeqIdx{0}, 2}});
  EXPECT_EQ(rejected(RequestAdmitted{SeqIdx{0}, 0}), "request_admitted seq=0 hit_tokens=0: sequence 0 has finished");
  run({RequestArrived{SeqIdx{1}, 1, 1}, RequestRefused{SeqIdx{1}, 9, 8}});
  EXPECT_EQ(rejected(RequestAdmitted{SeqIdx{1}, 0}), "request_admitted seq=1 hit_tokens=0: sequence 1 was rejected");
}

TEST_F(Fold, OnlyAFreeBlockIsAllocatedAndPagesComeInOrder) {
  run(kSixTokens);
  EXPECT_EQ(rejected(BlockAllocated{BlockIdx{8}, SeqIdx{0}, PageIdx{2}}),
            "block_allocated block=8 seq=0 page=2: the pool's blocks are numbered [0, 8)");
  EXPECT_EQ(rejected(BlockAllocated{BlockIdx{-1}, SeqIdx{0}, PageIdx{2}}),
            "block_allocated block=-1 seq=0 page=2: the pool's blocks are numbered [0, 8)");
  EXPECT_EQ(rejected(BlockAllocated{BlockIdx{3}, SeqIdx{1}, PageIdx{0}}),
            "block_allocated block=3 seq=1 page=0: block 3 is page 1 of sequence 0");
  EXPECT_EQ(rejected(BlockAllocated{BlockIdx{0}, SeqIdx{0}, PageIdx{3}}),
            "block_allocated block=0 seq=0 page=3: the next page of sequence 0 is 2");
  EXPECT_EQ(rejected(BlockAllocated{BlockIdx{0}, SeqIdx{0}, PageIdx{-1}}),
            "block_allocated block=0 seq=0 page=-1: the next page of sequence 0 is 2");
  EXPECT_EQ(rejected(BlockAllocated{BlockIdx{0}, SeqIdx{0}, PageIdx{1}}),
            "block_allocated block=0 seq=0 page=1: page 1 of sequence 0 is in block 3");
  run({BlockReleased{BlockIdx{3}, SeqIdx{0}, PageIdx{1}, 0, true}});
  EXPECT_EQ(rejected(BlockAllocated{BlockIdx{3}, SeqIdx{0}, PageIdx{1}}),
            "block_allocated block=3 seq=0 page=1: block 3 is cached, and was not evicted");
}

TEST_F(Fold, OnlyContentIsSharedAndOnlyAsTheSamePage) {
  run(kSixTokens);
  EXPECT_EQ(rejected(BlockShared{BlockIdx{0}, SeqIdx{1}, PageIdx{0}, 1}),
            "block_shared block=0 seq=1 page=0 ref_count=1: block 0 is free: it has no content to share");
  EXPECT_EQ(rejected(BlockShared{BlockIdx{3}, SeqIdx{1}, PageIdx{0}, 2}),
            "block_shared block=3 seq=1 page=0 ref_count=2: block 3 holds page 1");
  EXPECT_EQ(rejected(BlockShared{BlockIdx{7}, SeqIdx{1}, PageIdx{0}, 3}),
            "block_shared block=7 seq=1 page=0 ref_count=3: block 7 had reference count 1 before");
  EXPECT_EQ(rejected(BlockShared{BlockIdx{3}, SeqIdx{1}, PageIdx{1}, 2}),
            "block_shared block=3 seq=1 page=1 ref_count=2: the next page of sequence 1 is 0");
  EXPECT_EQ(rejected(BlockShared{BlockIdx{7}, SeqIdx{0}, PageIdx{0}, 2}),
            "block_shared block=7 seq=0 page=0 ref_count=2: page 0 of sequence 0 is in block 7");
}

TEST_F(Fold, CopyGoesFromASharedBlockOfTheSequenceIntoAFreeOne) {
  run(kSixTokens);
  EXPECT_EQ(rejected(BlockCopied{BlockIdx{3}, BlockIdx{0}, SeqIdx{0}, PageIdx{1}, 2}),
            "block_copied from=3 to=0 seq=0 page=1 tokens=2: no other sequence holds block 3");
  run({BlockShared{BlockIdx{7}, SeqIdx{1}, PageIdx{0}, 2}, BlockShared{BlockIdx{3}, SeqIdx{1}, PageIdx{1}, 2}});
  EXPECT_EQ(rejected(BlockCopied{BlockIdx{7}, BlockIdx{0}, SeqIdx{1}, PageIdx{1}, 2}),
            "block_copied from=7 to=0 seq=1 page=1 tokens=2: page 1 of sequence 1 is not in block 7");
  EXPECT_EQ(rejected(BlockCopied{BlockIdx{3}, BlockIdx{3}, SeqIdx{1}, PageIdx{1}, 2}),
            "block_copied from=3 to=3 seq=1 page=1 tokens=2: block 3 is page 1 of sequence 0");
  EXPECT_EQ(rejected(BlockCopied{BlockIdx{3}, BlockIdx{8}, SeqIdx{1}, PageIdx{1}, 2}),
            "block_copied from=3 to=8 seq=1 page=1 tokens=2: the pool's blocks are numbered [0, 8)");
  EXPECT_EQ(rejected(BlockCopied{BlockIdx{3}, BlockIdx{0}, SeqIdx{1}, PageIdx{1}, 3}),
            "block_copied from=3 to=0 seq=1 page=1 tokens=3: block 3 holds 2 tokens");
}

TEST_F(Fold, OnlyWhatIsHeldIsReleasedAndOnlyWhatIsCachedIsEvicted) {
  run(kSixTokens);
  EXPECT_EQ(rejected(BlockReleased{BlockIdx{3}, SeqIdx{0}, PageIdx{0}, 0, false}),
            "block_released block=3 seq=0 page=0 ref_count=0 cached=0: page 0 of sequence 0 is not in block 3");
  EXPECT_EQ(rejected(BlockReleased{BlockIdx{3}, SeqIdx{1}, PageIdx{1}, 0, false}),
            "block_released block=3 seq=1 page=1 ref_count=0 cached=0: page 1 of sequence 1 is not in block 3");
  EXPECT_EQ(rejected(BlockReleased{BlockIdx{-1}, SeqIdx{0}, PageIdx{2}, 0, false}),
            "block_released block=-1 seq=0 page=2 ref_count=0 cached=0: page 2 of sequence 0 is not in block -1");
  EXPECT_EQ(rejected(BlockReleased{BlockIdx{3}, SeqIdx{0}, PageIdx{1}, 1, false}),
            "block_released block=3 seq=0 page=1 ref_count=1 cached=0: block 3 had reference count 1 before");
  EXPECT_EQ(rejected(BlockEvicted{BlockIdx{3}}), "block_evicted block=3: block 3 is not cached");
  EXPECT_EQ(rejected(BlockEvicted{BlockIdx{8}}), "block_evicted block=8: the pool's blocks are numbered [0, 8)");
  run({BlockShared{BlockIdx{7}, SeqIdx{1}, PageIdx{0}, 2}});
  EXPECT_EQ(rejected(BlockReleased{BlockIdx{7}, SeqIdx{0}, PageIdx{0}, 1, true}),
            "block_released block=7 seq=0 page=0 ref_count=1 cached=1: a block that is still held cannot be cached");
}

TEST_F(Fold, TokensFollowTheSequencesAndTheBlocks) {
  run(kSixTokens);
  const auto written = [&](std::int64_t first, std::int64_t tokens, std::int64_t block_number, std::int64_t slot) {
    const std::string message =
        rejected(TokensWritten{SeqIdx{0}, TokIdx{first}, tokens, BlockIdx{block_number}, slot, false});
    const std::size_t why = message.find("decode=0: ");
    return why == std::string::npos ? message : message.substr(why + 10);
  };
  EXPECT_EQ(written(6, 0, 3, 2), "first_token and slot must be at least 0, and tokens at least 1");
  EXPECT_EQ(written(-2, 1, 3, 2), "first_token and slot must be at least 0, and tokens at least 1");
  EXPECT_EQ(written(6, 1, 3, -2), "first_token and slot must be at least 0, and tokens at least 1");
  EXPECT_EQ(written(6, 3, 3, 2), "a block has 4 slots");
  EXPECT_EQ(written(6, std::int64_t{1} << 62, 3, 2), "a block has 4 slots");
  EXPECT_EQ(written(6, 1, 3, 4), "a block has 4 slots");
  EXPECT_EQ(written(6, 1, 3, 1), "token 6 belongs in slot 2");
  EXPECT_EQ(written(6, 1, 7, 2), "page 1 of sequence 0 is not in block 7");
  EXPECT_EQ(written(6, 1, 8, 2), "the pool's blocks are numbered [0, 8)");
  EXPECT_EQ(written(7, 1, 3, 3), "sequence 0 has 6 tokens in the cache");
  run({BlockAllocated{BlockIdx{1}, SeqIdx{0}, PageIdx{2}}});
  EXPECT_EQ(written(8, 1, 1, 0), "sequence 0 has 6 tokens in the cache");
  EXPECT_EQ(written(6, 2, 3, 2), "taken");
}

TEST(PageTable, CopiesShareUntilOneWrites) {
  PageTable a;
  for (std::int32_t page = 0; page < 3; ++page) a.set(page, 10 + page);
  PageTable b = a;
  EXPECT_TRUE(b.shares(a));
  b.set(1, 99);
  EXPECT_FALSE(b.shares(a));
  EXPECT_EQ(a[1], 11);
  EXPECT_EQ(b[1], 99);
  EXPECT_NE(a, b);
  b.set(1, 11);
  EXPECT_EQ(a, b);
}

TEST(PageTable, EndsAtTheLastPageThatIsAssigned) {
  PageTable table;
  table.set(5, -1);
  EXPECT_EQ(table.size(), 0);
  table.set(2, 7);
  EXPECT_EQ(table.size(), 3);
  EXPECT_EQ(table[0], -1);
  EXPECT_EQ(table[3], -1);
  table.set(0, 4);
  table.set(2, -1);
  EXPECT_EQ(table.size(), 1);
  table.set(0, -1);
  EXPECT_EQ(table, PageTable{});
}

}  // namespace
}  // namespace kvscope::viz::state_test
