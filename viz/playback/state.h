// The state at one position of a run: every block and every sequence, computed by applying all earlier events in order.
// A state depends on nothing else: not on later steps, and not on how the position was reached.
//
//   State state = empty_state(facts);
//   for (const trace::Event& event : events) apply(state, facts, event);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/index.h"
#include "core/trace/events.h"
#include "viz/playback/cow_array.h"
#include "viz/playback/facts.h"

namespace kvscope::viz {

// The number of events before this point of the run: 0 is before the first event, facts.events after the last.
using Position = Index<struct PositionTag>;

// One block of the pool. Its members have 32 bits because a pool may have a million blocks.
struct BlockState {
  // A sequence that holds the block: the one it was allocated for; after that one released it, the lowest-numbered one
  // that still holds it. For a cached block: the last sequence that held it. -1: free.
  std::int32_t owner = -1;
  std::int32_t page = -1;      // index of the page, the same for all sequences that hold the block; -1: free
  std::int32_t ref_count = 0;  // sequences whose lookup-table row points at it
  std::int32_t filled = 0;     // [slots] that hold a token
  bool cached = false;         // not held by any sequence, content kept for reuse
  friend bool operator==(const BlockState&, const BlockState&) = default;
};

enum class Phase : std::uint8_t { absent, waiting, running, preempted, finished, refused };

// A sequence's row of the lookup table: the block of each page, -1 for an unassigned page. Copies share the row until
// one of them writes.
class PageTable {
 public:
  [[nodiscard]] std::int64_t size() const { return pages_ ? static_cast<std::int64_t>(pages_->size()) : 0; }
  [[nodiscard]] std::int32_t operator[](std::int64_t page) const {
    return page < size() ? (*pages_)[static_cast<std::size_t>(page)] : -1;
  }
  void set(std::int64_t page, std::int32_t block);  // grows as needed; trailing -1 are dropped
  void prefetch(std::int64_t page) const {  // into the processor's caches; does nothing for a page outside the table
    if (page >= 0 && page < size()) __builtin_prefetch(pages_->data() + page);
  }
  [[nodiscard]] bool shares(const PageTable& other) const { return pages_ == other.pages_; }  // the same memory
  friend bool operator==(const PageTable& a, const PageTable& b) {
    return a.pages_ == b.pages_ || (a.size() == b.size() && (a.size() == 0 || *a.pages_ == *b.pages_));
  }

 private:
  std::shared_ptr<std::vector<std::int32_t>> pages_;
};

struct SequenceState {
  Phase phase = Phase::absent;
  std::int64_t prompt_tokens = 0;
  std::int64_t generate_tokens = 0;
  std::int64_t tokens = 0;      // tokens [0, tokens) are in the cache now: prefix hits, copied or computed
  std::int64_t hit_tokens = 0;  // prefix hits of the last admission; 0 after a preemption
  std::int64_t preemptions = 0;
  PageTable pages;
  friend bool operator==(const SequenceState&, const SequenceState&) = default;
};

struct State {
  StepIdx step{-1};                       // the last step that began; -1: none yet
  std::int64_t time_us = 0;               // [us]
  bool in_step = false;                   // true until the step_ended of `step`
  CowArray<BlockState> blocks;            // [facts.blocks]
  CowArray<SequenceState, 64> sequences;  // [facts.sequences]
  std::vector<SeqIdx> live;               // waiting, running or preempted, ascending: the rows of the sequences panel
  std::int64_t used_blocks = 0;           // ref_count > 0; in a trace of detail `steps`: of the last step_ended
  std::int64_t cached_blocks = 0;
  friend bool operator==(const State&, const State&) = default;
  [[nodiscard]] std::int64_t free_blocks() const { return blocks.size() - used_blocks - cached_blocks; }
};

[[nodiscard]] State empty_state(const Facts& facts);

// Applies one event. Throws InputError("trace", "event", ...) if the event contradicts the state: a block outside the
// pool, a release of a page that is not held, tokens past the end of a block. The state is then unchanged.
//
//   step_began        the previous step has ended; the time does not decrease
//   block_allocated   a free block (an eviction comes first) becomes the next page of a running sequence
//   block_shared      a block with content becomes the same page of one more sequence
//   tokens_written    follow the tokens that the sequence has, or are written again
//
// A trace may begin in the middle of a run: a sequence without request_arrived counts as running from its first
// admission, block or token on; one that ends before that is rejected. The counts of step_ended go into the timeline;
// tests/viz/playback/gallery_fold_test.cpp checks that they equal the blocks of the state. A trace of detail `steps`
// has no block events: all blocks stay free, and used_blocks and cached_blocks are those of the last step_ended.
void apply(State& state, const Facts& facts, const trace::Event& event);

// Prefetch what apply() reads of an event: first its sequence and its block, later, when the sequence is there, the
// sequence's row of the lookup table. They change nothing, and accept events that apply() rejects.
void fetch_objects(const State& state, const trace::Event& event);
void fetch_row(const State& state, const trace::Event& event);

}  // namespace kvscope::viz
