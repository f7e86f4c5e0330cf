#include "viz/view/sharing.h"

#include <algorithm>

namespace kvscope::viz {

bool can_find(const Facts& facts) {
  if (facts.cache == CacheKind::continuous) return false;
  return !facts.scenario || facts.scenario->cache.prefix_sharing;
}

bool can_share(const Facts& facts) {
  if (facts.cache == CacheKind::continuous) return false;
  return can_find(facts) ||
         std::ranges::any_of(facts.scenario->requests.list, [](const Request& request) { return request.samples > 1; });
}

}  // namespace kvscope::viz
