#include "core/golden/diagnosis/detail/output_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <set>
#include <string>
#include <utility>

#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/golden/diagnosis/fitted_trials.h"
#include "core/golden/verdict/candidate_rounding.h"

namespace kvscope::golden {
namespace {

constexpr std::size_t kPageRows = 4;
// Elements of o that are compared before a hypothesis is computed in full.
constexpr std::int64_t kProbedDims = 8;

std::vector<double> doubles_of(const Tensor& tensor) {
  std::vector<double> x(tensor.bytes.size() / static_cast<std::size_t>(size_of(tensor.dtype)));
  to_doubles(tensor.dtype, tensor.bytes.data(), x);
  return x;
}

double variance_of(const attention::Budget& budget, DType type, double golden) {
  const double systematic = budget.before_output() - budget.independent;
  const double step = 2 * attention::half_step(type, std::fabs(golden) + budget.before_output());
  return budget.deviation * budget.deviation + systematic * systematic + step * step / 12;
}

}  // namespace

RowValue row_of(const GoldenTerms& golden, std::size_t row) {
  const auto dims = static_cast<std::size_t>(golden.dims());
  RowValue value;
  value.terms = golden.row(row);
  for (std::size_t d = row * dims; d < (row + 1) * dims; ++d) {
    const attention::ElementTerms element = golden.element(d);
    value.o.push_back(element.o);
    value.a1.push_back(element.a1);
    value.a2.push_back(element.a2);
    value.running.push_back(element.running);
  }
  return value;
}

RowNoise noise_of(const Outputs& outputs, const RowValue& value) {
  const attention::OutputBudgets budgets(outputs.rounding, value.terms);
  RowNoise noise;
  noise.golden = value.o;
  for (std::size_t d = 0; d < value.o.size(); ++d) {
    noise.variance.push_back(variance_of(budgets.of(value.element(d)), outputs.rounding.output, value.o[d]));
  }
  noise.lse = value.terms.lse;
  const DType type = outputs.lse_rounding.lse;
  noise.lse_variance = variance_of(attention::lse_budget(outputs.lse_rounding, value.terms), type, value.terms.lse);
  return noise;
}

const RowEvaluator& OutputRow::probe() const {
  if (first_dims == nullptr) {
    first_dims = std::make_unique<RowEvaluator>(evaluator->first_dims(kProbedDims));
    expect_lse(*first_dims);
  }
  return *first_dims;
}

Outputs::Outputs(const DiagnosisInput& input)
    : problem(input.problem),
      o(doubles_of(input.candidate.tensors.at("o"))),
      terms(input.golden),
      rounding(find_rounding(input.golden, input.candidate, input.rounding, "candidate").rounding),
      lse_rounding(rounding),
      heads(input.problem.query_heads),
      dims(input.problem.v.head_size) {
  if (!input.candidate.tensors.contains("lse") || !input.golden.tensors.contains("lse")) return;
  lse = doubles_of(input.candidate.tensors.at("lse"));
  if (rounding.row_sum == attention::RowSum::either &&
      sums_are_exact(rounding, terms, lse, doubles_of(input.golden.tensors.at("lse")))) {
    lse_rounding.row_sum = attention::RowSum::exact;
  }
}

CandidateRow Outputs::candidate(std::int64_t query, std::int64_t head) const {
  const auto at = static_cast<std::size_t>(query * heads + head);
  const auto first = o.begin() + static_cast<std::ptrdiff_t>(at) * dims;
  CandidateRow row;
  row.o.assign(first, first + dims);
  row.has_lse = !lse.empty();
  if (row.has_lse) row.lse = lse[at];
  row.rounding = rounding;
  row.lse_rounding = lse_rounding;
  return row;
}

RowValue Outputs::golden(std::int64_t query, std::int64_t head) const {
  return row_of(terms, static_cast<std::size_t>(query * heads + head));
}

void check_problem_is_the_goldens(const DiagnosisInput& input, const Outputs& outputs, const OutputRow& row) {
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

bool is_fitted(const std::string& name) {
  return name == "scale_factor" || name == "output_factor" || name == "rows_moved" || name == "elements_moved";
}

std::vector<OutputRow> spread(std::vector<OutputRow> rows, std::size_t limit) {
  std::vector<OutputRow> chosen;
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

void make_evaluators(const DiagnosisInput& input, const std::vector<std::vector<OutputRow>*>& rows) {
  std::vector<const RowEvaluator*> made;
  for (std::vector<OutputRow>* some : rows) {
    for (OutputRow& row : *some) {
      row.evaluator = std::make_unique<RowEvaluator>(input.problem, input.pool, row.sequence, row.query, row.head);
      bool shared = false;
      for (std::size_t i = 0; i < made.size() && !shared; ++i) shared = row.evaluator->share_values(*made[i]);
      made.push_back(row.evaluator.get());
    }
  }
}

bool changes(const Trial& trial, const OutputRow& row) {
  return trial.sequence < 0 || trial.sequence == row.sequence;
}

RowValue predicted(const Trial& trial, const OutputRow& row) {
  return changes(trial, row) ? trial.predict(*row.evaluator) : row.evaluator->evaluate(row.evaluator->correct());
}

std::vector<Trial> trials_for(const DiagnosisInput& input, const Outputs& outputs, const std::vector<OutputRow>& rows) {
  std::vector<Trial> trials = hypotheses(input);
  const auto append = [&](std::vector<Trial> found) {
    trials.insert(trials.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  };
  const OutputRow& first = rows.front();
  append(fitted_scale(*first.evaluator, first.candidate));
  append(fitted_output(outputs.golden(first.query, first.head).o, first.candidate));
  std::vector<MovedRow> moved;
  for (const OutputRow& row : rows) moved.push_back({row.query, row.head, &row.candidate});
  append(moved_rows(moved, outputs.terms, outputs.heads, true));
  append(moved_elements(moved, outputs.terms, outputs.heads));
  if (first.candidate.has_lse) append(moved_rows(moved, outputs.terms, outputs.heads, false));
  return trials;
}

std::vector<PageRow> page_rows(const Outputs& outputs, const std::vector<OutputRow>& rows) {
  std::vector<PageRow> chosen;
  for (const OutputRow& row : rows) {
    if (row.sequence != rows.front().sequence || row.has_nan || chosen.size() == kPageRows) continue;
    RowValue golden = outputs.golden(row.query, row.head);
    const double unit = golden.terms.base_two ? std::numbers::ln2 : 1.0;
    const double factor = row.candidate.has_lse ? std::exp((row.candidate.lse - golden.terms.lse) * unit) : 1;
    if (!std::isfinite(factor)) continue;
    chosen.push_back({row.evaluator.get(), &row.candidate.o, std::move(golden.o), golden.terms.lse * unit, factor});
  }
  return chosen;
}

}  // namespace kvscope::golden
