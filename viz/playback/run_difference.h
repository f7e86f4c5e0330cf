// Two runs of nearly the same scenario, step by step: which place of one run corresponds to a place of the other, in
// which steps something different happens, and what their caches store differently.
//
//   Cursor run, other;                                            // of two runs
//   other.seek(counterpart(run, other.run()));                    // the same step
//   block_differs(run.state(), other.state(), BlockIdx{18});      // true: another page, or another fill level
//
// Times are not compared: only what a step does counts, not when.
//
// Example: apps/scenarios/preemption.json and apps/examples/preemption_two.json differ first in step 1; at the end of
// step 3, 15 of 24 blocks and all 6 sequences differ.
#pragma once

#include <cstdint>

#include "viz/playback/cursor.h"
#include "viz/playback/run.h"

namespace kvscope::viz {

// The position of `other` in the cursor's step: at the end of the step if the cursor is there, else after as many of
// the step's events, at most all. If `other` lacks the step, the end of its last step before it.
[[nodiscard]] Position counterpart(const Cursor& cursor, const Run& other);

// Whether the events of a row of `run` and those of the same step of `other` differ, or `other` lacks the step.
// IndexError: the row.
[[nodiscard]] bool step_differs(const Run& run, std::int64_t row, const Run& other);

// Whether blocks and pages of the two runs mean the same: both traces have blocks, of the same number of tokens.
[[nodiscard]] bool are_comparable(const Facts& a, const Facts& b);

// Preconditions (caller): are_comparable(). A block that is not in both pools does not differ; a page that only one
// table has does.
[[nodiscard]] bool block_differs(const State& a, const State& b, BlockIdx block);
// Another block, or another number of its tokens. page_size: [tokens]
[[nodiscard]] bool page_differs(const State& a, const State& b, SeqIdx seq, PageIdx page, std::int64_t page_size);

// How many objects differ. Precondition (caller): are_comparable().
struct StateDifference {
  std::int64_t blocks = 0;
  std::int64_t sequences = 0;  // another phase, other tokens, or other blocks
  friend bool operator==(const StateDifference&, const StateDifference&) = default;
};
[[nodiscard]] StateDifference difference(const State& a, const State& b);

}  // namespace kvscope::viz
