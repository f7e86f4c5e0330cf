// What a person says of a schedule: late, early or seed:N.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/virtual/machine/state.h"

namespace kvscope::apps {

struct Schedule {
  ptx::Policy policy = ptx::Policy::late;
  std::uint64_t seed = 0;  // seeded: not 0
};
// InputError naming --policy for anything else.
[[nodiscard]] Schedule read_policy(const std::string& text);

}  // namespace kvscope::apps
