// The result of a run of the paging engine: totals, and each figure as a curve over steps.
//
// Conservation of tokens. A finished request of p prompt and g generated tokens has had p + max(g - 1, 0) tokens
// stored: the last one generated is never an input. Every stored token was computed or found in the prefix cache, and
// a preemption's lost tokens were computed or found once more:
//
//   computed_tokens + hit_tokens == sum over finished requests of (p + max(g - 1, 0)) + lost_tokens
//
// A sample that forks from its parent counts as a request that looked its whole prompt up and found it: p query tokens
// and p hit tokens, whether or not prefixes are shared. forked_tokens is the part of the hits that came from forks.
//
// A share of a step has a divisor, and a step where it is 0 has no share: no used block, no fragmentation; no look-up,
// no hit rate. Such a step is null in JSON's curve and excluded from every mean, minimum and maximum, in text and JSON.
// Example: steps of 5 used blocks of 4 slots, 15 filled, and of no used block: fragmentation 25 %, not 12.5 %.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace kvscope {

// The numbers of the step's StepEnded event, kept even when no recorder is attached.
struct StepFigures {
  std::int64_t time_us = 0;                                          // [us] at the end of the step
  std::int64_t waiting = 0, running = 0;                             // requests
  std::int64_t used_blocks = 0, cached_blocks = 0, free_blocks = 0;  // blocks
  std::int64_t slots_filled = 0;                                     // tokens stored in used blocks
  std::int64_t prefill_tokens = 0, decode_tokens = 0;                // computed in the step
  std::int64_t hit_tokens = 0, query_tokens = 0;                     // prefix cache, at admission
  std::int64_t preemptions = 0, finished = 0;
};

// Each number of a step with its name, which is that of the field of trace::StepEnded, in the order of reports.
struct NamedFigure {
  const char* name;
  std::int64_t StepFigures::*figure;
};
[[nodiscard]] std::span<const NamedFigure> step_figures();

struct RunReport {
  bool paged = true;           // false: a continuous cache, which has no null page
  std::int64_t page_size = 0;  // [tokens] a block holds; continuous: the longest sequence S
  std::int64_t blocks = 0;
  std::int64_t requests = 0, finished = 0, refused = 0, preemptions = 0;
  std::int64_t steps = 0;
  std::int64_t duration_us = 0;        // [us] under the cost model
  std::int64_t prompt_tokens = 0;      // of finished requests, as requested
  std::int64_t generated_tokens = 0;   // of finished requests
  std::int64_t computed_tokens = 0;    // prefill and decode, recomputation included
  std::int64_t lost_tokens = 0;        // held by requests when they were preempted
  std::int64_t recomputed_tokens = 0;  // lost and computed again; the rest of the lost tokens came from the cache
  std::int64_t hit_tokens = 0, query_tokens = 0;
  std::int64_t forked_tokens = 0;          // of hit_tokens: prompts that samples shared with their parents
  std::int64_t evictions = 0, copies = 0;  // blocks
  std::int64_t peak_used_blocks = 0;
  std::vector<StepFigures> curve;  // [steps]

  // Means over the steps that have the share, weighted by nothing: each counts once. 0 when no step has it.
  [[nodiscard]] double utilization() const;             // used blocks / blocks
  [[nodiscard]] double internal_fragmentation() const;  // unfilled slots in used blocks / slots in used blocks
  [[nodiscard]] double prefix_hit_rate() const;         // not a mean: hit_tokens / query_tokens of the whole run
};

[[nodiscard]] std::string to_text(const RunReport& report);
// `curve`: one array a figure, an element a step; beside StepFigures the shares utilization, internal_fragmentation and
// prefix_hit_rate.
[[nodiscard]] json::Value to_json(const RunReport& report, bool with_curve);

}  // namespace kvscope
