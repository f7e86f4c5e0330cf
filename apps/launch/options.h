// The command-line options of a launch, which `ptx run`, `ptx debug` and the viewer share.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "apps/launch/launch.h"
#include "gpu/virtual/machine/limits.h"

namespace CLI {
class App;
}

namespace kvscope::apps {

inline constexpr const char* kPtxFileHelp =
    "PTX file, as nvcc -ptx writes it; compile with -lineinfo to see source lines";
inline constexpr const char* kTargetHelp =
    "Compute capability of the virtual GPU: 90 for sm_90a, 100 for sm_100a [default: that of the file, or 90 if that "
    "is higher]";

// The positional FILE; `request` outlives the command.
void add_launch_file(CLI::App& command, LaunchRequest& request);
// All other options of the launch.
void add_launch_options(CLI::App& command, LaunchRequest& request);
void add_argument_help(CLI::App& command);  // the section that lists the forms of --arg, after the options

void add_sum_option(CLI::App& command, std::string& sum);  // --sum, as in policy.h

// A limit of a range. `type`: "N" or "BYTES".
struct LimitRange {
  std::int64_t least = 1, most = std::numeric_limits<std::int64_t>::max();
};
void add_limit_option(CLI::App& command, const char* name, std::int64_t& value, const char* help, const char* type,
                      LimitRange range = {});
// The limits of gpu/virtual/machine/limits.h, --max-instructions to --max-copies, but for that of cooperative launches:
// `memory` is of the device.
void add_kernel_limit_options(CLI::App& command, ptx::LaunchLimits& limits, std::int64_t& memory);

// The words of the options that differ from their defaults: {"--grid", "2", "--block", "32", "--arg", "f32[64]"}. An
// empty list stands for each option at its default.
[[nodiscard]] std::vector<std::string> to_words(const LaunchRequest& request);
// The launch of `path` that the words describe. InputError("launch"): the first fault that the parser finds.
[[nodiscard]] LaunchRequest read_launch(const std::string& path, const std::vector<std::string>& words);

}  // namespace kvscope::apps
