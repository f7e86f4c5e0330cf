// The inner loop: one warp runs until it waits, ends, or has used up its turn.
//
// A pure computation costs one indirect call, and a branch that all lanes take costs no call. All other instructions
// use a machine handler (semantics/op.h, Flow).
#pragma once

#include <cstdint>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// Runs at most `most` warp instructions and returns how many it ran. An instruction that waits is counted once
// complete.
std::int64_t run_warp(Launch& launch, Cta& cta, Warp& warp, std::int64_t most);

}  // namespace kvscope::ptx
