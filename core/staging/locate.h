// Finds the token whose value contains a given byte of the pool: the inverse of explain().
//
//   byte -> element -> [block, k_or_v, layer, page_row, head, head_dim] -> page of a sequence -> token
//
// The pool is the one that explain's link "byte" counts in: K and V of all layers as one 6-D tensor, the null page at
// its end; the scales of a quantized cache are another pool. Every byte of an element gives the element.
// Example: pool [33, 2, 2, 16, 2, 8] of f32, table row 0 = {7, 3}, byte 14'468: element 3617 = [3, 1, 0, 2, 0, 1], so
// page 1, slot 2 of sequence 0: V of token 18, layer 0, head 0, dim 1.
//
// Law: locate(byte of explain(q)) == q, except for a block of several sequences: then locate returns the lowest one.
//                                                              // held by tests/core/staging/locate_test.cpp
#pragma once

#include <cstdint>
#include <span>

#include "core/paging/cache_state.h"
#include "core/scenario/scenario.h"
#include "core/trace/explanation.h"

namespace kvscope {

// IndexError: the byte is outside the pool, in the null page, in a block that no sequence of the step's batch holds, or
// in a slot without a token; or the step is past the end of the run. No pool is allocated.
[[nodiscard]] trace::Question locate(const Scenario& scenario, std::span<const Request> requests, std::int64_t byte,
                                     StepIdx step);

// The same for a known state: the result of state_at() for the step.
[[nodiscard]] trace::Question locate(const Scenario& scenario, const CacheState& state, std::int64_t byte);

}  // namespace kvscope
