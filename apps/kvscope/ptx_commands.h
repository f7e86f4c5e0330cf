// The subcommands of `kvscope ptx`, one file each, and their shared functions.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "apps/kvscope/commands.h"
#include "gpu/virtual/machine/limits.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::apps {

inline constexpr std::int64_t kMostPtxBytes = std::int64_t{256} << 20;

// Parses a PTX file. InputError with every error of the file.
[[nodiscard]] ptx::Module read_ptx(const std::string& path);

void add_check_option(CLI::App& command, std::vector<std::string>& names);  // --check
void add_sum_option(CLI::App& command, std::string& sum);                   // --sum, as in sum_of of ptx_policy.h
void add_jobs_option(CLI::App& command, std::int64_t& jobs);                // --jobs, as in launch_parts.h
// A limit of a range. `type`: "N" or "BYTES".
struct LimitRange {
  std::int64_t least = 1, most = std::numeric_limits<std::int64_t>::max();
};
void add_limit_option(CLI::App& command, const char* name, std::int64_t& value, const char* help, const char* type,
                      LimitRange range = {});
// The limits of gpu/virtual/machine/limits.h, --max-instructions to --max-copies, but for that of cooperative launches:
// `memory` is of the device.
void add_kernel_limit_options(CLI::App& command, ptx::LaunchLimits& limits, std::int64_t& memory);

void add_ptx_run(CLI::App& ptx, Action& chosen);    // ptx run FILE --entry NAME --grid --block --arg ...
void add_ptx_debug(CLI::App& ptx, Action& chosen);  // ptx debug FILE, with the same options
void add_check_option(CLI::App& command, std::vector<std::string>& names);  // --check, by check_names.h

}  // namespace kvscope::apps
