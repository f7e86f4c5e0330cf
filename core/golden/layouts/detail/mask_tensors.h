// Masks given as tensors: which keys each query sees, instead of a rule.
//
//   custom_mask         [sum of queries * keys] 0 or 1, the rows of all sequences in one list (FlashInfer)
//   packed_custom_mask  the same as bits of u8, lowest bit first; each sequence starts at a byte
//   tree_mask           [S, S] or [B, S, S] among the last S tokens of a sequence, its queries; all before are seen
//   attn_mask           [Sq, Sk], [B, Sq, Sk] or [B, Hq, Sq, Sk] (1 for B or Hq: shared), as PyTorch's SDPA and Hugging
//                       Face have it: 0 or 1 in a bool or integer type, or a float that is added to the score, -inf for
//                       a hidden key
//
// An attn_mask whose heads see different keys, or with other biases than 0 and -inf, becomes the bias of the problem
// (attention/score_bias.h). With every other mask, the problem becomes one with a sequence for each query, whose keys
// are those that the query sees. Its golden output has the same rows, with query_offsets 0, 1, 2, ...
#pragma once

#include "core/golden/layouts/detail/layout_reader.h"
#include "core/golden/layouts/detail/layout_scales.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

// Call after read_queries and read_scales. Does nothing without a mask tensor. Reports faults to the reader.
void apply_mask_tensors(LayoutReader& reader, const CacheScales& scales, PreparedProblem& prepared);

}  // namespace kvscope::golden
