// bar.sync, bar.arrive, bar.red: sixteen barriers of a CTA, on which warps arrive.
//
//   warps 0, 1 (producers)   bar.arrive 1, 128      count 64, and continue
//   warps 2, 3 (consumers)   bar.sync   1, 128      count 128: complete; only these two have waited
//
// A warp arrives when all its lanes that have not exited have arrived: at the same instruction or, for barrier.sync
// without .aligned, at any instruction with the same barrier and count. A barrier without a count waits for all warps
// that have not ended; if some have ended without it, that is reported as ABSENT_THREADS.
// Source: PTX ISA, "bar, barrier", including the rule that bar counts whole warps.
#pragma once

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// A lane has exited: barriers without a count may now be complete.
void look_again_at_named_barriers(Launch& launch, Cta& cta);
// Notes barriers at which warps have arrived and that are not complete when the CTA ends.
void check_named_barriers_at_end(Launch& launch, const Cta& cta);

}  // namespace kvscope::ptx
