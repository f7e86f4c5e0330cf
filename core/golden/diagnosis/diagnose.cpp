#include "core/golden/diagnosis/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "core/attention/bounds.h"
#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/golden/candidate_rounding.h"
#include "core/golden/diagnosis/page_search.h"
#include "core/golden/golden_terms.h"

namespace kvscope::golden {
namespace {

constexpr double kUnfitted = std::numeric_limits<double>::infinity();
constexpr std::size_t kFailingRows = 16, kCorrectRows = 8, kNearest = 3, kSearchedRows = 4, kFoundPages = 64;
// A prediction this close counts as an explanation: the hypothesis computes what the kernel computed, so its error
// bound
// holds.
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
  bool has_nan = false;
  CandidateRow candidate;
  std::unique_ptr<RowEvaluator> evaluator;
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

std::string range_words(const std::vector<std::int64_t>& counts, const std::string& one, const std::string& many) {
  std::vector<std::int64_t> failing;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) failing.push_back(static_cast<std::int64_t>(i));
  }
  if (failing.size() == counts.size())
    return counts.size() == 1 ? fmt::format("the only {}", one) : fmt::format("all {} {}", counts.size(), many);
  if (failing.size() == 1) return fmt::format("{} {} of {}", one, failing.front(), counts.size());
  const bool run = failing.back() - failing.front() + 1 == static_cast<std::int64_t>(failing.size());
  if (run) return fmt::format("{} {} to {} of {}", many, failing.front(), failing.back(), counts.size());
  if (failing.size() <= 8) return fmt::format("{} {} of {}", many, fmt::join(failing, ", "), counts.size());
  return fmt::format("{} of {} {}", failing.size(), counts.size(), many);
}

Rows rows_of(const Outputs& outputs, FailurePattern& pattern) {
  const attention::Problem& problem = outputs.problem;
  std::vector<Row> failing, correct;
  pattern.sequences.assign(static_cast<std::size_t>(problem.batch), 0);
  pattern.heads.assign(static_cast<std::size_t>(outputs.heads), 0);
  pattern.dims.assign(static_cast<std::size_t>(outputs.dims), 0);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t query = problem.first_query(b); query < problem.first_query(b + 1); ++query) {
      for (std::int64_t head = 0; head < outputs.heads; ++head) {
        Row row;
        row.query = query;
        row.head = head;
        row.sequence = b;
        row.candidate = outputs.candidate(query, head);
        const RowValue golden = outputs.golden(query, head);
        row.ratio = misfit(row.candidate, golden);
        row.has_nan =
            std::any_of(row.candidate.o.begin(), row.candidate.o.end(), [](double x) { return !std::isfinite(x); });
        ++pattern.rows;
        if (row.ratio <= 1) {
          correct.push_back(std::move(row));
          continue;
        }
        ++pattern.failing_rows;
        for (std::size_t d = 0; d < row.candidate.o.size(); ++d) {
          if (attention::output_within(outputs.rounding, golden.terms, golden.element(d), row.candidate.o[d])) {
            continue;
          }
          ++pattern.sequences[static_cast<std::size_t>(b)];
          ++pattern.heads[static_cast<std::size_t>(head)];
          ++pattern.dims[d];
        }
        failing.push_back(std::move(row));
      }
    }
  }
  // Finite rows tell more than rows of NaN; then the largest error first.
  std::stable_sort(failing.begin(), failing.end(),
                   [](const Row& a, const Row& b) { return a.has_nan != b.has_nan ? b.has_nan : a.ratio > b.ratio; });
  return {spread(std::move(failing), kFailingRows), spread(std::move(correct), kCorrectRows)};
}

