// What a set of cases gave, for a person, a program and a build server.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"
#include "gpu/launch/device_report.h"
#include "gpu/verify/run_case.h"

namespace kvscope::gpu {

// A result as text and numbers alone: what travels between processes and is kept in a file.
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
  std::vector<CaseResult> results;    // in the order of the chain
  std::vector<std::string> left_out;  // "gather4_tile_load hardware_form: needs sm_100a"
  [[nodiscard]] bool passed() const;
};

// One line a kernel, then each failed case with its faults; no times, so that a machine without a GPU always prints the same:
//   gather_rows         19 cases  passed   sectors 18102 (1.00x ideal)
[[nodiscard]] std::string text_report(const VerifyReport& report);
[[nodiscard]] json::Value json_report(const VerifyReport& report);
[[nodiscard]] std::string junit_report(const VerifyReport& report);

}  // namespace kvscope::gpu
