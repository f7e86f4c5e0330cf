#include "core/golden/diagnosis/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <numbers>
#include <set>
#include <utility>

#include "core/attention/bounds.h"
#include "core/attention/mask.h"
#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/golden/diagnosis/failure_pattern.h"
#include "core/golden/diagnosis/fitted_trials.h"
#include "core/golden/diagnosis/page_search.h"
#include "core/golden/verdict/candidate_rounding.h"
#include "core/golden/verdict/golden_terms.h"

namespace kvscope::golden {
namespace {

constexpr std::size_t kFailingRows = 16, kCorrectRows = 8, kNearest = 3, kSearchedRows = 4, kFoundPages = 64,
                      kPageRows = 4;
// Elements of o that are compared before a hypothesis is computed in full.
constexpr std::int64_t kProbedDims = 8;
// A prediction this close counts as an explanation: the hypothesis computes what the kernel computed, so its error
// bound holds.
constexpr double kExplained = 1.0;

std::vector<double> doubles_of(const Tensor& tensor) {
  std::vector<double> x(tensor.bytes.size() / static_cast<std::size_t>(size_of(tensor.dtype)));
  to_doubles(tensor.dtype, tensor.bytes.data(), x);
  return x;
}

// A row of the output with its evaluator and how far the candidate is from the golden.
struct Row {
  std::int64_t query = 0, head = 0, sequence = 0;
  double ratio = 0;  // worst error / allowed against the golden
  bool has_nan = false, has_number = false;
  CandidateRow candidate;
  std::unique_ptr<RowEvaluator> evaluator;
  mutable std::unique_ptr<RowEvaluator> first_dims;

  void expect_lse(RowEvaluator& row) const {
    if (candidate.has_lse) row.expect(candidate.lse, candidate.rounding);
  }
  // The first dims alone; made when a trial needs it, as most rows are compared with few trials.
  [[nodiscard]] const RowEvaluator& probe() const {
    if (first_dims == nullptr) {
      first_dims = std::make_unique<RowEvaluator>(evaluator->first_dims(kProbedDims));
      expect_lse(*first_dims);
    }
    return *first_dims;
  }
};

struct Rows {
  std::vector<Row> failing, correct;
};

class Outputs {
 public:
  explicit Outputs(const DiagnosisInput& input)
      : problem(input.problem),
        o(doubles_of(input.candidate.tensors.at("o"))),
        terms(input.golden),
        rounding(find_rounding(input.golden, input.candidate, input.rounding, "candidate").rounding),
        heads(input.problem.query_heads),
        dims(input.problem.v.head_size) {
    if (input.candidate.tensors.contains("lse") && input.golden.tensors.contains("lse")) {
      lse = doubles_of(input.candidate.tensors.at("lse"));
    }
  }

  [[nodiscard]] CandidateRow candidate(std::int64_t query, std::int64_t head) const {
    const auto at = static_cast<std::size_t>(query * heads + head);
    const auto d = static_cast<std::size_t>(dims);
    CandidateRow row;
    row.o.assign(o.begin() + static_cast<std::ptrdiff_t>(at * d),
                 o.begin() + static_cast<std::ptrdiff_t>((at + 1) * d));
    row.has_lse = !lse.empty();
    if (row.has_lse) row.lse = lse[at];
    row.rounding = rounding;
    return row;
  }
  [[nodiscard]] RowValue golden(std::int64_t query, std::int64_t head) const {
    const auto at = static_cast<std::size_t>(query * heads + head);
    RowValue row;
    row.terms = terms.row(at);
    for (std::size_t d = 0; d < static_cast<std::size_t>(dims); ++d) {
      const attention::ElementTerms element = terms.element(at * static_cast<std::size_t>(dims) + d);
      row.o.push_back(element.o);
      row.a1.push_back(element.a1);
      row.a2.push_back(element.a2);
      row.running.push_back(element.running);
    }
    return row;
  }

