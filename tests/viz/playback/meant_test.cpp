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

// Without this, each scenario about LDS was drawn by TMA until a path was named.
TEST(PathMeant, IsTheOneOfTheFirstTileInTheNotes) {
  for (const char* name : {"tile_through_lds", "lds_too_large", "lds_small_pages", "swizzle_off"}) {
    EXPECT_EQ(path_meant(gallery(name).open()->facts()), TilePath::lds) << name;
  }
  // mla_rope.json has an lds section and links to TMA first; gather_sparse.json also links to gather4.
  for (const char* name : {"tile_by_tma", "mla_rope", "gather_sparse", "mla"}) {
    EXPECT_EQ(path_meant(gallery(name).open()->facts()), TilePath::tma) << name;
  }
  Facts facts;
  facts.description = "[a place](step=1), [no tile](tile=nothing), [a tile](tile=seq 1 gather4), [it](tile=seq 1 lds)";
  EXPECT_EQ(path_meant(facts), TilePath::gather4);
}

TEST(PathMeant, WithoutALinkIsLdsOnlyForAScenarioThatChangesItsLdsSection) {
  Facts facts;
  EXPECT_EQ(path_meant(facts), TilePath::tma) << "a kernel's trace";
  facts.scenario.emplace();
  EXPECT_EQ(path_meant(facts), TilePath::tma);
  facts.scenario->lds.threads = 128;
  EXPECT_EQ(path_meant(facts), TilePath::lds);
}

TEST(RecordedMeant, IsTheFirstTileOrForLdsTheFirstThatTmaDidNotCopy) {
  Facts facts;
  std::vector<RecordedTile> tiles;
  EXPECT_EQ(recorded_meant(tiles, facts), std::nullopt);
  for (const bool tma : {true, true, false, false}) {
    tiles.emplace_back();
    tiles.back().opened.tma = tma;
  }
  EXPECT_EQ(recorded_meant(tiles, facts), 0u);
  facts.description = "[a tile](tile=seq 0 lds)";
  EXPECT_EQ(recorded_meant(tiles, facts), 2u);
  EXPECT_EQ(recorded_meant({tiles[0], tiles[1]}, facts), 0u) << "none through LDS";
  facts.description.clear();
  EXPECT_EQ(recorded_meant({tiles[2], tiles[0]}, facts), 0u) << "a kernel's tile, by cp.async";
}

}  // namespace
}  // namespace kvscope::viz::meant_test
