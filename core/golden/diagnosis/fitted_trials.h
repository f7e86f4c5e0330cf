// Hypotheses whose parameters are found from failing rows: a factor of the scale, a factor of o, and rows that hold the
// outputs of other rows, or elements in another order.
#pragma once

#include <vector>

#include "core/golden/diagnosis/candidate_row.h"
#include "core/golden/diagnosis/hypotheses.h"
#include "core/golden/verdict/golden_terms.h"

namespace kvscope::golden {

// At most one trial each, found from one row. `golden`: the golden's o of the row.
[[nodiscard]] std::vector<Trial> fitted_scale(const RowEvaluator& row, const CandidateRow& candidate);
[[nodiscard]] std::vector<Trial> fitted_output(const std::vector<double>& golden, const CandidateRow& candidate);

// A trial if o of each of these rows is the golden's o of another row: "query head 8 holds the output of head 0".
// `with_lse`: lse is moved with o; else lse is correct.
struct MovedRow {
  std::int64_t query = 0, head = 0;
  const CandidateRow* candidate = nullptr;
};
[[nodiscard]] std::vector<Trial> moved_rows(const std::vector<MovedRow>& rows, const GoldenTerms& golden,
                                            std::int64_t heads, bool with_lse);

// A trial if each element of o is the golden's of another element of its row, or 0, the same in all of these rows, and
// lse is correct: "elements 64 to 127 of o hold elements 0 to 63".
[[nodiscard]] std::vector<Trial> moved_elements(const std::vector<MovedRow>& rows, const GoldenTerms& golden,
                                                std::int64_t heads);

}  // namespace kvscope::golden
