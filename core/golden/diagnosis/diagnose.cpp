#include "core/golden/diagnosis/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <utility>

#include "core/attention/bounds.h"
#include "core/attention/mask.h"
#include "core/base/errors.h"
#include "core/golden/diagnosis/detail/group_diagnosis.h"
#include "core/golden/diagnosis/detail/output_rows.h"
#include "core/golden/diagnosis/failure_pattern.h"
#include "core/golden/diagnosis/page_search.h"

namespace kvscope::golden {
namespace {

constexpr std::size_t kFailingRows = 16, kCorrectRows = 8, kNearest = 3, kSearchedRows = 4, kFoundPages = 64;
// A prediction this close counts as an explanation: the hypothesis computes what the kernel computed, so its error
// bound holds.
constexpr double kExplained = 1.0;
// A cause that is 5 deviations nearer to the candidate than another is preferred.
constexpr double kDistanceMargin = 25;

struct Rows {
  std::vector<OutputRow> failing, correct;
  // Every failing row sees no key and has the right o: its lse alone is another one.
  bool only_lse_of_empty_rows = true;
};

std::int64_t visible_keys_of_row(const attention::Problem& problem, std::int64_t sequence, std::int64_t query) {
  const std::int64_t first = problem.first_query(sequence), last = problem.first_query(sequence + 1);
  const attention::KeyRange range =
      attention::visible_keys(problem.options, query - first, last - first, problem.keys(sequence));
  return std::max<std::int64_t>(0, range.last - range.first);
}

Rows rows_of(const Outputs& outputs, FailurePattern& pattern) {
  const attention::Problem& problem = outputs.problem;
  std::vector<OutputRow> failing, correct;
  bool only_lse_of_empty_rows = true;
  for (std::vector<std::int64_t>* of_sequence :
       {&pattern.sequences, &pattern.rows_of_sequence, &pattern.failing_of_sequence}) {
    of_sequence->assign(static_cast<std::size_t>(problem.batch), 0);
  }
  for (std::vector<std::int64_t>* of_head : {&pattern.heads, &pattern.rows_of_head, &pattern.failing_of_head}) {
    of_head->assign(static_cast<std::size_t>(outputs.heads), 0);
  }
  pattern.dims.assign(static_cast<std::size_t>(outputs.dims), 0);
  pattern.only_nan = pattern.no_numbers = pattern.only_zeros = true;
  pattern.lse_correct = !outputs.lse.empty();
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t query = problem.first_query(b); query < problem.first_query(b + 1); ++query) {
      const std::int64_t visible = visible_keys_of_row(problem, b, query);
      for (std::int64_t head = 0; head < outputs.heads; ++head) {
        OutputRow row;
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
            const double size = std::fabs(row.candidate.o[d] - golden.o[d]) / golden.a1[d];
            if (std::isfinite(row.candidate.o[d])) pattern.worst = std::max(pattern.worst, size);
          }
        }
        count_row(pattern, b, head, visible, fails, failing_dims);
        if (fails) {
          only_lse_of_empty_rows =
              only_lse_of_empty_rows && failing_dims.empty() && std::isinf(golden.terms.lse) && row.candidate.has_lse;
          pattern.only_nan = pattern.only_nan && row.has_nan;
          pattern.no_numbers = pattern.no_numbers && !row.has_number;
          pattern.only_zeros =
              pattern.only_zeros && std::ranges::all_of(row.candidate.o, [](double x) { return x == 0; });
          pattern.lse_correct =
              pattern.lse_correct && attention::lse_within(outputs.lse_rounding, golden.terms, row.candidate.lse);
        }
        (fails ? failing : correct).push_back(std::move(row));
      }
    }
  }
  pattern.only_nan = pattern.only_nan && !failing.empty();
  pattern.no_numbers = pattern.no_numbers && !failing.empty();
  pattern.only_zeros = pattern.only_zeros && !failing.empty();
  pattern.lse_correct = pattern.lse_correct && !failing.empty();
  // Finite rows tell more than rows of NaN; then the largest error first.
  std::stable_sort(failing.begin(), failing.end(), [](const OutputRow& a, const OutputRow& b) {
    if (a.has_nan != b.has_nan) return b.has_nan;
    return a.has_number != b.has_number ? a.has_number : a.ratio > b.ratio;
  });
  only_lse_of_empty_rows = only_lse_of_empty_rows && pattern.only_zeros;
  return {spread(std::move(failing), kFailingRows), spread(std::move(correct), kCorrectRows), only_lse_of_empty_rows};
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

