// Limits of the code that a submission makes the grader run. Each has a default, an option of `kvscope lab check` and
// `lab grade`, and a message that names this option when a submission exceeds it. A grade depends on them: its reports
// have them, so that a grading can be repeated.
//
//   labs   option               default     limits
//   CUDA   --max-instructions   4,000,000   warp instructions of a launch
//   CUDA   --max-memory         64 MiB      arrays, variables and malloc blocks of a launch
//   CUDA   --max-local          64 MiB      local memory of all threads that have started
//   CUDA   --max-printed        64 KiB      output of printf
//   CUDA   --max-heap           1 MiB       malloc blocks that are not freed; past it malloc returns 0
//   CUDA   --max-mallocs        1000        malloc blocks of a launch, freed ones included
//   CUDA   --max-copies         100,000     asynchronous copies and groups of a CTA in flight
//   CUDA   --max-ptx            1 MiB       PTX of a compiled kernel
//   C++    --max-run-time       2 s         CPU time of a submitted program in a test; wall clock: three times as much
//   C++    --max-run-memory     512 MiB     memory of a submitted program
//   C++    --max-run-output     4 MiB       results of a submitted program in a test
//   both   --max-compile-time   20 s        CPU time of each compiler process; wall clock: one and a half times as much
//
// The first seven are those of `kvscope ptx run` (gpu/virtual/machine/limits.h). Labs make no cooperative launch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/labs/course.h"
#include "gpu/virtual/machine/limits.h"

namespace kvscope::labs {

struct LabLimits {
  ptx::LaunchLimits launch{.instructions = 4'000'000,
                           .local_bytes = std::int64_t{64} << 20,
                           .printed_bytes = 64 * 1024,
                           .heap_bytes = 1024 * 1024,
                           .heap_blocks = 1000,
                           .copies = 100'000};
  std::int64_t launch_memory = std::int64_t{64} << 20;  // [bytes]
  std::int64_t ptx_bytes = 1024 * 1024;
  std::int64_t run_seconds = 2;
  std::int64_t run_memory = std::int64_t{512} << 20;      // [bytes]
  std::int64_t run_output_bytes = std::int64_t{4} << 20;  // kept in memory
  std::int64_t compile_seconds = 20;
};

// The option, and its value in a grading: {"--max-run-time", 2}.
struct LimitValue {
  std::string option;
  std::int64_t value = 0;
  friend bool operator==(const LimitValue&, const LimitValue&) = default;
};

// A compiler may write at most this [bytes]: the program, or the PTX. So --max-ptx has no larger value.
inline constexpr std::int64_t kMaxProduct = std::int64_t{64} << 20;

// Those that apply to a lab of this kind, in the order above; none where no code of a submission runs.
[[nodiscard]] std::vector<LimitValue> limit_values(const LabLimits& limits, LabKind kind);

// All options, in the order above.
[[nodiscard]] std::vector<std::string> limit_options();

// An option that was given must have an effect. InputError, with the lab's options, if it does not apply to the lab.
void require_limit_of(const Lab& lab, const std::string& option);

// Those that differ from the defaults, as they are given on the command line: "--max-run-time 8 --max-ptx 4096". Empty:
// all are defaults.
[[nodiscard]] std::string changed_limits(std::span<const LimitValue> values);

// What a message about an exceeded limit ends in: "; a larger limit: --max-run-time". Empty without an option.
[[nodiscard]] std::string larger_limit(std::string_view option);

}  // namespace kvscope::labs
