// A virtual GPU with the checks of a whole program: unlike the checks of one launch, it records which bytes of device memory
// have been written from one launch to the next, and by the host in between.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/machine/device.h"

namespace kvscope::driver {

struct EngineOptions {
  int target = 90;  // sm_90a; 100: sm_100a
  ptx::Policy policy = ptx::Policy::late;
  std::uint64_t seed = 0;  // for policy seeded: not 0
  ptx::SumMode sum = ptx::SumMode::seq;
  std::vector<std::string> checks{"all"};
  bool global_init = true;  // reads of device memory that nothing has written
  ptx::LaunchLimits limits;
  std::int64_t memory = std::int64_t{4} << 30;  // [bytes] of device memory; the host's memory backs all of it
  int max_reports = 20;                         // per launch
  std::string ctas;                             // of each launch, those that run (cta_sample.h); "": all
  std::int64_t jobs = 1;                        // threads of a launch: launch_parts.h
  bool keeps_registers = false;                 // to the end of their function, so that a debugger can print them
};

// Runs a launch with the monitor of all checks; the default is Device::launch.
using Launcher =
    std::function<ptx::LaunchResult(ptx::Device&, const ptx::LoadedModule&, const ptx::LaunchConfig&, ptx::Monitor*)>;

class Engine {
 public:
  explicit Engine(EngineOptions options = {});

  [[nodiscard]] const EngineOptions& options() const { return options_; }
  void set_sum(ptx::SumMode sum);                                            // of modules that are loaded from now on
  void set_heap(std::int64_t bytes) { options_.limits.heap_bytes = bytes; }  // of malloc in kernels
  [[nodiscard]] ptx::DeviceMemory& memory() { return device_.memory(); }
  [[nodiscard]] ptx::InitChecker& written() { return written_; }

  const ptx::LoadedModule& load(std::string ptx, const std::string& file);
  // Takes the schedule and the limits from the options. Throws GeometryError with each rule that the launch breaks.
  ptx::LaunchResult launch(const ptx::LoadedModule& module, ptx::LaunchConfig config);
  void set_launcher(Launcher launcher) { launcher_ = std::move(launcher); }
  [[nodiscard]] std::int64_t ctas() const { return ctas_; }            // that ran, of all launches
  [[nodiscard]] std::int64_t grid_ctas() const { return grid_ctas_; }  // more if launches were sampled
  // "6 of 8 launches on 4 threads, the others on one, the first of them because it has one CTA"; "": one thread was asked for.
  [[nodiscard]] std::string jobs_text() const;
  [[nodiscard]] std::uint64_t warp_instructions() const { return warp_instructions_; }  // of all launches

 private:
  EngineOptions options_;
  ptx::Device device_;
  ptx::InitChecker written_;
  Launcher launcher_;
  std::uint64_t warp_instructions_ = 0;
  std::int64_t ctas_ = 0, grid_ctas_ = 0;
  std::int64_t launches_ = 0, parted_ = 0;  // parted_: on several threads
  std::string one_thread_;                  // why the first of the others was not
};

}  // namespace kvscope::driver
