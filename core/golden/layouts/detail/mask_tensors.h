// Masks given as tensors: which keys each query sees, instead of a rule. mask_walk.h lists their forms.
//
// A mask whose heads see different keys, or with other biases than 0 and -inf, becomes the bias of the problem
// (attention/score_bias.h). With every other mask, the problem becomes one with a sequence for each query, whose keys
// are those that the query sees. Its golden output has the same rows, with query_offsets 0, 1, 2, ...
//
// A query that sees no key has o = 0 and lse = -inf, as FlashAttention and FlashInfer write it.
#pragma once

#include "core/golden/layouts/detail/layout_reader.h"
#include "core/golden/layouts/detail/layout_scales.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

// Call after read_queries and read_scales. Does nothing without a mask tensor. Reports faults to the reader.
void apply_mask_tensors(LayoutReader& reader, const CacheScales& scales, PreparedProblem& prepared);

}  // namespace kvscope::golden