  const attention::Problem& problem;
  std::vector<double> o, lse;
  GoldenTerms terms;
  attention::Rounding rounding;
  std::int64_t heads, dims;
};

// Takes rows so that different sequences come first, then different heads.
std::vector<Row> spread(std::vector<Row> rows, std::size_t limit) {
  std::vector<Row> chosen;
  std::vector<bool> taken(rows.size());
  for (int pass = 0; pass < 3 && chosen.size() < limit; ++pass) {
    std::set<std::int64_t> sequences, heads;
    for (std::size_t i = 0; i < rows.size() && chosen.size() < limit; ++i) {
      if (taken[i]) continue;
      if (pass == 0 && !sequences.insert(rows[i].sequence).second) continue;
      if (pass == 1 && !heads.insert(rows[i].head).second) continue;
      taken[i] = true;
      chosen.push_back(std::move(rows[i]));
    }
  }
  return chosen;
}

std::int64_t visible_keys_of_row(const attention::Problem& problem, std::int64_t sequence, std::int64_t query) {
  const std::int64_t first = problem.first_query(sequence), last = problem.first_query(sequence + 1);
  const attention::KeyRange range =
      attention::visible_keys(problem.options, query - first, last - first, problem.keys(sequence));
  return std::max<std::int64_t>(0, range.last - range.first);
}

Rows rows_of(const Outputs& outputs, FailurePattern& pattern) {
  const attention::Problem& problem = outputs.problem;
  std::vector<Row> failing, correct;
  for (std::vector<std::int64_t>* of_sequence :
       {&pattern.sequences, &pattern.rows_of_sequence, &pattern.failing_of_sequence}) {
    of_sequence->assign(static_cast<std::size_t>(problem.batch), 0);
  }
  for (std::vector<std::int64_t>* of_head : {&pattern.heads, &pattern.rows_of_head, &pattern.failing_of_head}) {
    of_head->assign(static_cast<std::size_t>(outputs.heads), 0);
  }
  pattern.dims.assign(static_cast<std::size_t>(outputs.dims), 0);
  pattern.only_nan = pattern.no_numbers = true;
  pattern.lse_correct = !outputs.lse.empty();
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t query = problem.first_query(b); query < problem.first_query(b + 1); ++query) {
      const std::int64_t visible = visible_keys_of_row(problem, b, query);
      for (std::int64_t head = 0; head < outputs.heads; ++head) {
        Row row;
        row.query = query;
        row.head = head;
        row.sequence = b;
        row.candidate = outputs.candidate(query, head);
        const RowValue golden = outputs.golden(query, head);
        row.ratio = misfit(row.candidate, golden);
        const bool fails = !(row.ratio <= 1);
        std::vector<std::size_t> failing_dims;
        for (std::size_t d = 0; d < row.candidate.o.size(); ++d) {
          (std::isfinite(row.candidate.o[d]) ? row.has_number : row.has_nan) = true;
          if (fails &&
              !attention::output_within(outputs.rounding, golden.terms, golden.element(d), row.candidate.o[d])) {
            failing_dims.push_back(d);
          }
        }
        count_row(pattern, b, head, visible, fails, failing_dims);
        if (fails) {
          pattern.only_nan = pattern.only_nan && row.has_nan;
          pattern.no_numbers = pattern.no_numbers && !row.has_number;
          pattern.lse_correct =
              pattern.lse_correct && attention::lse_within(outputs.rounding, golden.terms, row.candidate.lse);
        }
        (fails ? failing : correct).push_back(std::move(row));
      }
    }
  }
  pattern.only_nan = pattern.only_nan && !failing.empty();
  pattern.no_numbers = pattern.no_numbers && !failing.empty();
  pattern.lse_correct = pattern.lse_correct && !failing.empty();
  // Finite rows tell more than rows of NaN; then the largest error first.
  std::stable_sort(failing.begin(), failing.end(), [](const Row& a, const Row& b) {
    if (a.has_nan != b.has_nan) return b.has_nan;
    return a.has_number != b.has_number ? a.has_number : a.ratio > b.ratio;
  });
  return {spread(std::move(failing), kFailingRows), spread(std::move(correct), kCorrectRows)};
}

