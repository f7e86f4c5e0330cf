// What a run can do with blocks at all, told from its scenario: a legend that explains a sign which can never appear
// makes people look for it. A trace without a scenario may do anything.
#pragma once

#include "viz/playback/facts.h"

namespace kvscope::viz {

// Whether a prompt's beginning may be found in the cache: paged, and with prefix sharing.
[[nodiscard]] bool can_find(const Facts& facts);
// Whether a block may have several holders: found in the cache, or of samples of one prompt.
[[nodiscard]] bool can_share(const Facts& facts);

}  // namespace kvscope::viz
