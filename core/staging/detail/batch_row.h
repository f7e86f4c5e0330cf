// Where a sequence stands among the requests of a step: its row of the lookup table. A sequence keeps its number for
// the whole run, but not its row.
//
//   batch of step 7   sequence  4  9  2      batch_row_of(state, SeqIdx{9}) == SeqIdx{1}
//                     row       0  1  2      batch_text(state) == "4, 9, 2"
#pragma once

#include <optional>
#include <string>

#include "core/base/index.h"
#include "core/paging/cache_state.h"

namespace kvscope {

// Nothing: the sequence has no part in the step.
[[nodiscard]] std::optional<SeqIdx> batch_row_of(const CacheState& state, SeqIdx seq);
// IndexError then, with who has: "sequence 5 is not in the batch of step 3, which holds 4, 9: ...".
[[nodiscard]] SeqIdx require_batch_row(const CacheState& state, SeqIdx seq);

// The sequences by row; of more than eight the first ones and how many there are: "0, 1, 2, 3, 4, 5, 6, 7, ... 40 in
// all".
[[nodiscard]] std::string batch_text(const CacheState& state);

}  // namespace kvscope
