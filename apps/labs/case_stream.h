// Cases and results of a C++ lab, as bytes on the pipes of the student's process. The other end is
// docs/labs/harness/cases.h.
//
//   frame   u64 count, then `count` words of 8 bytes, little endian: i64, or a double by its bits
//
// A case goes in as one frame; its result comes back as one frame. Expected values are never sent.
// Example: the case {2, 5} is 24 bytes: 02 00.. 02 00.. 05 00..
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/labs/compile.h"

namespace kvscope::labs {

using Words = std::vector<std::int64_t>;

[[nodiscard]] std::int64_t word_of(double value);
[[nodiscard]] double double_of(std::int64_t word);

struct HarnessRun {
  std::vector<Words> results;  // of the cases that were answered, in order; at most one per case
  std::string failure;         // why the later cases have none: a signal, the time limit, a malformed frame
  int signal = 0;              // that ended the program; 0: none
  std::string printed;         // what the student's code wrote to standard error, cut
};

// Runs the program once over all cases, under the limits of the options. `memory`: [bytes] of a test in which too
// little memory is the point; no option changes them.
[[nodiscard]] HarnessRun run_cases(const GradeOptions& options, const std::string& program,
                                   std::span<const Words> cases, std::optional<std::int64_t> memory = std::nullopt);

}  // namespace kvscope::labs
