// What --check of `ptx run` names: the checks that a kernel is watched by, beside what the machine itself cannot let
// pass.
//
//   all                              race,proxy,init,nc,wgmma: what is right of every kernel and costs little
//   all,global_race                  and races in global memory
//   race,collectives_order           races in shared memory alone, lanes that meet at a shuffle counting as ordered
#pragma once

#include <string>
#include <vector>

#include "apps/kvscope/commands.h"
#include "gpu/virtual/check/checks.h"

namespace kvscope::apps {

void add_check_option(CLI::App& command, std::vector<std::string>& names);
[[nodiscard]] std::vector<std::string> check_names();  // all and none among them
[[nodiscard]] std::string checks_in_all();             // "race,proxy,..."
[[nodiscard]] ptx::CheckOptions checks_of(const std::vector<std::string>& names);

}  // namespace kvscope::apps
