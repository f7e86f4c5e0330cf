// --policy: the order in which the virtual GPU executes warps and lets copies land. --sum: the order in which its
// matrix instructions add.
#pragma once

#include <string>

#include "gpu/virtual/machine/schedule.h"

namespace kvscope::apps {

inline constexpr const char* kPolicyHelp =
    "Schedule of the virtual GPU. late: asynchronous copies land as late as allowed; early: immediately; seed:N, N "
    "from 1: "
    "copies and warps in a random order that N determines, such as seed:7";

// Throws InputError with --policy for any other text.
[[nodiscard]] ptx::Schedule read_policy(const std::string& text);

[[nodiscard]] ptx::SumMode sum_of(const std::string& checked);  // precondition: add_sum_option accepted it

}  // namespace kvscope::apps
