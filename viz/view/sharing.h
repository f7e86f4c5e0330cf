// Which kinds of sharing a run can have, according to its scenario. Legends list only those: a legend entry for a sign
// that never appears would be misleading. A trace without a scenario may have all kinds.
#pragma once

#include "viz/playback/facts.h"

namespace kvscope::viz {

// Whether the prefix of a prompt may be found in the cache: paged cache with prefix sharing.
[[nodiscard]] bool can_find(const Facts& facts);
// Whether several sequences may share a block: by prefix sharing, or as samples of one prompt.
[[nodiscard]] bool can_share(const Facts& facts);

}  // namespace kvscope::viz
