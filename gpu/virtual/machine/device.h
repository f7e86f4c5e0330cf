// The host interface of the virtual GPU: memory, modules, launches.
//
//   Device device;
//   const LoadedModule& module = device.load(parse_module(text, "scale.ptx"));
//   const std::uint64_t x = device.memory().allocate(4000, "x");
//   LaunchConfig config{.kernel = "scale", .grid = {10, 1, 1}, .block = {100, 1, 1}};
//   config.params = pack_params(module, "scale", {x, 1000});
//   LaunchResult result = device.launch(module, config);
//
// Deterministic: the same calls give the same bytes, steps and reports on every host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// A program, with device addresses for its global and const variables.
struct LoadedModule {
  std::shared_ptr<const Program> program;
  std::vector<std::pair<std::int32_t, std::uint64_t>> addresses;  // variable -> device address
};

struct LaunchResult {
  LaunchStatus status = LaunchStatus::finished;
  std::uint64_t steps = 0;  // warp instructions
  std::vector<Report> reports;
  std::int64_t repeated_reports = 0;
  std::string printed;
  std::int64_t ctas = 0, grid_ctas = 0;  // that ran, and of the whole grid: more in a sampled launch

  std::int64_t jobs = 1;        // threads that were asked for
  std::int32_t threads = 1;     // that ran the CTAs
  std::string one_thread = {};  // why one did although several were asked for; "": neither

  // True if the launch finished, and no report is an error or a warning.
  [[nodiscard]] bool clean() const;
  // "sampled: 4 of 10 CTAs ran"; "": all of them did.
  [[nodiscard]] std::string sample_text() const;
  // "4 threads", "one thread: it is cooperative"; "": one thread was asked for.
  [[nodiscard]] std::string jobs_text() const;
};

// Of a launch that is not running. Moves its printed text.
[[nodiscard]] LaunchResult result_of(Launch& launch);

class Device {
 public:
  explicit Device(ProgramOptions options = {}, std::int64_t most_bytes = kDeviceBytes);

  [[nodiscard]] DeviceMemory& memory() { return memory_; }
  [[nodiscard]] int target() const { return options_.target; }  // 90 for sm_90a
  void set_sum(SumMode sum) { options_.sum = sum; }             // of modules that are loaded from now on
  // Throws InputError with the module's errors.
  const LoadedModule& load(Module module);
  // Throws GeometryError with every rule that the launch breaks, before anything runs. `monitor` may be null.
  LaunchResult launch(const LoadedModule& module, const LaunchConfig& config, Monitor* monitor = nullptr);
  // Creates the launch without running it; run_until and step run it (scheduler.h).
  [[nodiscard]] Launch begin(const LoadedModule& module, const LaunchConfig& config, Monitor* monitor = nullptr);

 private:
  ProgramOptions options_;
  DeviceMemory memory_;
  std::vector<std::unique_ptr<LoadedModule>> modules_;
  std::uint64_t new_grid_workspace();

  std::int64_t launches_ = 0;
  std::uint64_t grid_workspace_ = 0;  // device address; 0: no launch has needed one
};

// One value of a kernel's parameter block: a scalar as its bits (truncated to the parameter's size), or a block of
// bytes of exactly the parameter's size (structs, tensor maps).
using ParamValue = std::variant<std::uint64_t, double, std::vector<std::byte>>;
// Throws GeometryError with all faults: a wrong number of values, sizes that do not match.
[[nodiscard]] std::vector<std::byte> pack_params(const LoadedModule& module, std::string_view kernel,
                                                 const std::vector<ParamValue>& values);

}  // namespace kvscope::ptx
