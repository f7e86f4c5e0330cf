// The subcommands of `kvscope ptx`, one file each, and their shared functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/kvscope/commands.h"

namespace kvscope::apps {

void add_check_option(CLI::App& command, std::vector<std::string>& names);  // --check
void add_jobs_option(CLI::App& command, std::int64_t& jobs);                // --jobs, as in launch_parts.h

void add_ptx_run(CLI::App& ptx, Action& chosen);    // ptx run FILE --entry NAME --grid --block --arg ...
void add_ptx_debug(CLI::App& ptx, Action& chosen);  // ptx debug FILE, with the same options

}  // namespace kvscope::apps
