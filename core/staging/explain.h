// Explains an address: the chain from a token to a byte, link by link, each with its formula and the numbers filled in.
// The command line and the viewer show the same result, which core/trace/explanation.h describes.
#pragma once

#include <span>

#include "core/paging/cache_state.h"
#include "core/scenario/scenario.h"
#include "core/trace/explanation.h"

namespace kvscope {

// IndexError when the question names an object that the scenario does not have.
[[nodiscard]] trace::Explanation explain(const Scenario& scenario, std::span<const Request> requests,
                                         const trace::Question& question);

// The same for a known state: `state` is the result of state_at() for question.step. For many questions about one step,
// or a walk from step to step, this runs the engine only once.
[[nodiscard]] trace::Explanation explain(const Scenario& scenario, std::span<const Request> requests,
                                         const trace::Question& question, const CacheState& state);

}  // namespace kvscope
