// The inner loop: one warp runs until it waits, ends, or has used up its turn.
//
// A pure computation is one call by pointer, a branch that all lanes take none at all. Everything else is a machine
// handler (semantics/op.h, Flow).
#pragma once

#include <cstdint>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// At most `most` warp instructions; how many it ran. Instructions that wait are counted when they are done.
std::int64_t run_warp(Launch& launch, Cta& cta, Warp& warp, std::int64_t most);

}  // namespace kvscope::ptx
