// The parts of a cut that are made anew: queries, masks and the tensors of the table.
#pragma once

#include "core/golden/reduce/detail/sliced_input.h"
#include "core/golden/reduce/detail/tensor_cut.h"
#include "core/golden/reduce/slice.h"

namespace kvscope::golden {

// Pages of the sequence that are kept, and its keys in them.
[[nodiscard]] std::int64_t pages_of(const SequenceSlice& sequence, std::int64_t page_size);
[[nodiscard]] std::int64_t kept_keys(const SequenceSlice& sequence, std::int64_t page_size);

// The positions [first, end) of a padded cache that a slice keeps.
struct KeptPositions {
  std::int64_t first = 0, end = 0;
};
[[nodiscard]] KeptPositions kept_positions(const SlicedInput& input, const ProblemSlice& slice);

// The tokens of a cache without blocks (forms ragged and chunk) that a slice keeps, in their order.
[[nodiscard]] Indices kept_tokens(const SlicedInput& input, const Bundle& tensors, const ProblemSlice& slice);

// Each adds its tensors to `made`. `blocks`: the kept ones; `heads`: of q. InputError: slice.h.
void cut_table(const SlicedInput& input, const Bundle& tensors, const ProblemSlice& slice, const Indices& blocks,
               Bundle& made);
void cut_queries(const SlicedInput& input, const Bundle& tensors, const ProblemSlice& slice, const Indices& heads,
                 std::int64_t dims, Bundle& made);
void cut_mask(const SlicedInput& input, const Bundle& tensors, const ProblemSlice& slice, const Indices& heads,
              Bundle& made);

}  // namespace kvscope::golden
