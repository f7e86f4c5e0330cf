// The kept mutants (mutants/mutants.py): kernels with one mistake each, as PTX that differs from a base in a few lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/launch/virtual_gpu.h"
#include "gpu/verify/run_case.h"
#include "tests/gpu/launch/forwarding_device.h"

namespace kvscope::gpu {

struct KeptMutant {
  std::string name, mistake, base, fails;
  std::vector<std::string> cases;
  std::vector<std::string> difference;  // from the base's lines
};

[[nodiscard]] const std::vector<KeptMutant>& kept_mutants();  // by name
[[nodiscard]] std::string base_ptx(const std::string& base);
[[nodiscard]] std::string mutated_ptx(const KeptMutant& mutant);
[[nodiscard]] const Kernel& kernel_of(const std::string& base);
[[nodiscard]] const Case& case_of(const Kernel& kernel, const std::string& name);

// A virtual GPU with a mutant's PTX that stores the reports of its launches. `Reports::hidden`: the case does not see
// them, and compares the output that the launch left.
enum class Reports : std::uint8_t { returned, hidden };
class WatchedDevice final : public test::ForwardingDevice {
 public:
  WatchedDevice(const std::string& architecture, const std::string& kernel, const std::string& ptx,
                Reports shown = Reports::returned)
      : ForwardingDevice(device_),
        shown_(shown),
        device_({.architecture = architecture, .most_instructions = 5'000'000}) {
    device_.use_ptx(kernel, ptx);
  }
  Outcome launch(const KernelLaunch& launch, std::span<const std::byte> params) override {
    Outcome outcome = device_.launch(launch, params);
    reports.insert(reports.end(), outcome.faults.begin(), outcome.faults.end());
    if (shown_ == Reports::hidden) outcome.faults.clear();
    return outcome;
  }

  std::vector<std::string> reports;

 private:
  Reports shown_;
  VirtualGpu device_;
};

}  // namespace kvscope::gpu
