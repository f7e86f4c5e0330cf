// Which single page of a sequence a kernel read wrongly, found from one output row.
//
// exp(lse) * [1, o] is a sum over keys. The contribution of one page can therefore be replaced by another block's
// without a new pass over the other keys, and every (page, block) pair is tried this way. With K keys, N blocks of P
// tokens and D dims the search takes K / P * N * D steps, after N * P * D to read the blocks.
//
// Example: the kernel reads block 11 for page 3 of sequence 2, whose table entry is 40: the pair (3, 11) reproduces the
// row, and the trial reads "page 3 of sequence 2 was read from block 11, not 40".
#pragma once

#include <vector>

#include "core/golden/diagnosis/candidate_row.h"
#include "core/golden/diagnosis/hypotheses.h"

namespace kvscope::golden {

// Trials of one page read from another block, another layer or the other side of the K/V axis, left out, read twice or
// read as zeros, and of one key left out or read twice, that reproduce `candidate` within its bound; best first, at
// most `limit`. `input` describes the layers. Pools with more than kSearchedBlocks blocks are searched among the blocks
// that any lookup table names.
inline constexpr std::int64_t kSearchedBlocks = 4096;
[[nodiscard]] std::vector<Trial> page_search(const DiagnosisInput& input, const RowEvaluator& row,
                                             const CandidateRow& candidate, const RowNoise& noise, std::size_t limit);

}  // namespace kvscope::golden