double misfit_of(const Trial& trial, const Row& row) {
  const bool changed = trial.sequence < 0 || trial.sequence == row.sequence;
  return misfit(row.candidate,
                changed ? trial.predict(*row.evaluator) : row.evaluator->evaluate(row.evaluator->correct()));
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
  const RowValue again = row.evaluator->evaluate(row.evaluator->correct());
  CandidateRow golden;
  const RowValue stored = outputs.golden(row.query, row.head);
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

// A factor of the scale fitted to one row: coarse steps, then golden-section search.
std::vector<Trial> fitted_scale(const Row& row) {
  // An evaluator that always predicts o: the error must change smoothly with the factor.
  const RowEvaluator whole(row.evaluator->problem(), {}, row.sequence, row.query, row.head);
  const double scale = whole.correct().scale;
  const auto error = [&](double log_factor) {
    Recipe recipe = whole.correct();
    recipe.scale = scale * std::exp(log_factor);
    return misfit(row.candidate, whole.evaluate(recipe));
  };
  double best = 0, best_error = kUnfitted;
  const double step = 0.0625;
  for (double x = -3; x <= 3; x += step) {
    const double e = error(x);
    if (e < best_error) {
      best_error = e;
      best = x;
    }
  }
  double low = best - step, high = best + step;
  constexpr double kGolden = 0.6180339887498949;
  for (int i = 0; i < 40; ++i) {
    const double a = high - kGolden * (high - low);
    const double b = low + kGolden * (high - low);
    if (error(a) <= error(b)) {
      high = b;
    } else {
      low = a;
    }
  }
  const double factor = std::exp((low + high) / 2);
  if (!(error(std::log(factor)) <= kExplained)) return {};
  Trial trial;
  trial.name = "scale_factor";
  trial.cause = fmt::format("the scores are multiplied by {:.6g} instead of {:.6g}: a factor of {:.5g}", scale * factor,
                            scale, factor);
  trial.look_at = "the factor of q . k before the softmax, and scales of K";
  trial.predict = [factor](const RowEvaluator& evaluator) {
    Recipe recipe = evaluator.correct();
    recipe.scale *= factor;
    return evaluator.evaluate(recipe);
  };
  return {trial};
}

// A factor on o, the same for each element.
std::vector<Trial> fitted_output(const Row& row) {
  const RowEvaluator correct(row.evaluator->problem(), {}, row.sequence, row.query, row.head);
  const RowValue golden = correct.evaluate(correct.correct());
  double xy = 0, yy = 0;
  for (std::size_t d = 0; d < golden.o.size(); ++d) {
    xy += row.candidate.o[d] * golden.o[d];
    yy += golden.o[d] * golden.o[d];
  }
  if (!(yy > 0) || !std::isfinite(xy) || xy == 0) return {};
  const double factor = xy / yy;
  if (std::fabs(factor) > 1e6 || std::fabs(factor) < 1e-6) return {};
  Trial trial;
  trial.name = "output_factor";
  trial.cause = fmt::format("every element of o is {:.5g} times the golden's", factor);
  trial.look_at = "scales of V and the last division";
  trial.predict = [factor](const RowEvaluator& evaluator) {
    RowValue value = evaluator.evaluate(evaluator.correct());
    for (std::size_t d = 0; d < value.o.size(); ++d) {
      value.o[d] *= factor;
      value.a1[d] *= std::fabs(factor);
      value.a2[d] *= std::fabs(factor);
    }
    return value;
  };
  return {trial};
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
  for (std::vector<Row>* some : {&rows.failing, &rows.correct}) {
    for (Row& row : *some) {
      if (row.candidate.has_lse) row.evaluator->expect(row.candidate.lse, row.candidate.rounding);
    }
  }
  diagnosis.failing_rows = static_cast<std::int64_t>(rows.failing.size());
  diagnosis.correct_rows = static_cast<std::int64_t>(rows.correct.size());
  FailurePattern& pattern = diagnosis.pattern;
  pattern.only_nan = std::ranges::all_of(rows.failing, &Row::has_nan);  // rows of numbers come first
  const bool only_lse = std::all_of(pattern.dims.begin(), pattern.dims.end(), [](std::int64_t n) { return n == 0; });
  pattern.words =
      only_lse ? "o is correct everywhere; only lse fails"
               : fmt::format("{}; {}; {}", range_words(pattern.sequences, "sequence", "sequences"),
                             range_words(pattern.heads, "head", "heads"), range_words(pattern.dims, "dim", "dims"));

  std::vector<Trial> trials = hypotheses(input);
  const Row& first = rows.failing.front();
  for (Trial& trial : fitted_scale(first)) trials.push_back(std::move(trial));
  for (Trial& trial : fitted_output(first)) trials.push_back(std::move(trial));
  std::set<std::int64_t> searched;
  for (const Row& row : rows.failing) {
    if (row.has_nan || searched.size() >= kSearchedRows || !searched.insert(row.sequence).second) continue;
    for (Trial& trial : page_search(input, *row.evaluator, row.candidate, kFoundPages))
      trials.push_back(std::move(trial));
  }
  std::set<std::string> names;
  std::vector<Explanation> all;
  for (const Trial& trial : trials) {
    names.insert(trial.name);
    // The first failing row that the trial can change decides whether the others are computed.
    const auto row = std::find_if(rows.failing.begin(), rows.failing.end(),
                                  [&](const Row& r) { return trial.sequence < 0 || trial.sequence == r.sequence; });
    if (row == rows.failing.end()) continue;
    const double m = misfit_of(trial, *row);
    if (m <= kExplained) {
      all.push_back(judge(trial, rows));
    } else {
      all.push_back({trial.name, trial.cause, trial.look_at, 0, 0, m, trial.sequence, trial.page});
    }
  }
  diagnosis.hypotheses = static_cast<std::int64_t>(names.size());
  std::stable_sort(all.begin(), all.end(), better);
  // A fitted factor repeats what a named cause with this factor predicts.
  const auto fitted = [](const Explanation& e) { return e.name == "scale_factor" || e.name == "output_factor"; };
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
  diagnosis.certain =
      diagnosis.explanations.size() == 1 && diagnosis.explanations.front().correct_explained == diagnosis.correct_rows;
  return diagnosis;
}

std::string text_report(const Diagnosis& d) {
  if (d.candidate_passes) return "diagnosis  the candidate is within its bound: nothing to explain\n";
  std::string text =
      fmt::format("fails at   {} of {} rows: {}\n", d.pattern.failing_rows, d.pattern.rows, d.pattern.words);
  const auto evidence = [&](const Explanation& e) {
    std::string line = fmt::format("{} of {} failing rows reproduced within {:.2g}x the allowed error",
                                   e.failing_explained, d.failing_rows, e.misfit);
    if (d.correct_rows > 0 && e.failing_explained == d.failing_rows) {
      line += fmt::format("; {} of {} correct rows too", e.correct_explained, d.correct_rows);
    }
    return line;
  };
  if (d.explanations.empty()) {
    text += fmt::format("diagnosis  none of {} hypotheses explains the failing rows\n", d.hypotheses);
    if (d.pattern.only_nan)
      text +=
          "  but      all of them hold NaN: the kernel divided by zero, read a slot that no sequence owns, or did not "
          "write "
          "them (a new array of ptx run begins as NaN)\n";
  } else {
    const Explanation& best = d.explanations.front();
    text += fmt::format("diagnosis  {}{}\n", d.certain ? "" : "probably: ", best.cause);
    text += fmt::format("  look at  {}\n  evidence {}\n", best.look_at, evidence(best));
    for (std::size_t i = 1; i < std::min<std::size_t>(d.explanations.size(), 4); ++i) {
      text += fmt::format("  or       {} ({})\n", d.explanations[i].cause, evidence(d.explanations[i]));
    }
    if (d.explanations.size() > 4)
      text += fmt::format("  or       {} other explanations of the same rows\n", d.explanations.size() - 4);
    if (best.correct_explained < d.correct_rows) {
      text += "  but      it would make rows fail that are correct: the fault concerns only a part of the output\n";
    }
  }
  if (!d.nearest.empty()) {
    const Explanation& next = d.nearest.front();
    text += next.failing_explained > 0
                ? fmt::format("  next     {}: {} of {} failing rows, {} of {} correct rows\n", next.cause,
                              next.failing_explained, d.failing_rows, next.correct_explained, d.correct_rows)
            : std::isfinite(next.misfit)
                ? fmt::format("  next     {}: {:.3g}x the allowed error\n", next.cause, next.misfit)
            : d.explanations.empty() ? ""
                                     : "  next     no other hypothesis comes near\n";
  }
  return text;
}

json::Value json_report(const Diagnosis& d) {
  json::Value report;
  report.set("candidate_passes", d.candidate_passes);
  report.set("hypotheses", d.hypotheses);
  report.set("failing_rows", d.failing_rows);
  report.set("correct_rows", d.correct_rows);
  report.set("certain", d.certain);
  const auto list = [](const std::vector<Explanation>& explanations) {
    json::Array array;
    for (const Explanation& e : explanations) {
      array.emplace_back(json::Object{{"name", e.name},
                                      {"cause", e.cause},
                                      {"look_at", e.look_at},
                                      {"failing_explained", e.failing_explained},
                                      {"correct_explained", e.correct_explained},
                                      {"error_over_allowed", e.misfit}});
    }
    return array;
  };
  report.set("explanations", list(d.explanations));
  report.set("nearest", list(d.nearest));
  json::Value pattern;
  pattern.set("rows", d.pattern.rows);
  pattern.set("failing_rows", d.pattern.failing_rows);
  pattern.set("words", d.pattern.words);
  for (const auto& [key, counts] :
       {std::pair<const char*, const std::vector<std::int64_t>&>{"sequences", d.pattern.sequences},
        {"heads", d.pattern.heads},
        {"dims", d.pattern.dims}}) {
    json::Array array;
    for (const std::int64_t count : counts) array.emplace_back(count);
    pattern.set(key, std::move(array));
  }
  report.set("pattern", std::move(pattern));
  return report;
}

}  // namespace kvscope::golden
