// What is on screen at one position of a run: every block and every sequence, folded from the events before it. Nothing
// here knows of steps to come or of the step before: a state is its events, applied in order.
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

// How many events of a run have happened: 0 is before the first, facts.events after the last.
using Position = Index<struct PositionTag>;

// One block of the pool. 32-bit members: a million of these are kept, folded and painted.
struct BlockState {
  // A sequence that holds it: the one it was allocated for; when that lets go, the lowest that still holds it. Of a
  // cached block the one that held it last. -1: free.
  std::int32_t owner = -1;
  std::int32_t page = -1;      // which page of `owner`, and of all others that hold it; -1: free
  std::int32_t ref_count = 0;  // sequences whose lookup-table row points at it
  std::int32_t filled = 0;     // [tokens] of it that hold a token
  bool cached = false;         // held by nobody, content kept for reuse
  friend bool operator==(const BlockState&, const BlockState&) = default;
};

enum class Phase : std::uint8_t { absent, waiting, running, preempted, finished, refused };

// A sequence's row of the lookup table: the block of each page, -1 where none is assigned. Copies share it until one
// writes.
class PageTable {
 public:
  [[nodiscard]] std::int64_t size() const { return pages_ ? static_cast<std::int64_t>(pages_->size()) : 0; }
  [[nodiscard]] std::int32_t operator[](std::int64_t page) const {
    return page < size() ? (*pages_)[static_cast<std::size_t>(page)] : -1;
  }
  void set(std::int64_t page, std::int32_t block);  // grows as needed; trailing -1 are dropped
  [[nodiscard]] bool shares(const PageTable& other) const { return pages_ == other.pages_; }  // one copy of another
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
  std::int64_t tokens = 0;      // in the cache now, from the first on: found there, copied or computed
  std::int64_t hit_tokens = 0;  // found at the last admission; 0 after a preemption
  std::int64_t preemptions = 0;
  PageTable pages;
  friend bool operator==(const SequenceState&, const SequenceState&) = default;
};

struct State {
  StepIdx step{-1};                       // the step that has begun last; -1: none yet
  std::int64_t time_us = 0;               // [us]
  bool in_step = false;                   // its step_ended has not come yet
  CowArray<BlockState> blocks;            // [facts.blocks]
  CowArray<SequenceState, 64> sequences;  // [facts.sequences]
  std::vector<SeqIdx> live;               // waiting, running or preempted, ascending: the rows of the sequences panel
  std::int64_t used_blocks = 0;           // ref_count > 0; in a trace of detail `steps` as step_ended counts them
  std::int64_t cached_blocks = 0;
  friend bool operator==(const State&, const State&) = default;
  [[nodiscard]] std::int64_t free_blocks() const { return blocks.size() - used_blocks - cached_blocks; }
};

[[nodiscard]] State empty_state(const Facts& facts);

// Applies one event. Throws InputError("trace", "event", ...) when it contradicts the state: a block outside the
// pool, a release of a page that is not held, tokens past the end of a block. The state is then as before the event.
//
//   step_began        follows the step before, which has ended; the clock never goes back
//   block_allocated   a free block (an eviction comes first) becomes the next page of a running sequence
//   block_shared      a block with content becomes the same page of one more sequence
//   tokens_written    follow the tokens that the sequence has, or are written again
//
// A trace may begin in the middle: a sequence that nobody announced runs from its first event on. The counts of
// step_ended are the timeline's; that the blocks of the fold agree with them is held by
// tests/viz/playback/gallery_fold_test.cpp. A trace of detail `steps` tells of no block: all stay as they were, and
// used_blocks and cached_blocks are those of the last step_ended.
void apply(State& state, const Facts& facts, const trace::Event& event);

}  // namespace kvscope::viz
