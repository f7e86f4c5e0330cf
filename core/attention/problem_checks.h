// Whether a problem can be computed at all, asked once before any value is read. Every
// flow of this folder calls it first.
//
// Sizes are judged without touching K, V or a table, and all faults are thrown together (GeometryError). Then the
// table entries of needed pages are read, and only those: an entry of a page that no query sees may be anything.
// An entry past the pool is an IndexError that names sequence, page, entry and pool size. Values are never
// judged: a NaN is a legal input.
//
// Who owes what cannot be checked here: the caller, that the pointers reach as far as the strides say.
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
// `problem` has passed the size checks.
[[nodiscard]] std::int64_t query_count(const Problem& problem, std::int64_t sequence);
[[nodiscard]] KeyRange needed_keys(const Problem& problem, std::int64_t sequence);

}  // namespace kvscope::attention
