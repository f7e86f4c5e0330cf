// The whole check of a GPU, from a process that never touches it: everything that runs on the GPU does so in a process
// of its own (one.h), which may crash, hang, or lose its context. What such a process had said counts; the case it had
// begun is failed with how it ended; the cases behind that one go on in the next process.
//
//   CheckReport report;
//   if (const auto none = find_device(options, report)) ...   nothing to check, and the driver's words
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
  bool probes = true, cases = true, bench = false;
  double most_silence = 120;  // [s] between two lines of a process, before it is killed
  std::string program;        // this one, to be started with --one; empty: everything happens in this process
};

// The words of why there is no device; nothing: report.device is it.
[[nodiscard]] std::optional<std::string> find_device(const CheckOptions& options, CheckReport& report);

// InputError: no such kernel. `doing` hears what is begun: "case lds_stage 3 of 17", "probe H5".
void check(const CheckOptions& options, CheckReport& report,
           const std::function<void(const std::string& doing)>& doing);

}  // namespace kvscope::gpu
