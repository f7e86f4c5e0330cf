// The computed state against the engine that produced the events, for the included scenarios at full detail.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <variant>

#include "core/staging/focus.h"
#include "tests/viz/playback/support.h"

namespace kvscope::viz::gallery_fold_test {
namespace {

using namespace testing_support;

// A second model of the pool: sets of slots and holders instead of counters.
struct SlowBlock {
  std::set<std::int64_t> holders;  // sequences
  std::set<std::int64_t> slots;
  std::int64_t owner = -1, page = -1;
  bool cached = false;
};

class SlowFold {
 public:
  SlowFold(std::int64_t page_size) : page_size_(page_size) {}

  void apply(const trace::Event& event) {
    std::visit([&](const auto& e) { on(e); }, event);
  }
  std::map<std::int64_t, SlowBlock> blocks;                           // those that are not free
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> rows;  // sequence -> page -> block

  // Tokens of a sequence, one slot at a time from the first.
  std::int64_t tokens(std::int64_t seq) {
    for (std::int64_t token = 0;; ++token) {
      const auto page = rows[seq].find(token / page_size_);
      if (page == rows[seq].end() || !blocks[page->second].slots.contains(token % page_size_)) return token;
    }
  }

 private:
  template <class E>
  void on(const E&) {}
  void on(const trace::BlockAllocated& e) {
    blocks[e.block.value] = {{e.seq.value}, {}, e.seq.value, e.page.value, false};
    rows[e.seq.value][e.page.value] = e.block.value;
  }
  void on(const trace::BlockShared& e) {
    SlowBlock& block = blocks[e.block.value];
    block.holders.insert(e.seq.value);
    if (block.holders.size() == 1) block.owner = e.seq.value;
    block.cached = false;
    rows[e.seq.value][e.page.value] = e.block.value;
  }
  void on(const trace::BlockCopied& e) {
    SlowBlock copy{{e.seq.value}, {}, e.seq.value, e.page.value, false};
    for (std::int64_t slot = 0; slot < e.tokens; ++slot) copy.slots.insert(slot);
    blocks[e.to.value] = copy;
    rows[e.seq.value][e.page.value] = e.to.value;
    let_go(blocks[e.from.value], e.seq.value);
  }
  void on(const trace::BlockReleased& e) {
    rows[e.seq.value].erase(e.page.value);
    let_go(blocks[e.block.value], e.seq.value);
    blocks[e.block.value].cached = e.cached;
    if (blocks[e.block.value].holders.empty() && !e.cached) blocks.erase(e.block.value);
  }
  void on(const trace::BlockEvicted& e) { blocks.erase(e.block.value); }
  void on(const trace::TokensWritten& e) {
    for (std::int64_t i = 0; i < e.tokens; ++i) blocks[e.block.value].slots.insert(e.slot + i);
  }
  static void let_go(SlowBlock& block, std::int64_t seq) {
    block.holders.erase(seq);
    if (block.owner == seq && !block.holders.empty()) block.owner = *block.holders.begin();
  }

