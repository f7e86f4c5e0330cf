// The reports of one program: those of its kernels, with the runtime calls that they are about, and those of the runtime
// calls themselves. Each is printed when it is found, so that a program that aborts later has printed it.
//
//   USE_AFTER_FREE  cudaMemcpy  0x200000000 (64 bytes)
//     call 4, cudaMemcpy, by main (app+0x12f4)
//     allocated by call 1, cudaMalloc of 64 bytes, by main (app+0x1275)
//     freed by call 3, cudaFree, by main (app+0x12c1)
//     copy before the memory is freed
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/virtual/machine/diagnosis/report.h"

namespace kvscope::driver {

struct ProgramReport {
  std::string kind;  // "RACE_WR", "LEAK", "HOST_POINTER"
  ptx::Severity severity = ptx::Severity::error;
  std::string text;       // all lines, no newline at the end
  std::string function;   // the runtime function that was called: "cudaLaunchKernel"; "": at exit
  std::int64_t call = 0;  // ordinal of that call; 0: at exit
  std::string kernel;     // "": not about a kernel
  std::string source;     // "scale.cu:5"; "": unknown
};

class ProgramReports {
 public:
  // Prints to standard error if `prints`. A note is stored but does not count as a finding.
  void add(ProgramReport report, bool prints);
  [[nodiscard]] const std::vector<ProgramReport>& all() const { return reports_; }
  [[nodiscard]] std::int64_t findings() const { return findings_; }  // of severity warning or error
  void clear() { *this = {}; }

 private:
  std::vector<ProgramReport> reports_;
  std::int64_t findings_ = 0;
};

struct ProgramRun {
  std::string program;      // its name
  std::string sum = "seq";  // how matrix instructions added
};
enum class ReportFormat : std::uint8_t { text, json, junit, sarif };
// "json", or by the ending of a path: .json, .xml, .sarif; any other is text. Throws InputError for an unknown name.
[[nodiscard]] ReportFormat report_format(const std::string& name, const std::string& path);
[[nodiscard]] std::string format_reports(const std::vector<ProgramReport>& reports, ReportFormat format,
                                         const ProgramRun& run);

}  // namespace kvscope::driver