// Whether the cause explains all failing rows that it predicts. If it leaves some unpredicted, two of the others must
// hold numbers: NaN fits each fault that reads one. `of_numbers`: the explained rows without NaN.
bool explains_rows(const Explanation& e, std::int64_t failing_rows, std::int64_t of_numbers) {
  return e.failing_explained + e.failing_outside == failing_rows && (e.failing_outside == 0 || of_numbers > 1);
}

// A cause with its predictions of the failing and the correct rows; none unless it explains the failing rows.
struct JudgedCause {
  Explanation explanation;
  std::vector<RowValue> predictions;
  bool one_of_many = false, longer_form = false;
};

JudgedCause judge(const Trial& trial, const Rows& rows) {
  JudgedCause judged{{trial.name, trial.cause, trial.look_at, 0, 0, 0, trial.sequence, trial.page},
                     {},
                     trial.one_of_many,
                     trial.longer_form};
  Explanation& e = judged.explanation;
  std::int64_t of_numbers = 0;
  for (const OutputRow& row : rows.failing) {
    judged.predictions.push_back(predicted(trial, row));
    if (judged.predictions.back().outside) ++e.failing_outside;
    const double m = misfit(row.candidate, judged.predictions.back());
    if (m <= kExplained) {
      ++e.failing_explained;
      if (!row.has_nan) ++of_numbers;
      e.misfit = std::max(e.misfit, m);
    }
  }
  if (!explains_rows(e, static_cast<std::int64_t>(rows.failing.size()), of_numbers)) {
    judged.predictions.clear();
    return judged;
  }
  for (const OutputRow& row : rows.correct) {
    judged.predictions.push_back(predicted(trial, row));
    if (misfit(row.candidate, judged.predictions.back()) <= kExplained) ++e.correct_explained;
  }
  return judged;
}

// Of causes that explain the same rows, those whose predictions are nearest to the candidate. A wide bound fits many
// predictions; the distances, summed over all elements in variances of rounding, tell them apart. Variances are the
// largest of these causes, so that a cause does not win by a small one.
void keep_nearest(const Outputs& outputs, const Rows& rows, std::vector<JudgedCause*>& causes) {
  std::vector<double> distance(causes.size());
  const std::size_t count = rows.failing.size() + rows.correct.size();
  for (std::size_t i = 0; i < count && causes.size() > 1; ++i) {
    const CandidateRow& x =
        (i < rows.failing.size() ? rows.failing[i] : rows.correct[i - rows.failing.size()]).candidate;
    RowNoise largest;
    for (const JudgedCause* cause : causes) {
      const RowValue& p = cause->predictions[i];
      if (p.o.size() != x.o.size()) continue;  // another lse
      const RowNoise noise = noise_of(outputs, p);
      if (largest.variance.empty()) largest = noise;
      for (std::size_t d = 0; d < noise.variance.size(); ++d) {
        largest.variance[d] = std::max(largest.variance[d], noise.variance[d]);
      }
      largest.lse_variance = std::max(largest.lse_variance, noise.lse_variance);
    }
    const auto add = [](double& sum, double have, double want, double variance) {
      const double square = (have - want) * (have - want) / variance;
      if (std::isfinite(square)) sum += square;
    };
    for (std::size_t n = 0; n < causes.size(); ++n) {
      const RowValue& p = causes[n]->predictions[i];
      if (p.o.size() != x.o.size()) continue;
      for (std::size_t d = 0; d < x.o.size(); ++d) add(distance[n], x.o[d], p.o[d], largest.variance[d]);
      if (x.has_lse) add(distance[n], x.lse, p.terms.lse, largest.lse_variance);
    }
  }
  if (causes.size() < 2) return;
  const double least = *std::min_element(distance.begin(), distance.end());
  std::vector<JudgedCause*> kept;
  for (std::size_t n = 0; n < causes.size(); ++n) {
    if (distance[n] <= least + kDistanceMargin) kept.push_back(causes[n]);
  }
  causes = std::move(kept);
}

