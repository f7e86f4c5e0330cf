// Functions of device code: entering one, leaving it, what it is passed and what it gives back.
#pragma once

#include <cstdint>

#include "gpu/virtual/machine/program/program.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

inline constexpr std::int32_t kMostCalls = 256;                    // of one another
inline constexpr std::int64_t kMostLocal = std::int64_t{1} << 19;  // [bytes] of a thread

// An activation of the kernel itself for a new warp.
void begin_kernel(Launch& launch, const Cta& cta, Warp& warp);

Flow run_call(Exec& exec, const Op& op, LaneMask lanes);
Flow run_ret(Exec& exec, const Op& op, LaneMask lanes);

// One lane group or activation less is in it; what nobody is in may be taken again.
void release(Warp& warp, std::int32_t activation);

// A lane's bytes of a param of the running activation. `address` as in address_operand.h, of a call's parameter.
[[nodiscard]] std::byte* call_param(Exec& exec, int lane, std::int64_t address);

}  // namespace kvscope::ptx
