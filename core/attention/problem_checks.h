// Checks whether a problem can be computed, before any value is read. Every function of this folder that computes
// attention calls it first.
//
// Sizes are checked without reading K, V or a table, and all faults are thrown together (GeometryError). Then only the
// table entries of needed pages are read: the entry of a page that no query sees may have any value. An entry past the
// pool is an IndexError that names sequence, page, entry and pool size. Values are not checked: a NaN is a legal input.
//
// Precondition that cannot be checked: the pointers reach as far as the strides require.
#pragma once

#include "core/attention/mask.h"
#include "core/attention/problem.h"

namespace kvscope::attention {

// Example: batch 2 with key_lengths {5} and k.page_size 0 ->
//   attention problem rejected, 2 faults:
//     key_lengths: 1 entry, batch 2 needs 2
//     k.page_size: 0 tokens, a page holds at least 1
void check_problem(const Problem& problem);

// Queries of sequence `sequence`, and the keys that any of them sees: the tokens whose pages a flow may read.
// Precondition: `problem` has passed the size checks.
[[nodiscard]] std::int64_t query_count(const Problem& problem, std::int64_t sequence);
[[nodiscard]] KeyRange needed_keys(const Problem& problem, std::int64_t sequence);

}  // namespace kvscope::attention