// The first failing row that the trial changes and predicts, which decides whether the others are computed, and the
// misfit of its first dims. No row: the trial changes none.
std::pair<const OutputRow*, double> deciding_row(const Trial& trial, const std::vector<OutputRow>& failing) {
  const OutputRow* outside = nullptr;
  for (const OutputRow& row : failing) {
    if (!changes(trial, row)) continue;
    const RowValue value = trial.predict(row.probe());
    if (!value.outside) return {&row, misfit(row.candidate, value)};
    if (outside == nullptr) outside = &row;
  }
  return {outside, std::numeric_limits<double>::infinity()};
}

// What a kernel stores as lse where it finds no key, if o is right. No hypothesis about keys can tell: there are none.
Explanation lse_of_empty_rows(const Outputs& outputs, const Rows& rows) {
  const attention::Options& options = outputs.problem.options;
  const bool minus = options.empty_row == attention::EmptyRow::minus_infinity;
  const double unit = options.lse_base == attention::LseBase::two ? std::numbers::log2e : 1.0;
  const auto all = [&](const auto& is) {
    return std::ranges::all_of(rows.failing, [&](const OutputRow& row) { return is(row, row.candidate.lse); });
  };
  std::string found = "a number", look_at = "the store of lse after a loop without iterations: was it written?";
  if (all([](const OutputRow&, double lse) { return std::isinf(lse); })) {
    found = minus ? "+inf" : "-inf";
    look_at = fmt::format(
        "the convention: if the kernel means {0}, make the golden with empty_lse {0} (kvscope golden "
        "--empty-lse {0})",
        found);
  } else if (all([](const OutputRow&, double lse) { return std::isnan(lse); })) {
    found = "NaN";
    look_at = "the store of lse after a loop without iterations: the maximum of no score minus itself is NaN";
  } else if (!options.sinks.empty() && all([&](const OutputRow& row, double lse) {
               const double sink = options.sinks[static_cast<std::size_t>(row.head)] * unit;
               return std::abs(lse - sink) <= 4 * attention::half_step(outputs.lse_rounding.lse, sink);
             })) {
    found = "the logit of the sink";
    look_at =
        "the sum that the sink joins: without a key, its logit is no lse, because a merge with other splits would "
        "count the sink again. If the kernel means it, leave these rows out of the check";
  }
  Explanation e;
  e.name = "lse_of_empty_rows";
  e.cause = fmt::format("lse of rows that see no key is {} instead of {}inf", found, minus ? "-" : "+");
  e.look_at = look_at;
  e.failing_explained = static_cast<std::int64_t>(rows.failing.size());
  e.correct_explained = static_cast<std::int64_t>(rows.correct.size());
  return e;
}

// The map by page is kept where a cause names a page, or where the pages explain what no certain cause does.
void leave_out_pages(Diagnosis& diagnosis) {
  constexpr double kMost = 0.5;
  const bool named = !diagnosis.explanations.empty() && diagnosis.explanations.front().page >= 0;
  if (named || (!diagnosis.certain && diagnosis.pattern.pages_explain >= kMost)) return;
  diagnosis.pattern.page_sequence = -1;
  diagnosis.pattern.pages.clear();
}

bool better(const JudgedCause& x, const JudgedCause& y) {
  const Explanation &a = x.explanation, &b = y.explanation;
  if (a.failing_explained != b.failing_explained) return a.failing_explained > b.failing_explained;
  if (a.correct_explained != b.correct_explained) return a.correct_explained > b.correct_explained;
  if (x.one_of_many != y.one_of_many) return y.one_of_many;
  return false;  // the order of the hypotheses: common faults first
}

}  // namespace

