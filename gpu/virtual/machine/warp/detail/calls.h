// Calls of device functions: entry, return, arguments and results.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/virtual/machine/program/program.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

inline constexpr std::int32_t kMostCalls = 256;  // maximum call depth

// Creates the activation of the kernel itself for a new warp.
void begin_kernel(Launch& launch, const Cta& cta, Warp& warp);

// Extends the local memory of `lanes` to `end` bytes each. False, and nothing changes, if the launch's threads would
// then have more than limits.local_bytes.
[[nodiscard]] bool grow_local(Launch& launch, Warp& warp, LaneMask lanes, std::int64_t end);
// The report of that: the object that needs `bytes` of `what` per thread.
[[nodiscard]] Report over_local(const Launch& launch, std::string_view object, std::int64_t bytes,
                                std::string_view what = "local memory");

Flow run_call(Exec& exec, const Op& op, LaneMask lanes);
Flow run_ret(Exec& exec, const Op& op, LaneMask lanes);

// Removes one user (lane group or activation) of an activation; an activation without users may be reused.
void release(Warp& warp, std::int32_t activation);

// A lane's bytes of a call parameter of the running activation. `address` as in address_operand.h.
[[nodiscard]] std::byte* call_param(Exec& exec, int lane, std::int64_t address);

}  // namespace kvscope::ptx
