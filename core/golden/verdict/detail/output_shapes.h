// The shapes in which kernels write an attention output, as the order of a golden: o [T, H, D] and lse [T, H].
//
//   o     [T, H * D]   [B, S, H * D]   [H, T, D]   [B, H, S, D]   padded: [B, S, H, D]
//   lse   [H, T]       [B, H, S]       padded: [B, H, S], [B, S, H]
//
// B sequences of S queries each, or, in padded shapes, of at most S: the first rows of a sequence are its queries. A
// shape that is also one of the golden's own ([B, queries, H, D], which has the same order) is left as it is: where
// H = S, and where H = T. A padded shape with two meanings is not changed, and rejected by the comparison.
#pragma once

#include <string>
#include <vector>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

// Rearranges o and lse of the candidate if they have another shape of the table, and returns a note for each. `golden`
// is a golden output: without o [T, H, D] and query_offsets nothing is changed.
std::vector<std::string> use_output_shapes(const Bundle& golden, Bundle& candidate);

}  // namespace kvscope::golden
