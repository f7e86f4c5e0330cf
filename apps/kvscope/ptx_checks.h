// --check of `ptx run`: the checks to run, in addition to the errors that the machine itself detects.
//
//   all                              race,proxy,init,nc,wgmma: they apply to every kernel and cost little
//   all,global_race                  and races in global memory
//   race,collectives_order           races in shared memory only; lanes that execute a shuffle together are ordered
#pragma once

#include <string>
#include <vector>

#include "apps/kvscope/commands.h"
#include "gpu/virtual/check/checks.h"

namespace kvscope::apps {

void add_check_option(CLI::App& command, std::vector<std::string>& names);
[[nodiscard]] std::vector<std::string> check_names();  // including all and none
[[nodiscard]] std::string checks_in_all();             // "race,proxy,..."
[[nodiscard]] ptx::CheckOptions checks_of(const std::vector<std::string>& names);

}  // namespace kvscope::apps
