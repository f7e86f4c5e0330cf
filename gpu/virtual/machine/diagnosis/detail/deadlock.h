// Diagnoses a launch that makes no progress: what each lane group waits for, which threads are missing, the likely
// cause.
#pragma once

#include <cstdint>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// Reports that no lane group can continue: DEADLOCK, DIVERGED if lanes of a warp wait for each other, or GLOBAL_SPIN if
// only polling loops remain.
void report_deadlock(Launch& launch);
// Reports that max_instructions are exhausted: RUNAWAY with the most frequently taken backward branches.
void report_runaway(Launch& launch);
// True if every warp that can continue returns to its exact state, registers included, without an event. Runs on a copy
// of the machine and its memory.
[[nodiscard]] bool spins_in_vain(const Launch& launch);

}  // namespace kvscope::ptx
