// What a set of cases gave, for a person, a program, a build server and a page.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"
#include "gpu/verify/run_case.h"

namespace kvscope::gpu {

struct VerifyReport {
  DeviceInfo device;
  std::vector<CaseResult> results;    // in the order of the chain
  std::vector<std::string> left_out;  // "gather4_tile_load hardware_form: needs sm_100a"
  [[nodiscard]] bool passed() const;
};

// One line a kernel, then each failed case with its faults; no times, so that a machine without a GPU always prints the same:
//   gather_rows         19 cases  passed   sectors 18102 (1.00x ideal)
[[nodiscard]] std::string text_report(const VerifyReport& report);
[[nodiscard]] json::Value json_report(const VerifyReport& report);
[[nodiscard]] std::string junit_report(const VerifyReport& report);
[[nodiscard]] std::string markdown_report(const VerifyReport& report);

[[nodiscard]] std::string device_line(const DeviceInfo& device);  // "NVIDIA H200, sm_90a, 132 SMs, driver CUDA 13.0"

}  // namespace kvscope::gpu
