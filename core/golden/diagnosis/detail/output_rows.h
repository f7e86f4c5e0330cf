// The rows of a candidate's output that a diagnosis looks at: the candidate's values, the golden's, and an evaluator
// for each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/golden/diagnosis/candidate_row.h"
#include "core/golden/diagnosis/failure_pattern.h"
#include "core/golden/diagnosis/hypotheses.h"
#include "core/golden/verdict/golden_terms.h"

namespace kvscope::golden {

struct OutputRow {
  std::int64_t query = 0, head = 0, sequence = 0;
  double ratio = 0;  // worst error / allowed against the golden
  bool has_nan = false, has_number = false;
  CandidateRow candidate;
  std::unique_ptr<RowEvaluator> evaluator;
  mutable std::unique_ptr<RowEvaluator> first_dims;

  void expect_lse(RowEvaluator& row) const {
    if (candidate.has_lse) row.expect(candidate.lse, candidate.lse_rounding);
  }
  // The first dims alone; made when a trial needs it, as most rows are compared with few trials.
  [[nodiscard]] const RowEvaluator& probe() const;
};

// Golden and candidate of an input, by row.
class Outputs {
 public:
  explicit Outputs(const DiagnosisInput& input);

  [[nodiscard]] CandidateRow candidate(std::int64_t query, std::int64_t head) const;
  [[nodiscard]] RowValue golden(std::int64_t query, std::int64_t head) const;

  const attention::Problem& problem;
  std::vector<double> o, lse;  // the candidate's; no lse: empty
  GoldenTerms terms;
  attention::Rounding rounding, lse_rounding;
  std::int64_t heads, dims;
};

// A row [query, head] of the golden.
[[nodiscard]] RowValue row_of(const GoldenTerms& golden, std::size_t row);

// What rounding may add to a row that a kernel computes as `value` says: independent errors, the systematic part in
// full, and the rounding of the output.
[[nodiscard]] RowNoise noise_of(const Outputs& outputs, const RowValue& value);

// InputError when the correct recipe of the row does not reproduce the golden: the problem is another one's.
void check_problem_is_the_goldens(const DiagnosisInput& input, const Outputs& outputs, const OutputRow& row);

// Whether a hypothesis of this name has parameters that are fitted to the rows: a named cause that explains them is
// preferred.
[[nodiscard]] bool is_fitted(const std::string& name);

// At most `limit` rows, in order, but so that different sequences come first, then different heads.
[[nodiscard]] std::vector<OutputRow> spread(std::vector<OutputRow> rows, std::size_t limit);

// Gives each row its evaluator. Rows with the same keys share the decoded rows of V.
void make_evaluators(const DiagnosisInput& input, const std::vector<std::vector<OutputRow>*>& rows);

[[nodiscard]] bool changes(const Trial& trial, const OutputRow& row);
// The row under a trial; of a row that the trial does not change, the correct one.
[[nodiscard]] RowValue predicted(const Trial& trial, const OutputRow& row);

// All trials for these failing rows: those of the hypotheses, and those that are fitted to the first row. Without the
// search for pages. `outputs` must outlive them.
[[nodiscard]] std::vector<Trial> trials_for(const DiagnosisInput& input, const Outputs& outputs,
                                            const std::vector<OutputRow>& rows);

// Rows of the sequence of the first row, for the map by page.
[[nodiscard]] std::vector<PageRow> page_rows(const Outputs& outputs, const std::vector<OutputRow>& rows);

}  // namespace kvscope::golden
