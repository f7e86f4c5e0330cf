#include "core/golden/diagnosis/detail/group_diagnosis.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/golden/diagnosis/detail/page_faults.h"
#include "core/golden/diagnosis/page_search.h"
#include "core/golden/verdict/group_tests.h"
#include "core/golden/verdict/measures.h"

namespace kvscope::golden {
namespace {

constexpr std::size_t kGroupRows = 16, kOtherRows = 8, kFirstRows = 4, kSearchedGroupRows = 2, kFoundInGroups = 6,
                      kNearestOfGroups = 3;
constexpr double kLeastDeviations = 6, kCertainDeviations = 8;
constexpr double kGainMargin = 25;  // 5 deviations between two predictions
constexpr double kLeastChange = 4;  // |p - g|^2 / v of the first rows, for a trial that is computed for all
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// A row of a failing group. Its errors are measured against `golden`.
struct GroupRow {
  OutputRow row;
  RowValue golden;
  RowNoise noise;
  double energy = 0;  // |x - g|^2 / v
};

// Sums over elements.
struct ChangeFit {
  double along = 0, size = 0;  // <x - g, p - g> / v and |p - g|^2 / v
  [[nodiscard]] double share() const { return size > 0 ? along / size : 0; }
  [[nodiscard]] double deviations() const { return std::sqrt(size); }
  [[nodiscard]] double gain() const { return 2 * along - size; }
  void add(double x, double g, double p, double variance) {
    if (!(variance > 0) || !std::isfinite(variance)) return;
    along += (x - g) * (p - g) / variance;
    size += (p - g) * (p - g) / variance;
  }
};

void add_row(ChangeFit& fit, const GroupRow& r, const RowValue& p) {
  for (std::size_t d = 0; d < p.o.size(); ++d) {
    fit.add(r.row.candidate.o[d], r.noise.golden[d], p.o[d], r.noise.variance[d]);
  }
  if (r.row.candidate.has_lse) fit.add(r.row.candidate.lse, r.noise.lse, p.terms.lse, r.noise.lse_variance);
}

// False for a row without keys, or with NaN or infinities, which no test of many elements looks at.
bool prepare(const Outputs& outputs, GroupRow& r) {
  r.row.candidate = outputs.candidate(r.row.query, r.row.head);
  r.golden = outputs.golden(r.row.query, r.row.head);
  const attention::RowTerms& terms = r.golden.terms;
  if (!std::isfinite(terms.lse)) return false;
  r.noise = noise_of(outputs, r.golden);
  ChangeFit own;
  for (std::size_t d = 0; d < r.golden.o.size(); ++d) {
    const double x = r.row.candidate.o[d];
    if (!std::isfinite(x)) return false;
    own.add(x, r.golden.o[d], x, r.noise.variance[d]);
  }
  if (r.row.candidate.has_lse) {
    if (!std::isfinite(r.row.candidate.lse)) return false;
    own.add(r.row.candidate.lse, terms.lse, r.row.candidate.lse, r.noise.lse_variance);
  }
  r.energy = own.size;
  return true;
}

bool holds(const FailingGroup& group, const attention::Problem& problem, const OutputRow& row) {
  return (group.sequence < 0 || group.sequence == row.sequence) && (group.head < 0 || group.head == row.head) &&
         (group.page < 0 || row.query == problem.first_query(row.sequence + 1) - 1);
}

struct GroupRows {
  std::vector<GroupRow> inside, outside;
};

GroupRows rows_of_groups(const DiagnosisInput& input, const Outputs& outputs, FailurePattern& pattern) {
  const attention::Problem& problem = input.problem;
  pattern.rows_of_sequence.assign(static_cast<std::size_t>(problem.batch), 0);
  pattern.failing_of_sequence = pattern.sequences = pattern.rows_of_sequence;
  pattern.rows_of_head.assign(static_cast<std::size_t>(outputs.heads), 0);
  pattern.failing_of_head = pattern.heads = pattern.rows_of_head;
  pattern.dims.assign(static_cast<std::size_t>(outputs.dims), 0);
  GroupRows rows;
  std::set<std::int64_t> outside;  // sequences and heads that are represented
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t query = problem.first_query(b); query < problem.first_query(b + 1); ++query) {
      for (std::int64_t head = 0; head < outputs.heads; ++head) {
        GroupRow r;
        r.row.query = query;
        r.row.head = head;
        r.row.sequence = b;
        const bool inside = std::any_of(input.failing_groups.begin(), input.failing_groups.end(),
                                        [&](const FailingGroup& group) { return holds(group, problem, r.row); });
        ++pattern.rows;
        ++pattern.rows_of_sequence[static_cast<std::size_t>(b)];
        ++pattern.rows_of_head[static_cast<std::size_t>(head)];
        if (inside) {
          ++pattern.failing_rows;
          ++pattern.failing_of_sequence[static_cast<std::size_t>(b)];
          ++pattern.failing_of_head[static_cast<std::size_t>(head)];
        } else if (rows.outside.size() == kOtherRows || (outside.contains(b) && rows.outside.size() + 2 > kOtherRows)) {
          continue;
        }
        if (!prepare(outputs, r)) continue;
        if (!inside) outside.insert(b);
        (inside ? rows.inside : rows.outside).push_back(std::move(r));
        if (rows.inside.size() >= 4 * kGroupRows) {  // keeps the strongest
          std::stable_sort(rows.inside.begin(), rows.inside.end(),
                           [](const GroupRow& x, const GroupRow& y) { return x.energy > y.energy; });
          rows.inside.resize(kGroupRows);
        }
      }
    }
  }
  std::stable_sort(rows.inside.begin(), rows.inside.end(),
                   [](const GroupRow& x, const GroupRow& y) { return x.energy > y.energy; });
  if (rows.inside.size() > kGroupRows) rows.inside.resize(kGroupRows);
  return rows;
}

