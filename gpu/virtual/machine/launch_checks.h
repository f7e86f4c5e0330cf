// The rules that a launch must satisfy before its first instruction; each broken rule is one fault.
//
//   block       1 to 1024 threads, x and y up to 1024, z up to 64; .maxntid not exceeded, .reqntid matched
//   grid        x up to 2^31 - 1, y and z up to 65535
//   shared      48 KiB, or the opted-in size: up to 227 KiB (sm_90, sm_100), 99 KiB (sm_120)
//   params      exactly the bytes of the kernel's block
//   cluster     up to 8 CTAs, 16 if non-portable; divides the grid; .reqnctapercluster matched
//   target      the machine's target covers the module's; sm_90a runs on sm_90 only
//
//   local       512 KiB per thread, and 512 KiB of .param variables; one cluster within limits.local_bytes
//   cooperative limits.cooperative_ctas, all within limits.local_bytes
//   ctas        a sample (cta_sample.h) of a kernel whose CTAs do not wait for one another
//
// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/machine/device_limits.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// What the kernel's own .local and .param variables take in one CTA. // [bytes]
[[nodiscard]] std::int64_t local_bytes_of_cta(const LaunchConfig& config, const Program& program, std::int32_t kernel);

[[nodiscard]] std::vector<Fault> launch_faults(const Program& program, const LaunchConfig& config);
// The kernel with that name; -1: none.
[[nodiscard]] std::int32_t find_kernel(const Program& program, std::string_view name);
// The message for an unknown name: "no kernel 'scael': there are 'scale', 'sum'".
[[nodiscard]] std::string unknown_kernel(const Program& program, std::string_view name);

}  // namespace kvscope::ptx
