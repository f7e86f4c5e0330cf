// The focus step, which all later stages use, and the state of the cache after it. The engine is deterministic, so the
// step is reached by running again: no history is kept, whatever the length of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/paging/cache_state.h"
#include "core/paging/run_limits.h"
#include "core/paging/run_report.h"
#include "core/scenario/scenario.h"

namespace kvscope {

// A step's batch with the identity of every token in it.
struct FocusState {
  CacheState cache;
  std::vector<std::vector<std::uint64_t>> token_ids;  // [batch][cache_length + new_tokens]
};

// focus.step, or for -1 the busiest step: the one with most filled slots, the first one of several.
// InputError("command line" or the scenario's name, "$.focus.step", ...) when the run is shorter.
[[nodiscard]] StepIdx focus_step(const Scenario& scenario, const RunReport& report);

// The last step that computed a token of `seq` and after which `token` is in the cache; empty when there is none.
[[nodiscard]] std::optional<StepIdx> last_step_of(const Scenario& scenario, std::span<const Request> requests,
                                                  SeqIdx seq, TokIdx token);

// Runs the engine again up to and including `step`. IndexError when the run has fewer steps,
// OverflowError when `limits` end it before.
[[nodiscard]] FocusState state_at(const Scenario& scenario, std::span<const Request> requests, StepIdx step,
                                  RunLimits limits = {});

}  // namespace kvscope
