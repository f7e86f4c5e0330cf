// The results of a check of a GPU: cases of every kernel, answers to the probes, instructions, times. Written as a JSON file and a
// Markdown file, named after the GPU and the date.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "gpu/hardware/instruction_results.h"
#include "gpu/verify/report.h"

namespace kvscope::gpu {

struct PartRecord {
  std::string name;
  std::string measured, verdict;  // of probe.h; also "failed" if its process ended without an answer
  json::Value expected;           // a string, or null: unknown
  std::vector<std::string> details;
};

struct ProbeRecord {
  std::string id, question, experiment;
  std::vector<PartRecord> parts;
  // The most severe verdict of its parts: failed, differs, settled, as expected, not applicable.
  [[nodiscard]] std::string verdict() const;
};

struct CheckReport {
  std::string date;  // "2026-03-01", of the host's clock
  DeviceInfo device;
  std::vector<CaseRecord> cases;
  std::vector<std::string> left_out;  // cases that need another architecture
  std::vector<ProbeRecord> probes;
  std::vector<InstructionSummary> instructions;
  std::string instruction_lines;  // of the file of instruction_results.h
  json::Value bench;              // null: not requested
  std::string bench_markdown;     // or why there is none
  bool bench_passed = true;
  // True if no case failed, every probe has an answer and none differs, every instruction ran, the benchmark met its
  // targets, and something ran. Instructions may differ: approximations have no exact result.
  [[nodiscard]] bool passed() const;
};

// The file name without its suffix: "report-nvidia-h200-2026-03-01".
[[nodiscard]] std::string report_name(const CheckReport& report);
[[nodiscard]] std::string today();  // "2026-03-01"

// A short text: counts, failed cases with the first line of their faults, probes that differ or were settled.
[[nodiscard]] std::string summary(const CheckReport& report);
[[nodiscard]] json::Value json_report(const CheckReport& report);
// The file that keeps the results of the instructions, and its name: "instructions-nvidia-h200-2026-03-01.txt".
[[nodiscard]] std::string instruction_file(const CheckReport& report);
[[nodiscard]] std::string instruction_file_name(const CheckReport& report);
[[nodiscard]] std::string markdown_report(const CheckReport& report);
// Writes the files of the report, all or none. Returns the path of the first two without their suffix.
std::string write_report(const CheckReport& report, const std::string& folder);

}  // namespace kvscope::gpu
