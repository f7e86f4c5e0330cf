// One pass over the elements of o: masks, errors over their bounds, the evidence of each row, and the measures.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/golden/verdict/compare.h"
#include "core/golden/verdict/detail/judged.h"
#include "core/golden/verdict/detail/locator.h"
#include "core/golden/verdict/tolerance.h"

namespace kvscope::golden {

struct OutputPass {
  MaskCount masks;  // of the golden rounded to the output's type
  Judged judged;
  std::vector<RowEvidence> evidence;  // [query, head]; empty with a fixed tolerance
  Measures measures;
  std::map<std::pair<std::int64_t, std::int64_t>, HeadSummary> summaries;  // (sequence, head) with failing elements
};

// `o` is the candidate's; it and the golden have been checked (comparable.h). With `fixed`, elements are judged by that
// tolerance instead of the bound for `rounding`.
//
// Blocks of finite elements are judged in vectors, with bounds that differ from attention::OutputBudgets::of by 1e-14
// of their value. Elements that could fail, or be the worst, are judged again with of(), so that the verdict and its
// numbers are those of of(). Blocks with NaN or infinities are judged one element at a time.
[[nodiscard]] OutputPass pass_over_output(const Bundle& golden, const Tensor& o, const attention::Rounding& rounding,
                                          const std::optional<Tolerance>& fixed, const Locator& locator);

}  // namespace kvscope::golden
