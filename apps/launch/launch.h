// One launch of a kernel of a PTX file, and its preparation: file, kernel, extents, arguments. options.h reads it from
// a command line.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/launch/arguments.h"
#include "gpu/virtual/machine/device.h"

namespace kvscope::apps {

struct LaunchRequest {
  std::string path;
  std::string entry;
  std::vector<std::int64_t> grid{1}, block, cluster;
  std::int64_t shared = 0;  // [bytes] dynamic, per CTA
  std::vector<std::string> args, structs;
  std::string policy = "late";
  std::string sum = "seq";
  std::optional<int> target;  // none: that of the file (ptx::target_for)
  ptx::LaunchLimits limits;
  std::int64_t max_memory = std::int64_t{4} << 30;  // [bytes] host memory backs all of it
  bool cooperative = false;
  std::string ctas;  // a sample; "": all
  bool strict = false;
  bool contract = false;
  friend bool operator==(const LaunchRequest&, const LaunchRequest&) = default;
};

struct PreparedLaunch {
  std::unique_ptr<ptx::Device> device;
  const ptx::LoadedModule* module = nullptr;  // of the device
  ptx::LaunchConfig config;
  KernelArguments arguments;
};
// Throws InputError for faults of the file, the options or the arguments. `keeps_registers`: each register keeps its
// value to the end of its function, so that a debugger can print it.
[[nodiscard]] PreparedLaunch prepare(const LaunchRequest& request, bool keeps_registers = false);

[[nodiscard]] std::string extents_text(const std::array<std::int64_t, 3>& extents);  // "10", "4x2", "4x2x2"

}  // namespace kvscope::apps
