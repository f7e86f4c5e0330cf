// Compares output and log-sum-exp of an attention kernel with the golden reference: each element within the bound of
// core/attention/bounds.h; cases add no tolerances. A wrong output is diagnosed (core/golden/diagnosis/diagnose.h).
//
//   sequence 2, query 5, head 1, dim 17 (block 9, slot 5 is its last key): 0.5 instead of
//   0.25, 31 times the bound; 12 of 4096 elements
//   diagnosis  page 3 of sequence 2 was read from block 11, not 40
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/attention/problem.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"

namespace kvscope::gpu {

// `out` is [total_queries, query_heads, v.head_size] of `dtype`, `lse` [total_queries, query_heads]. Adds the faults to
// `verdict` and sets its diagnosis if there are any.
void check_attention(Verdict& verdict, const attention::Problem& problem, DType dtype, std::span<const std::byte> out,
                     std::span<const float> lse, const SurroundingCache& around = {});

}  // namespace kvscope::gpu
