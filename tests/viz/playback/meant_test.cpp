// What the tile and attention views show: of each kind of selection, and without one.
#include "viz/playback/meant.h"

#include <gtest/gtest.h>

#include "tests/viz/playback/support.h"

namespace kvscope::viz::meant_test {
namespace {

using namespace testing_support;

// Pages of 4. Sequence 1 has 6 tokens in blocks 2 and 5; sequence 3 has 9, shares block 2 and runs too; sequence 0
// waits with 20.
class Meant : public testing::Test {
 protected:
  Meant() {
    for (const trace::Event& event : std::vector<trace::Event>{
             trace::StepBegan{StepIdx{0}, 0},
             trace::RequestArrived{SeqIdx{0}, 20, 1},
             trace::RequestArrived{SeqIdx{1}, 6, 1},
             trace::RequestAdmitted{SeqIdx{1}, 0},
             trace::BlockAllocated{BlockIdx{2}, SeqIdx{1}, PageIdx{0}},
             trace::BlockAllocated{BlockIdx{5}, SeqIdx{1}, PageIdx{1}},
             trace::TokensWritten{SeqIdx{1}, TokIdx{0}, 4, BlockIdx{2}, 0, false},
             trace::TokensWritten{SeqIdx{1}, TokIdx{4}, 2, BlockIdx{5}, 0, false},
             trace::RequestArrived{SeqIdx{3}, 9, 5},
             trace::RequestAdmitted{SeqIdx{3}, 4},
             trace::BlockShared{BlockIdx{2}, SeqIdx{3}, PageIdx{0}, 2},
             trace::BlockAllocated{BlockIdx{6}, SeqIdx{3}, PageIdx{1}},
             trace::BlockAllocated{BlockIdx{7}, SeqIdx{3}, PageIdx{2}},
             trace::TokensWritten{SeqIdx{3}, TokIdx{4}, 4, BlockIdx{6}, 0, false},
             trace::TokensWritten{SeqIdx{3}, TokIdx{8}, 1, BlockIdx{7}, 0, false},
         }) {
      apply(state, facts, event);
    }
  }
  [[nodiscard]] std::optional<TokenMeant> token(const Selection& selection) const {
    return token_meant(selection, resolve(state, facts, selection), facts);
  }
  [[nodiscard]] std::optional<SeqIdx> sequence(const Selection& selection) const {
    return sequence_meant(selection, resolve(state, facts, selection));
  }

  Facts facts = small_facts();
  State state = empty_state(facts);
};

TEST_F(Meant, ATokenMeansItselfAndAnythingElseItsFirstToken) {
  EXPECT_EQ(token(of_token(SeqIdx{3}, TokIdx{6})), (TokenMeant{SeqIdx{3}, TokIdx{6}}));
  EXPECT_EQ(token(of_page(SeqIdx{3}, PageIdx{2})), (TokenMeant{SeqIdx{3}, TokIdx{8}}));
  EXPECT_EQ(token(of_sequence(SeqIdx{1})), (TokenMeant{SeqIdx{1}, TokIdx{0}}));
  EXPECT_EQ(token(of_block(BlockIdx{6})), (TokenMeant{SeqIdx{3}, TokIdx{4}}));
  EXPECT_EQ(token(of_block(BlockIdx{2})), (TokenMeant{SeqIdx{1}, TokIdx{0}})) << "shared: the first sequence";
}

TEST_F(Meant, WhatIsNotInTheCacheMeansNoToken) {
  EXPECT_EQ(token({}), std::nullopt);
  EXPECT_EQ(token(of_token(SeqIdx{1}, TokIdx{6})), std::nullopt);
  EXPECT_EQ(token(of_block(BlockIdx{0})), std::nullopt) << "free";
  EXPECT_EQ(token(of_sequence(SeqIdx{0})), std::nullopt) << "waits";
}

TEST_F(Meant, TheSequenceIsThatOfTheObject) {
  EXPECT_EQ(sequence(of_token(SeqIdx{3}, TokIdx{6})), SeqIdx{3});
  EXPECT_EQ(sequence(of_block(BlockIdx{2})), SeqIdx{1});
  EXPECT_EQ(sequence(of_sequence(SeqIdx{0})), SeqIdx{0});
  EXPECT_EQ(sequence(of_block(BlockIdx{0})), std::nullopt);
  EXPECT_EQ(sequence({}), std::nullopt);
}

TEST_F(Meant, WithoutASelectionItIsTheLongestSequenceThatRuns) {
  EXPECT_EQ(longest_running(state), SeqIdx{3}) << "not sequence 0, which waits";
  EXPECT_EQ(longest_running(empty_state(facts)), SeqIdx{0});
}

}  // namespace
}  // namespace kvscope::viz::meant_test