std::string counted_words(const std::vector<std::int64_t>& failing, const char* one, const char* many) {
  const auto count = failing.size() - static_cast<std::size_t>(std::count(failing.begin(), failing.end(), 0));
  if (count == failing.size()) return failing.size() == 1 ? std::string("the only ") + one : std::string("all ") + many;
  const auto first = std::find_if(failing.begin(), failing.end(), [](std::int64_t n) { return n > 0; });
  if (count == 1) return one + (" " + std::to_string(first - failing.begin()));
  return std::to_string(count) + " of " + std::to_string(failing.size()) + " " + many;
}

// The trials of the pages that the page tests name.
std::vector<Trial> trials_of_tests(const DiagnosisInput& input, const std::vector<GroupRow>& rows) {
  std::vector<Trial> trials;
  std::set<std::pair<std::int64_t, std::pair<std::int64_t, std::int64_t>>> added;
  for (const FailingGroup& group : input.failing_groups) {
    if (group.page < 0) continue;
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const GroupRow& r) { return r.row.sequence == group.sequence; });
    if (row == rows.end()) continue;
    const std::int64_t size = input.problem.k.page_size, keys = input.problem.keys(group.sequence);
    const std::int64_t last = (keys - 1) / size;
    for (const auto& pair :
         {std::pair{group.page, group.from_page}, {group.from_page, group.page}, {group.page, last}}) {
      if (pair.first < 0 || pair.first == pair.second || !added.insert({group.sequence, pair}).second) continue;
      std::vector<Trial> found = trials_of_page(input, *row->row.evaluator, pair.first, pair.second);
      std::move(found.begin(), found.end(), std::back_inserter(trials));
    }
  }
  return trials;
}

struct FittedTrial {
  Explanation explanation;
  ChangeFit fit;
  bool explains = false, residual_passes = false;
};

// Whether the rows' distances from the predictions are what rounding makes.
bool residual_passes(const Outputs& outputs, const std::vector<GroupRow>& rows,
                     const std::vector<RowValue>& predicted) {
  std::vector<RowEvidence> evidence;
  std::vector<RowLabel> labels;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowValue& p = predicted[i];
    const attention::OutputBudgets budgets(outputs.rounding, p.terms);
    RowEvidence e;
    for (std::size_t d = 0; d < p.o.size(); ++d) {
      const attention::Budget budget = budgets.of(p.element(d));
      const double systematic = budget.before_output() - budget.independent, x = rows[i].row.candidate.o[d];
      const double half = attention::half_step(outputs.rounding.output, p.o[d]);
      const double boundary = half - std::fabs(rounded_to(outputs.rounding.output, p.o[d]) - p.o[d]);
      const double excess = std::fabs(x - p.o[d]) - attention::half_step(outputs.rounding.output, x) - systematic;
      e.add(std::max(0.0, excess) / budget.deviation, std::max(0.0, boundary - systematic) / budget.deviation,
            outputs.rounding.deviations);
    }
    evidence.push_back(e);
    labels.push_back({0, 0, static_cast<double>(i)});
  }
  return test_groups(evidence, labels).failing == 0;
}

