// The names under which a file may hold an attention output: `o`, `out` or `output`, and `lse`, `softmax_lse` or
// `logsumexp`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

// "o, out or output": the accepted names of `o` or `lse`, for messages.
[[nodiscard]] std::string output_names(std::string_view name);

// Renames the output in `candidate` to `o` and `lse`, if `golden` has these tensors, and returns one note for each
// renamed tensor. Then it rearranges them, if they have a shape of detail/output_shapes.h: lse [H, T] becomes [T, H].
// A tensor that `golden` has under the same name keeps it. `source` is the candidate's file; the tensor of a .npy file
// has no name and is `o`, unless the file is called like another tensor of `golden`, such as lse.npy.
// Throws InputError(source) if the candidate holds one tensor under two of its names: it is unknown which to compare.
// And for a .npy file whose tensor is `o` only for want of a name, if the file is called q or query, or if the tensor
// has a type that no output has or another number of elements than the golden's `o`.
// Example: {"out", "softmax_lse"} -> {"o", "lse"}, notes "candidate 'out' is compared as 'o'" and the same for lse.
std::vector<std::string> use_output_names(const Bundle& golden, Bundle& candidate, std::string_view source);

}  // namespace kvscope::golden
