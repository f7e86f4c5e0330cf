// What a launch must obey before its first instruction; every rule that it breaks is one fault.
//
//   block       1 to 1024 threads, x and y up to 1024, z up to 64; .maxntid not passed, .reqntid met
//   grid        x up to 2^31 - 1, y and z up to 65535
//   shared      48 KiB, or what was opted in for: up to 227 KiB (sm_90, sm_100), 99 KiB (sm_120)
//   params      exactly the bytes of the kernel's block
//   cluster     up to 8 CTAs, 16 when not portable; divides the grid; .reqnctapercluster met
//   target      the machine's covers the module's; sm_90a is for sm_90 alone
//
// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// Shared memory that a kernel of that target may opt in for. // [bytes]
[[nodiscard]] constexpr std::int64_t most_shared(int target) {
  return target >= 120 ? 101376 : 232448;
}

[[nodiscard]] std::vector<Fault> launch_faults(const Program& program, const LaunchConfig& config);
// The kernel of that name, -1: none.
[[nodiscard]] std::int32_t find_kernel(const Program& program, std::string_view name);
// "none there" of a name: "no kernel 'scael': there are 'scale', 'sum'".
[[nodiscard]] std::string unknown_kernel(const Program& program, std::string_view name);

}  // namespace kvscope::ptx