FittedTrial fitted(const Trial& trial, const Outputs& outputs, const GroupRows& rows) {
  FittedTrial t{{trial.name, trial.cause, trial.look_at, 0, 0, kInfinite, trial.sequence, trial.page}, {}};
  // The first dims of the first row rule most trials out: they change the output by more than its bound.
  const auto first =
      std::find_if(rows.inside.begin(), rows.inside.end(), [&](const GroupRow& r) { return changes(trial, r.row); });
  if (first == rows.inside.end()) return t;
  t.explanation.misfit = misfit(first->row.candidate, trial.predict(first->row.probe()));
  if (!(t.explanation.misfit <= 1)) return t;
  std::vector<RowValue> predictions;
  double worst = 0;
  for (const GroupRow& r : rows.inside) {
    predictions.push_back(changes(trial, r.row) ? predicted(trial, r.row) : r.golden);
    const double m = misfit(r.row.candidate, predictions.back());
    if (!(m <= 1)) {
      t.explanation.misfit = m;
      return t;
    }
    worst = std::max(worst, m);
    add_row(t.fit, r, predictions.back());
    if (predictions.size() == kFirstRows && t.fit.size < kLeastChange) break;
  }
  t.explanation.misfit = worst;
  t.explanation.change_share = t.fit.share();
  t.explanation.change_deviations = t.fit.deviations();
  if (predictions.size() < rows.inside.size() || t.fit.deviations() < kLeastDeviations) return t;
  t.explains = std::fabs(t.fit.share() - 1) <= std::max(0.1, 3 / t.fit.deviations());
  if (!t.explains) return t;
  t.explanation.failing_explained = static_cast<std::int64_t>(rows.inside.size());
  t.residual_passes = residual_passes(outputs, rows.inside, predictions);
  for (const GroupRow& r : rows.outside) {
    ChangeFit other;
    const RowValue p = changes(trial, r.row) ? predicted(trial, r.row) : r.golden;
    if (!(misfit(r.row.candidate, p) <= 1)) continue;
    add_row(other, r, p);
    if (other.gain() >= -kGainMargin) ++t.explanation.correct_explained;
  }
  return t;
}

}  // namespace

void diagnose_groups(const DiagnosisInput& input, const Outputs& outputs, Diagnosis& diagnosis) {
  diagnosis.of_groups = true;
  FailurePattern& pattern = diagnosis.pattern;
  pattern = {};
  GroupRows rows = rows_of_groups(input, outputs, pattern);
  pattern.words = counted_words(pattern.failing_of_sequence, "sequence", "sequences") + "; " +
                  counted_words(pattern.failing_of_head, "head", "heads") + "; each element is within its bound";
  if (rows.inside.empty()) return;
  std::vector<OutputRow> inside, outside;
  for (GroupRow& r : rows.inside) inside.push_back(std::move(r.row));
  for (GroupRow& r : rows.outside) outside.push_back(std::move(r.row));
  make_evaluators(input, {&inside, &outside});
  check_problem_is_the_goldens(input, outputs, inside.front());
  find_pages(pattern, page_rows(outputs, inside));
  std::vector<Trial> trials = trials_for(input, outputs, inside);
  for (std::size_t i = 0; i < std::min(kSearchedGroupRows, inside.size()); ++i) {
    std::vector<Trial> found =
        page_search(input, *inside[i].evaluator, inside[i].candidate, rows.inside[i].noise, kFoundInGroups);
    std::move(found.begin(), found.end(), std::back_inserter(trials));
  }
  for (std::size_t i = 0; i < inside.size(); ++i) rows.inside[i].row = std::move(inside[i]);
  for (std::size_t i = 0; i < outside.size(); ++i) rows.outside[i].row = std::move(outside[i]);
  std::vector<Trial> of_tests = trials_of_tests(input, rows.inside);
  std::move(of_tests.begin(), of_tests.end(), std::back_inserter(trials));
  for (std::vector<GroupRow>* some : {&rows.inside, &rows.outside}) {
    for (const GroupRow& r : *some) r.row.expect_lse(*r.row.evaluator);
  }
  diagnosis.failing_rows = static_cast<std::int64_t>(rows.inside.size());
  diagnosis.correct_rows = static_cast<std::int64_t>(rows.outside.size());

  std::set<std::string> names, causes;
  std::vector<FittedTrial> all;
  for (const Trial& trial : trials) {
    names.insert(trial.name);
    if (!causes.insert(trial.cause).second) continue;
    all.push_back(fitted(trial, outputs, rows));
  }
  diagnosis.hypotheses = static_cast<std::int64_t>(names.size());
  std::stable_sort(all.begin(), all.end(),
                   [](const FittedTrial& a, const FittedTrial& b) { return a.fit.gain() > b.fit.gain(); });
  const double best = all.front().fit.gain();
  std::set<std::string> listed;
  std::vector<const FittedTrial*> explaining;
  const auto explains = [&](const FittedTrial& t) { return t.explains && t.fit.gain() >= best - kGainMargin; };
  const bool named = std::any_of(all.begin(), all.end(),
                                 [&](const FittedTrial& t) { return explains(t) && !is_fitted(t.explanation.name); });
  for (const FittedTrial& t : all) {
    if (explains(t)) {
      if (named && is_fitted(t.explanation.name)) continue;
      diagnosis.explanations.push_back(t.explanation);
      explaining.push_back(&t);
    } else if (t.fit.size > 0 && diagnosis.nearest.size() < kNearestOfGroups &&
               listed.insert(t.explanation.name).second) {
      diagnosis.nearest.push_back(t.explanation);
    }
  }
  diagnosis.certain = explaining.size() == 1 && explaining.front()->residual_passes &&
                      explaining.front()->fit.deviations() >= kCertainDeviations &&
                      explaining.front()->explanation.correct_explained == diagnosis.correct_rows;
}

}  // namespace kvscope::golden
