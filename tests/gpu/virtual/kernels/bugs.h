// Kernels with one mistake each: the mistake, the launch, and the expected reports.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/virtual/machine/diagnosis/report.h"
#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test {

struct Finding {
  ReportKind kind;
  std::vector<std::string> words;  // all of them occur in the text of one report of that kind
};

struct Outcome {
  LaunchResult result;
  bool right_numbers = true;  // the output equals that of the correct kernel
};

struct SeededBug {
  const char* name;  // "B01_NoExpect"
  const char* what;
  std::function<Outcome(const Schedule&)> run;
  std::vector<Finding> findings;  // under policy late
  bool wrong_numbers = false;     // no report is an error, but the output is wrong
};

// In the order of their numbers.
[[nodiscard]] const std::vector<SeededBug>& seeded_bugs();

// The same small kernels without the mistake: each must be clean.
struct FixedTwin {
  const char* name;
  std::function<LaunchResult(const Schedule&)> run;
};
[[nodiscard]] const std::vector<FixedTwin>& fixed_twins();

}  // namespace kvscope::ptx::test