  std::int64_t page_size_;
};

void expect_same(const State& state, SlowFold& slow) {
  std::int64_t used = 0, cached = 0;
  for (std::int64_t b = 0; b < state.blocks.size(); ++b) {
    const BlockState& block = state.blocks[b];
    const auto found = slow.blocks.find(b);
    if (found == slow.blocks.end()) {
      ASSERT_EQ(block, BlockState{}) << "block " << b;
      continue;
    }
    const SlowBlock& expected = found->second;
    ASSERT_EQ(block.owner, expected.owner) << "block " << b;
    ASSERT_EQ(block.page, expected.page) << "block " << b;
    ASSERT_EQ(block.ref_count, std::ssize(expected.holders)) << "block " << b;
    ASSERT_EQ(block.filled, std::ssize(expected.slots)) << "block " << b;
    ASSERT_EQ(block.cached, expected.cached) << "block " << b;
    used += !expected.holders.empty();
    cached += expected.cached;
  }
  ASSERT_EQ(state.used_blocks, used);
  ASSERT_EQ(state.cached_blocks, cached);
  ASSERT_EQ(state.free_blocks(), state.blocks.size() - used - cached);
  for (std::int64_t s = 0; s < state.sequences.size(); ++s) {
    const SequenceState& seq = state.sequences[s];
    ASSERT_EQ(seq.tokens, slow.tokens(s)) << "sequence " << s;
    std::map<std::int64_t, std::int64_t> row;
    for (std::int64_t page = 0; page < seq.pages.size(); ++page) {
      if (seq.pages[page] >= 0) row[page] = seq.pages[page];
    }
    ASSERT_EQ(row, slow.rows[s]) << "sequence " << s;
  }
}

// The counts of step_ended, counted in the state at the end of the step.
void expect_counts(const State& state, const trace::StepEnded& ended) {
  std::int64_t slots = 0, waiting = 0, running = 0;
  for (std::int64_t b = 0; b < state.blocks.size(); ++b) {
    if (state.blocks[b].ref_count > 0) slots += state.blocks[b].filled;
  }
  for (const SeqIdx seq : state.live) {
    (state.sequences[seq.value].phase == Phase::running ? running : waiting) += 1;
  }
  ASSERT_EQ(state.used_blocks, ended.used_blocks);
  ASSERT_EQ(state.cached_blocks, ended.cached_blocks);
  ASSERT_EQ(state.free_blocks(), ended.free_blocks);
  ASSERT_EQ(slots, ended.slots_filled);
  ASSERT_EQ(waiting, ended.waiting);
  ASSERT_EQ(running, ended.running);
  ASSERT_EQ(state.step, ended.step);
  ASSERT_EQ(state.time_us, ended.time_us);
  ASSERT_FALSE(state.in_step);
}

// The two models are compared after every `often`-th event, and after each step.
void expect_fold_agrees(const Recorded& recorded, const Facts& facts, std::int64_t often) {
  State state = empty_state(facts);
  SlowFold slow(facts.page_size);
  std::int64_t number = 0;
  for (const trace::Event& event : recorded.events) {
    apply(state, facts, event);
    slow.apply(event);
    const auto* ended = std::get_if<trace::StepEnded>(&event);
    if (ended != nullptr) {
      ASSERT_NO_FATAL_FAILURE(expect_counts(state, *ended)) << "event " << number;
    }
    if (++number % often == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_same(state, slow)) << "after event " << number - 1;
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_same(state, slow));
  EXPECT_TRUE(state.live.empty());
  EXPECT_EQ(state.used_blocks, 0);
}

class Gallery : public testing::TestWithParam<std::string> {};

// Finds a shared page counted only for its owner, a copy that keeps the old block's tokens, and a cached block without
// its content: each of these makes a count of some step wrong.
TEST_P(Gallery, EveryStepCountsWhatTheEngineCounts) {
  const Recorded recorded = gallery(GetParam());
  const auto run = recorded.open();
  const auto often = std::max<std::int64_t>(1, static_cast<std::int64_t>(recorded.events.size()) / 200);
  expect_fold_agrees(recorded, run->facts(), often);
}

// Lookup table, lengths and batch as the kernels of a step see them: after the last token was written and before any
// block is released.
TEST_P(Gallery, TableIsTheOneThatTheKernelsOfTheStepGot) {
  const Recorded recorded = gallery(GetParam());
  const auto run = recorded.open();
  const std::int64_t steps = run->facts().rows - 1;
  for (std::int64_t i = 0; i <= 8; ++i) {
    const std::int64_t step = (steps - 1) * i / 8;
    const CacheState expected = kvscope::state_at(recorded.scenario, recorded.requests, StepIdx{step}).cache;
    Position position = run->end_of_row(step + 1);
    while (
        !std::holds_alternative<trace::TokensWritten>(recorded.events[static_cast<std::size_t>(position.value - 1)])) {
      position = position - 1;
    }
    const State state = run->state_at(position);
    ASSERT_EQ(state.step.value, step);
    for (std::size_t b = 0; b < expected.batch.size(); ++b) {
      const SequenceState& seq = state.sequences[expected.batch[b].value];
      EXPECT_EQ(seq.phase, Phase::running);
      EXPECT_EQ(seq.tokens, expected.cache_lengths[b] + expected.new_tokens[b]) << "step " << step << " row " << b;
      for (std::int64_t column = 0; column < expected.table_columns; ++column) {
        const std::int64_t entry =
            expected
                .lookup_table[b * static_cast<std::size_t>(expected.table_columns) + static_cast<std::size_t>(column)];
        EXPECT_EQ(seq.pages[column], entry == expected.blocks ? -1 : entry)
            << "step " << step << " row " << b << " column " << column;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Gallery, testing::ValuesIn(gallery_names()),
                         [](const auto& scenario) { return scenario.param; });

TEST(CrowdedRuns, EveryEventLeavesWhatASecondPictureHas) {
  ASSERT_TRUE(rc::check([] {
    const Recorded recorded = *crowded_runs();
    RC_ASSERT_FALSE(recorded.events.empty());
    const auto run = recorded.open();
    expect_fold_agrees(recorded, run->facts(), 1);
    RC_ASSERT_FALSE(testing::Test::HasFailure());
  }));
}

// The property above needs runs with sharing, copies, evictions and preemptions.
TEST(CrowdedRuns, ShareCopyEvictAndPreempt) {
  std::set<std::size_t> kinds;
  rc::check([&] {
    for (const trace::Event& event : (*crowded_runs()).events) kinds.insert(event.index());
  });
  EXPECT_EQ(kinds.size(), trace::find_kind("tile_opened"));  // the kinds of a tile come after the engine's kinds
}

}  // namespace
}  // namespace kvscope::viz::gallery_fold_test
