#include "viz/playback/checkpoints.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/viz/playback/support.h"
#include "viz/playback/run.h"

namespace kvscope::viz::checkpoints_test {
namespace {

using namespace testing_support;

constexpr std::int64_t kEverything = std::int64_t{1} << 40;

Facts large_pool() {
  Facts facts = small_facts();
  facts.blocks = 100'000;
  facts.sequences = 1;
  return facts;
}

// Sequence 0 gets one block after the other, spread over all chunks.
trace::Event allocation(std::int64_t n) {
  return trace::BlockAllocated{BlockIdx{n * 7919 % 100'000}, SeqIdx{0}, PageIdx{n}};
}

struct Walk {
  Walk(std::int64_t events, std::int64_t distance, std::int64_t bytes) : checkpoints(state, distance, bytes) {
    for (std::int64_t n = 0; n < events; ++n) {
      apply(state, facts, allocation(n));
      checkpoints.offer(Position{n + 1}, state);
    }
  }
  Facts facts = large_pool();
  State state = empty_state(facts);
  Checkpoints checkpoints;
};

TEST(Checkpoints, AreOneDistanceApartAndTheLastOneBeforeAPositionIsFound) {
  const Walk walk(95, 10, kEverything);
  EXPECT_EQ(walk.checkpoints.size(), 10);
  for (const auto& [at, expected] : std::map<std::int64_t, std::int64_t>{
           {0, 0}, {9, 0}, {10, 10}, {11, 10}, {19, 10}, {20, 20}, {89, 80}, {90, 90}, {95, 90}, {1'000, 90}}) {
    const Checkpoint& checkpoint = walk.checkpoints.before(Position{at});
    EXPECT_EQ(checkpoint.position.value, expected) << at;
    EXPECT_EQ(checkpoint.state.used_blocks, expected) << at;
  }
}

// A checkpoint keeps the state of its position, whatever happens later to the state that it was copied from.
TEST(Checkpoints, HoldTheStateOfTheirPosition) {
  const Walk walk(2'000, 64, kEverything);
  State state = empty_state(walk.facts);
  for (std::int64_t n = 0; n < 1'000; ++n) apply(state, walk.facts, allocation(n));
  const Checkpoint& checkpoint = walk.checkpoints.before(Position{1'000});
  ASSERT_EQ(checkpoint.position.value, 960);
  State from_there = checkpoint.state;
  for (std::int64_t n = 960; n < 1'000; ++n) apply(from_there, walk.facts, allocation(n));
  EXPECT_EQ(from_there, state);
}

// Six of a hundred chunks change between two checkpoints: only these count as memory, not the whole pool.
TEST(Checkpoints, CostWhatChangedBetweenThem) {
  const Walk walk(60, 6, kEverything);
  const std::int64_t chunk = CowArray<BlockState>::kChunkBytes;
  EXPECT_EQ(walk.checkpoints.size(), 11);
  EXPECT_GE(walk.checkpoints.held(), 60 * chunk);
  EXPECT_LT(walk.checkpoints.held(), 80 * chunk);
}

// A sequence rewrites its row of the lookup table after every checkpoint: 4, 8, ... 120 kB, 1.86 MB in total.
// The one or two chunks of blocks in addition are at most 1.2 MB.
TEST(Checkpoints, CostTheRowsOfTheLookupTableToo) {
  const Facts facts = large_pool();
  State state = empty_state(facts);
  Checkpoints checkpoints(state, 1'000, kEverything);
  for (std::int64_t n = 0; n < 30'000; ++n) {
    apply(state, facts, trace::BlockAllocated{BlockIdx{n}, SeqIdx{0}, PageIdx{n}});
    checkpoints.offer(Position{n + 1}, state);
  }
  EXPECT_GT(checkpoints.held(), 1'860'000);
  EXPECT_LT(checkpoints.held(), 3'400'000);
}

// If the states exceed the limit, fewer checkpoints are kept at larger distances, and every position is still found.
TEST(Checkpoints, AreThinnedOutEvenlyWhenTheyTakeTooMuch) {
  const std::int64_t bytes = std::int64_t{16} << 20;
  const Walk walk(3'000, 10, bytes);
  EXPECT_LE(walk.checkpoints.held(), bytes);
  EXPECT_GT(walk.checkpoints.held(), bytes / 8);
  EXPECT_GT(walk.checkpoints.size(), 3);
  const std::int64_t distance = walk.checkpoints.distance();
  EXPECT_GT(distance, 10);
  EXPECT_EQ(distance % 10, 0);
  for (std::int64_t at = 0; at <= 3'000; ++at) {
    const Checkpoint& checkpoint = walk.checkpoints.before(Position{at});
    EXPECT_LE(checkpoint.position.value, at);
    EXPECT_EQ(checkpoint.state.used_blocks, checkpoint.position.value);
    ASSERT_LT(at - checkpoint.position.value, 2 * distance);
  }
}

// If a single state exceeds the memory limit, only the checkpoint at the start is kept, and offer() terminates.
TEST(Checkpoints, KeepTheStartWhateverItCosts) {
  const Walk walk(200, 1, 1);
  EXPECT_EQ(walk.checkpoints.size(), 1);
  EXPECT_EQ(walk.checkpoints.held(), 0);
  EXPECT_EQ(walk.checkpoints.before(Position{200}).position.value, 0);
}

// The worked number of run.h, and the maximum.
TEST(Checkpoints, LimitOfARunGrowsWithItsPoolUpToAMaximum) {
  EXPECT_EQ(Run::checkpoint_bytes(0), 100'000'000);
  EXPECT_EQ(Run::checkpoint_bytes(100'000), 116'000'000);
  EXPECT_EQ(Run::checkpoint_bytes(1'000'000), 260'000'000);
  EXPECT_EQ(Run::checkpoint_bytes(std::int64_t{1} << 27), 260'000'000);
}

}  // namespace
}  // namespace kvscope::viz::checkpoints_test