// Rows of the sequence of the first failing row, for the map by page.
std::vector<PageRow> page_rows(const Outputs& outputs, const Rows& rows) {
  std::vector<PageRow> chosen;
  for (const Row& row : rows.failing) {
    if (row.sequence != rows.failing.front().sequence || row.has_nan || chosen.size() == kPageRows) continue;
    RowValue golden = outputs.golden(row.query, row.head);
    const double unit = golden.terms.base_two ? std::numbers::ln2 : 1.0;
    const double factor = row.candidate.has_lse ? std::exp((row.candidate.lse - golden.terms.lse) * unit) : 1;
    if (!std::isfinite(factor)) continue;
    chosen.push_back({row.evaluator.get(), &row.candidate.o, std::move(golden.o), golden.terms.lse * unit, factor});
  }
  return chosen;
}

bool changes(const Trial& trial, const Row& row) {
  return trial.sequence < 0 || trial.sequence == row.sequence;
}

double misfit_of(const Trial& trial, const Row& row) {
  return misfit(row.candidate, changes(trial, row) ? trial.predict(*row.evaluator)
                                                   : row.evaluator->evaluate(row.evaluator->correct()));
}

void check_shapes_are_the_goldens(const DiagnosisInput& input) {
  const attention::Problem& problem = input.problem;
  const std::vector<std::int64_t> rows{problem.total_queries(), problem.query_heads, problem.v.head_size};
  const std::vector<std::int64_t>& golden = input.golden.tensors.at("o").shape;
  if (golden != rows) {
    throw InputError(input.inputs_name, "q",
                     fmt::format("gives an output of shape [{}], but the golden's is [{}]. Pass the inputs that the "
                                 "golden was computed from",
                                 fmt::join(rows, ", "), fmt::join(golden, ", ")));
  }
}

void check_problem_is_the_goldens(const DiagnosisInput& input, const Outputs& outputs, const Row& row) {
  RowValue again = row.evaluator->evaluate(row.evaluator->correct());
  CandidateRow golden;
  const RowValue stored = outputs.golden(row.query, row.head);
  again.terms.score_error = stored.terms.score_error;  // of a fast golden
  again.terms.sum_error = stored.terms.sum_error;
  golden.o = stored.o;
  golden.rounding = attention::rounding_of(DType::f64);
  const double ratio = misfit(golden, again);
  if (!(ratio <= 16)) {
    throw InputError(input.inputs_name, "attention",
                     fmt::format("differs from the golden in query row {}, head {}: {:.3g}x the rounding of double. "
                                 "Pass the inputs that the golden was computed from",
                                 row.query, row.head, ratio));
  }
}

Explanation judge(const Trial& trial, const Rows& rows) {
  Explanation e{trial.name, trial.cause, trial.look_at, 0, 0, 0, trial.sequence, trial.page};
  for (const Row& row : rows.failing) {
    const double m = misfit_of(trial, row);
    if (m <= kExplained) {
      ++e.failing_explained;
      e.misfit = std::max(e.misfit, m);
    }
  }
  if (e.failing_explained < static_cast<std::int64_t>(rows.failing.size())) return e;
  for (const Row& row : rows.correct) {
    if (misfit_of(trial, row) <= kExplained) ++e.correct_explained;
  }
  return e;
}

bool better(const Explanation& a, const Explanation& b) {
  if (a.failing_explained != b.failing_explained) return a.failing_explained > b.failing_explained;
  if (a.correct_explained != b.correct_explained) return a.correct_explained > b.correct_explained;
  return false;  // the order of the hypotheses: common faults first
}

}  // namespace

