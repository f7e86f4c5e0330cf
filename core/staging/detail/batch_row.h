// The row of a sequence in a step's lookup table. A sequence keeps its number for the whole run, but its row may change
// from step to step.
//
//   batch of step 7   sequence  4  9  2      batch_row_of(state, SeqIdx{9}) == SeqIdx{1}
//                     row       0  1  2      batch_text(state) == "4, 9, 2"
#pragma once

#include <optional>
#include <string>

#include "core/base/index.h"
#include "core/paging/cache_state.h"

namespace kvscope {

// Empty: the sequence is not in the step's batch.
[[nodiscard]] std::optional<SeqIdx> batch_row_of(const CacheState& state, SeqIdx seq);
// The same; IndexError when it is not: "sequence 5 is not in the batch of step 3, which holds 4, 9: ...".
[[nodiscard]] SeqIdx require_batch_row(const CacheState& state, SeqIdx seq);

// The sequences by row; of more than eight, the first eight and the number of all: "0, 1, 2, 3, 4, 5, 6, 7, ... 40 in
// all".
[[nodiscard]] std::string batch_text(const CacheState& state);

}  // namespace kvscope
