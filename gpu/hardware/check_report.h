// What a check of a GPU found: cases of every kernel, answers to the probes, times. A JSON file for programs and a
// Markdown file for people, named after the GPU and the day.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "gpu/verify/report.h"

namespace kvscope::gpu {

struct PartRecord {
  std::string name;
  std::string measured, verdict;  // of probe.h; "failed" also when its process ended without an answer
  json::Value expected;           // a string, or null: no one knows
  std::vector<std::string> details;
};

struct ProbeRecord {
  std::string id, question, experiment;
  std::vector<PartRecord> parts;
  // The weightiest of its parts' verdicts: failed, differs, settled, as expected, not applicable.
  [[nodiscard]] std::string verdict() const;
};

struct CheckReport {
  std::string date;  // "2026-03-01", of the host's clock
  DeviceInfo device;
  std::vector<CaseRecord> cases;
  std::vector<std::string> left_out;  // cases that need another architecture
  std::vector<ProbeRecord> probes;
  json::Value bench;           // null: not asked for
  std::string bench_markdown;  // or why there is none
  bool bench_passed = true;
  // No case failed, every probe has an answer and none differs, the benchmark met its targets; and something ran.
  [[nodiscard]] bool passed() const;
};

// "report-nvidia-h200-2026-03-01", without an ending.
[[nodiscard]] std::string report_name(const CheckReport& report);
[[nodiscard]] std::string today();  // "2026-03-01"

// A screenful: counts, what failed with the first line of why, probes that differ or were settled.
[[nodiscard]] std::string summary(const CheckReport& report);
[[nodiscard]] json::Value json_report(const CheckReport& report);
[[nodiscard]] std::string markdown_report(const CheckReport& report);

}  // namespace kvscope::gpu
