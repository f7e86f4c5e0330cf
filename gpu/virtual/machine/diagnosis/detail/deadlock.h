// Why a launch goes on no more: what each lane group waits for, who is missing, and what is usually wrong then.
#pragma once

#include <cstdint>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// Nobody can go on: DEADLOCK, DIVERGED for lanes of a warp that wait for one another, or GLOBAL_SPIN when polling loops
// are all that is left.
void report_deadlock(Launch& launch);
// max_instructions are used up: RUNAWAY with the branches that went backwards most often.
void report_runaway(Launch& launch);
// Every warp that can go on comes back to exactly where it was, registers and all, without an event on the way. Tried
// on a copy of the machine and its memory.
[[nodiscard]] bool spins_in_vain(const Launch& launch);

}  // namespace kvscope::ptx