Diagnosis diagnose(const DiagnosisInput& input) {
  check_shapes_are_the_goldens(input);
  const Outputs outputs(input);
  Diagnosis diagnosis;
  Rows rows = rows_of(outputs, diagnosis.pattern);
  if (rows.failing.empty()) {
    diagnosis.candidate_passes = true;
    return diagnosis;
  }
  for (std::vector<Row>* some : {&rows.failing, &rows.correct}) {
    for (Row& row : *some) {
      row.evaluator = std::make_unique<RowEvaluator>(input.problem, input.pool, row.sequence, row.query, row.head);
    }
  }
  check_problem_is_the_goldens(input, outputs, rows.failing.front());
  describe_pattern(diagnosis.pattern);
  find_pages(diagnosis.pattern, page_rows(outputs, rows));  // before the evaluators expect the candidate's lse
  for (std::vector<Row>* some : {&rows.failing, &rows.correct}) {
    for (const Row& row : *some) row.expect_lse(*row.evaluator);
  }
  diagnosis.failing_rows = static_cast<std::int64_t>(rows.failing.size());
  diagnosis.correct_rows = static_cast<std::int64_t>(rows.correct.size());
  std::vector<Trial> trials = hypotheses(input);
  const Row& first = rows.failing.front();
  const auto append = [&](std::vector<Trial> found) {
    trials.insert(trials.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  };
  append(fitted_scale(*first.evaluator, first.candidate));
  append(fitted_output(outputs.golden(first.query, first.head).o, first.candidate));
  std::vector<MovedRow> moved;
  for (const Row& row : rows.failing) moved.push_back({row.query, row.head, &row.candidate});
  append(moved_rows(moved, outputs.terms, outputs.heads, true));
  if (first.candidate.has_lse) append(moved_rows(moved, outputs.terms, outputs.heads, false));
  std::set<std::int64_t> searched;
  for (const Row& row : rows.failing) {
    if (row.has_nan || searched.size() >= kSearchedRows || !searched.insert(row.sequence).second) continue;
    append(page_search(input, *row.evaluator, row.candidate, kFoundPages));
  }
  std::set<std::string> names;
  std::map<std::string, std::size_t> judged;  // place of a cause in `all`
  std::vector<Explanation> all;
  for (const Trial& trial : trials) {
    names.insert(trial.name);
    // The first failing row that the trial can change decides whether the others are computed.
    const auto row =
        std::find_if(rows.failing.begin(), rows.failing.end(), [&](const Row& r) { return changes(trial, r); });
    if (row == rows.failing.end()) continue;
    double m = misfit(row->candidate, trial.predict(row->probe()));
    if (m <= kExplained) m = misfit_of(trial, *row);
    if (m > kExplained) {
      all.push_back({trial.name, trial.cause, trial.look_at, 0, 0, m, trial.sequence, trial.page});
      continue;
    }
    // A cause may have several trials: the best of them counts.
    const Explanation e = judge(trial, rows);
    const auto [known, is_new] = judged.try_emplace(e.cause, all.size());
    if (is_new) {
      all.push_back(e);
    } else if (better(e, all[known->second])) {
      all[known->second] = e;
    }
  }
  diagnosis.hypotheses = static_cast<std::int64_t>(names.size());
  std::stable_sort(all.begin(), all.end(), better);
  // A fitted factor, or rows of other rows, repeat what a named cause predicts.
  const auto fitted = [](const Explanation& e) {
    return e.name == "scale_factor" || e.name == "output_factor" || e.name == "rows_moved";
  };
  const auto explains = [&](const Explanation& e) {
    return e.failing_explained == diagnosis.failing_rows && e.correct_explained == all.front().correct_explained;
  };
  const bool named =
      std::any_of(all.begin(), all.end(), [&](const Explanation& e) { return explains(e) && !fitted(e); });
  std::vector<Explanation> rest;
  for (Explanation& e : all) {
    if (!explains(e)) {
      rest.push_back(e);
    } else if (!named || !fitted(e)) {
      diagnosis.explanations.push_back(e);
    }
  }
  std::stable_sort(rest.begin(), rest.end(), [](const Explanation& x, const Explanation& y) {
    return x.failing_explained != y.failing_explained ? x.failing_explained > y.failing_explained : x.misfit < y.misfit;
  });
  std::set<std::string> listed;
  for (Explanation& e : rest) {
    if (diagnosis.nearest.size() < kNearest && listed.insert(e.name).second) diagnosis.nearest.push_back(std::move(e));
  }
  diagnosis.certain = diagnosis.explanations.size() == 1 && !diagnosis.pattern.no_numbers &&
                      diagnosis.explanations.front().correct_explained == diagnosis.correct_rows;
  return diagnosis;
}

}  // namespace kvscope::golden
