// The names of schedules, as every front end takes them: late, early, seed:N.
//
//   policy_from_name("seed:7")      {Policy::seeded, 7}
//   policy_fault("seed:0")          "'seed:0' is not seed:N with N from 1 to 18446744073709551615"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

struct Schedule {
  Policy policy = Policy::late;
  std::uint64_t seed = 0;  // seeded: not 0
};
[[nodiscard]] std::optional<Schedule> policy_from_name(std::string_view name);
// What is wrong with a name that is none.
[[nodiscard]] std::string policy_fault(std::string_view name);

}  // namespace kvscope::ptx
