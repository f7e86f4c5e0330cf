// The paging engine's checks of its input, for callers that did not run check_scenario(): programs that build a
// scenario and requests themselves. Sizes of at least 1, costs within [0, 1e12] us, prompts within [1, 2^40] tokens,
// content spans that add up to the prompt, samples directly after their parent.
#pragma once

#include <span>

#include "core/scenario/scenario.h"

namespace kvscope {

// GeometryError "paging engine" with every fault. Example: a request of 5 prompt tokens whose content spans are 2 and 2
// long is "request 3: content spans add up to 4 tokens, the prompt has 5".
void check_paging_sizes(const Scenario& scenario, std::span<const Request> requests);

}  // namespace kvscope
