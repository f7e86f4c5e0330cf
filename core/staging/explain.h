// Why this address: the chain from a token to a byte, link by link, each with its formula and the numbers filled in.
// The command line prints it, the viewer shows it: one source. core/trace/explanation.h says what comes back.
#pragma once

#include <span>

#include "core/paging/cache_state.h"
#include "core/scenario/scenario.h"
#include "core/trace/explanation.h"

namespace kvscope {

// IndexError when the question names an object that the scenario does not have.
[[nodiscard]] trace::Explanation explain(const Scenario& scenario, std::span<const Request> requests,
                                         const trace::Question& question);

// The same for a step that stands ready: `state` is what state_at() gives for question.step. Who asks many questions
// about one step, or walks from step to step, runs the engine once.
[[nodiscard]] trace::Explanation explain(const Scenario& scenario, std::span<const Request> requests,
                                         const trace::Question& question, const CacheState& state);

}  // namespace kvscope
