// The whole check of a GPU. This process never uses the GPU: everything on the GPU runs in child processes (one.h),
// which may crash, hang, or lose their context. Results that a child reported before it ended are kept, the case it had
// begun is failed with the way it ended, and the remaining cases run in the next child.
//
//   CheckReport report;
//   if (const auto none = find_device(options, report)) ...   no device, with the driver's message
//   check(options, report, [](const std::string& doing) { ... });
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu/hardware/check_report.h"
#include "gpu/hardware/one.h"

namespace kvscope::gpu {

struct CheckOptions {
  WhichDevice which;
  bool probes = true, cases = true, instructions = true, bench = false;
  double most_silence = 120;  // [s] without output, before a child process is killed
  std::string program;        // this program, started with --one; empty: everything runs in this process
};

// The reason why there is no device; std::nullopt: report.device is set.
[[nodiscard]] std::optional<std::string> find_device(const CheckOptions& options, CheckReport& report);

// Throws InputError for an unknown kernel. `doing` is called before each step: "case lds_stage 3 of 17", "probe H5".
void check(const CheckOptions& options, CheckReport& report,
           const std::function<void(const std::string& doing)>& doing);

}  // namespace kvscope::gpu