Diagnosis diagnose(const DiagnosisInput& input) {
  check_shapes_are_the_goldens(input);
  const Outputs outputs(input);
  Diagnosis diagnosis;
  Rows rows = rows_of(outputs, diagnosis.pattern);
  if (rows.failing.empty()) {
    diagnosis.candidate_passes = input.failing_groups.empty();
    if (!diagnosis.candidate_passes) diagnose_groups(input, outputs, diagnosis);
    leave_out_pages(diagnosis);
    return diagnosis;
  }
  make_evaluators(input, {&rows.failing, &rows.correct});
  check_problem_is_the_goldens(input, outputs, rows.failing.front());
  describe_pattern(diagnosis.pattern);
  find_pages(diagnosis.pattern, page_rows(outputs, rows.failing));  // before the evaluators expect the candidate's lse
  for (std::vector<OutputRow>* some : {&rows.failing, &rows.correct}) {
    for (const OutputRow& row : *some) row.expect_lse(*row.evaluator);
  }
  diagnosis.failing_rows = static_cast<std::int64_t>(rows.failing.size());
  diagnosis.correct_rows = static_cast<std::int64_t>(rows.correct.size());
  if (rows.only_lse_of_empty_rows) {
    diagnosis.explanations.push_back(lse_of_empty_rows(outputs, rows));
    diagnosis.hypotheses = 1;
    diagnosis.certain = true;
    leave_out_pages(diagnosis);
    return diagnosis;
  }
  std::vector<Trial> trials = trials_for(input, outputs, rows.failing);
  std::set<std::int64_t> searched;
  for (const OutputRow& row : rows.failing) {
    if (row.has_nan || searched.size() >= kSearchedRows || !searched.insert(row.sequence).second) continue;
    std::vector<Trial> found = page_search(input, *row.evaluator, row.candidate,
                                           noise_of(outputs, outputs.golden(row.query, row.head)), kFoundPages);
    std::move(found.begin(), found.end(), std::back_inserter(trials));
  }
  std::set<std::string> names;
  std::map<std::string, std::size_t> judged;  // place of a cause in `all`
  std::vector<JudgedCause> all;
  for (const Trial& trial : trials) {
    names.insert(trial.name);
    auto [row, m] = deciding_row(trial, rows.failing);
    if (row == nullptr) continue;
    if (m <= kExplained) m = misfit(row->candidate, predicted(trial, *row));
    if (m > kExplained) {
      all.push_back({{trial.name, trial.cause, trial.look_at, 0, 0, m, trial.sequence, trial.page}, {}});
      continue;
    }
    // A cause may have several trials: the best of them counts.
    JudgedCause found = judge(trial, rows);
    const auto [known, is_new] = judged.try_emplace(found.explanation.cause, all.size());
    if (is_new) {
      all.push_back(std::move(found));
    } else if (better(found, all[known->second])) {
      all[known->second] = std::move(found);
    }
  }
  diagnosis.hypotheses = static_cast<std::int64_t>(names.size());
  std::stable_sort(all.begin(), all.end(), better);
  // A fitted factor, or rows of other rows, repeat what a named cause predicts.
  const auto best = std::ranges::find_if(all, [](const JudgedCause& j) { return !j.predictions.empty(); });
  std::vector<JudgedCause*> explaining;
  for (JudgedCause& j : all) {
    const Explanation& e = j.explanation;
    if (!j.predictions.empty() && e.failing_explained == best->explanation.failing_explained &&
        e.correct_explained == best->explanation.correct_explained) {
      explaining.push_back(&j);
    }
  }
  keep_nearest(outputs, rows, explaining);
  const auto fitted = [](const JudgedCause* j) { return is_fitted(j->explanation.name); };
  const bool named = !std::all_of(explaining.begin(), explaining.end(), fitted);
  std::set<std::string> simple;  // names of causes that need no longer form
  for (const JudgedCause* j : explaining) {
    if (!j->longer_form) simple.insert(j->explanation.name);
  }
  std::vector<Explanation> rest;
  for (JudgedCause& j : all) {
    if (std::find(explaining.begin(), explaining.end(), &j) == explaining.end()) {
      rest.push_back(j.explanation);
    } else if ((!named || !fitted(&j)) && !(j.longer_form && simple.contains(j.explanation.name))) {
      diagnosis.explanations.push_back(j.explanation);
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
                      diagnosis.explanations.front().failing_explained == diagnosis.failing_rows &&
                      diagnosis.explanations.front().correct_explained == diagnosis.correct_rows;
  leave_out_pages(diagnosis);
  return diagnosis;
}

}  // namespace kvscope::golden
