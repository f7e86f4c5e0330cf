// bar.sync, bar.arrive, bar.red: sixteen barriers of a CTA, on which warps arrive.
//
//   warps 0, 1 (producers)   bar.arrive 1, 128      count 64, and go on
//   warps 2, 3 (consumers)   bar.sync   1, 128      count 128: complete; only these two have waited
//
// A warp arrives when all its lanes that have not exited are there: at one instruction, or, of barrier.sync without
// .aligned, at any with the same barrier and count. Without a count a barrier waits for all warps that have not ended.
// Source: PTX ISA, "bar, barrier"; the counting by warps as it says for bar.
#pragma once

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// A lane has exited: barriers without a count may be complete now.
void look_again_at_named_barriers(Launch& launch, Cta& cta);

}  // namespace kvscope::ptx
