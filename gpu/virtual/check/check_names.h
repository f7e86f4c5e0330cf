// The checks of a launch by name, as in `kvscope ptx run --check` and the Python module.
//
//   all                              race,proxy,init,nc,wgmma: they apply to every kernel and cost little
//   all,global_race                  and races in global memory
//   race,collectives_order           races in shared memory only; lanes that execute a shuffle together are ordered
#pragma once

#include <string>
#include <vector>

#include "gpu/virtual/check/checks.h"

namespace kvscope::ptx {

[[nodiscard]] std::vector<std::string> check_names();  // including all and none
[[nodiscard]] std::string checks_in_all();             // "race,proxy,..."
// Other names than check_names() are ignored: callers reject them first.
[[nodiscard]] CheckOptions checks_of(const std::vector<std::string>& names);

}  // namespace kvscope::ptx
