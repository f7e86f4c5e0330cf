// Control flow: branches, the end of a kernel, unsupported instructions. Also three wrappers around pure computations
// that need more than registers: a clock, a divisor that may be zero, all lanes of the warp.
#pragma once

#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// Whether a register's value changes while the kernel runs: clocks and timers. Others are constant within an
// activation.
[[nodiscard]] bool is_running(SpecialRegister special);

Flow run_uniform_branch(Exec& exec, const Op& op, LaneMask lanes);  // a guarded bra.uni
Flow run_indexed_branch(Exec& exec, const Op& op, LaneMask lanes);  // brx.idx
Flow run_unsupported(Exec& exec, const Op& op, LaneMask lanes);     // reports why, and ends the launch

Flow run_clock(Exec& exec, const Op& op, LaneMask lanes);
Flow run_division(Exec& exec, const Op& op, LaneMask lanes);
Flow run_aligned(Exec& exec, const Op& op, LaneMask lanes);         // mma, movmatrix
Flow run_sparse_aligned(Exec& exec, const Op& op, LaneMask lanes);  // mma.sp

// Whether all lanes of the warp are at this instruction. If not, sets the lane group's wait, for Flow::waits.
[[nodiscard]] bool all_lanes_here(Exec& exec, LaneMask lanes);

}  // namespace kvscope::ptx
