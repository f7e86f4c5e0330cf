// The results of a set of cases as text, JSON, JUnit XML and Markdown.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"
#include "gpu/launch/device_report.h"
#include "gpu/verify/run_case.h"

namespace kvscope::gpu {

// A result as text and numbers only, so that it can be passed between processes and stored in a file.
struct CaseRecord {
  std::string kernel, name, what;
  bool passed = false;
  double seconds = 0;
  std::vector<std::string> faults;  // empty: passed
};
[[nodiscard]] CaseRecord record_of(const CaseResult& result);
[[nodiscard]] json::Value to_json(const CaseRecord& record, const Costs* costs = nullptr);

struct VerifyReport {
  DeviceInfo device;
  std::string sum;                    // how the virtual GPU's matrix instructions add; "" on a GPU
  std::vector<CaseResult> results;    // in the order of all_kernels()
  std::vector<std::string> left_out;  // "gather4_tile_load hardware_form: needs sm_100a"
  [[nodiscard]] bool passed() const;
};

// One line per kernel, then each failed case with its faults; no times, so a machine without a GPU always prints the
// same:
//   gather_rows         19 cases  passed   sectors 18102 (1.00x ideal)
[[nodiscard]] std::string text_report(const VerifyReport& report);
[[nodiscard]] json::Value json_report(const VerifyReport& report);
[[nodiscard]] std::string junit_report(const VerifyReport& report);

}  // namespace kvscope::gpu
