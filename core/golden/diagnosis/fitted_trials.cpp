#include "core/golden/diagnosis/fitted_trials.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "core/golden/diagnosis/detail/output_rows.h"

namespace kvscope::golden {
namespace {

// Whether o, and lse if asked for, are the golden's of `row`; stops at the first element that is not.
bool holds(const CandidateRow& candidate, const GoldenTerms& golden, std::size_t row, bool with_lse) {
  const attention::RowTerms terms = golden.row(row);
  const attention::OutputBudgets budgets(candidate.rounding, terms);
  const std::size_t first = row * candidate.o.size();
  if (!std::isfinite(terms.lse)) return false;  // a row without keys is like every other
  for (std::size_t d = 0; d < candidate.o.size(); ++d) {
    const attention::ElementTerms element = golden.element(first + d);
    if (!(std::fabs(candidate.o[d] - element.o) <= budgets.of(element).total())) return false;
  }
  return !with_lse || !candidate.has_lse || attention::lse_within(candidate.rounding, terms, candidate.lse);
}

}  // namespace

// A factor of the scale fitted to one row: coarse steps, then golden-section search.
std::vector<Trial> fitted_scale(const RowEvaluator& row, const CandidateRow& candidate) {
  // An evaluator that always predicts o: the error must change smoothly with the factor. Some dims are enough for it.
  const RowEvaluator whole = row.first_dims(32);
  const double scale = whole.correct().scale;
  const auto error = [&](double log_factor) {
    Recipe recipe = whole.correct();
    recipe.scale = scale * std::exp(log_factor);
    return misfit(candidate, whole.evaluate(recipe));
  };
  double best = 0, best_error = std::numeric_limits<double>::infinity();
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
  if (!(error(std::log(factor)) <= 1)) return {};
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
std::vector<Trial> fitted_output(const std::vector<double>& golden, const CandidateRow& candidate) {
  double xy = 0, yy = 0;
  for (std::size_t d = 0; d < golden.size(); ++d) {
    xy += candidate.o[d] * golden[d];
    yy += golden[d] * golden[d];
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

// Where each element of o comes from: an element of the golden's row, or one of these.
constexpr std::size_t kZero = std::numeric_limits<std::size_t>::max(), kNaN = kZero - 1;

bool is_stored(std::size_t source) {
  return source < kNaN;
}

// "elements 64 to 127 of o hold elements 0 to 63": runs of elements that were moved by the same distance.
std::string text_of(const std::vector<std::size_t>& sources) {
  for (std::size_t bits = 1; bits < sources.size(); bits *= 2) {
    bool all = true;
    for (std::size_t d = 0; d < sources.size(); ++d) all = all && sources[d] == (d ^ bits);
    if (all) return fmt::format("element d of o holds element d ^ {}", bits);
  }
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> runs;
  std::size_t count = 0;
  for (std::size_t first = 0, last = 0; first < sources.size(); first = last) {
    const bool stored = is_stored(sources[first]);
    last = first + 1;
    while (last < sources.size() && sources[last] == sources[first] + (stored ? last - first : 0)) ++last;
    if (sources[first] == first || ++count > kNamed) continue;
    const auto range = [&](std::size_t from) {
      return last == first + 1 ? fmt::format("element {}", from)
                               : fmt::format("elements {} to {}", from, from + (last - first) - 1);
    };
    const bool one = last == first + 1;
    runs.push_back(
        stored ? fmt::format("{} of o {} {}", range(first), one ? "holds" : "hold", range(sources[first]))
               : fmt::format("{} of o {} {}", range(first), one ? "is" : "are", sources[first] == kZero ? "0" : "NaN"));
  }
  return fmt::format("{}{}", fmt::join(runs, ", "), count > kNamed ? fmt::format(", and {} more", count - kNamed) : "");
}

std::vector<Trial> moved_elements(const std::vector<MovedRow>& rows, const GoldenTerms& golden, std::int64_t heads) {
  const std::size_t dims = rows.front().candidate->o.size();
  const auto place = [&](const MovedRow& row) { return static_cast<std::size_t>(row.query * heads + row.head); };
  std::vector<attention::OutputBudgets> budgets;
  for (const MovedRow& row : rows) {
    const attention::RowTerms terms = golden.row(place(row));
    const CandidateRow& candidate = *row.candidate;
    if (!std::isfinite(terms.lse)) return {};
    if (candidate.has_lse && !attention::lse_within(candidate.lse_rounding, terms, candidate.lse)) return {};
    budgets.emplace_back(candidate.rounding, terms);
  }
  const auto fits = [&](std::size_t d, std::size_t source) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const attention::ElementTerms element = golden.element(place(rows[i]) * dims + source);
      if (!(std::fabs(rows[i].candidate->o[d] - element.o) <= budgets[i].of(element).total())) return false;
    }
    return true;
  };
  std::vector<std::size_t> sources(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    sources[d] = d;
    if (fits(d, d)) continue;
    std::size_t found = 0;
    for (std::size_t source = 0; source < dims && found < 2; ++source) {
      if (!fits(d, source)) continue;
      sources[d] = source;
      ++found;
    }
    const auto is_zero = [&](const MovedRow& row) { return row.candidate->o[d] == 0; };
    const auto is_nan = [&](const MovedRow& row) { return std::isnan(row.candidate->o[d]); };
    const bool zero = std::ranges::all_of(rows, is_zero);
    if (found == 0 && (zero || std::ranges::all_of(rows, is_nan))) {
      sources[d] = zero ? kZero : kNaN;
    } else if (found != 1) {
      return {};  // no element of the golden, or one of several
    }
  }
  const bool all_stored = std::ranges::all_of(sources, is_stored);
  std::vector<std::size_t> in_order(dims);
  std::iota(in_order.begin(), in_order.end(), std::size_t{0});
  if (sources == in_order || std::ranges::none_of(sources, is_stored)) return {};
  Trial trial;
  trial.name = all_stored ? "elements_moved" : "elements_not_stored";
  trial.cause = text_of(sources);
  trial.look_at = all_stored ? "the elements that each thread stores, or the order of the elements of V"
                             : "the store of o: which elements each thread writes";
  trial.predict = [sources = std::move(sources), &golden, heads](const RowEvaluator& row) {
    const RowValue correct = row_of(golden, static_cast<std::size_t>(row.query() * heads + row.head()));
    RowValue value = correct;
    for (std::size_t d = 0; d < sources.size(); ++d) {
      const auto take = [&](std::vector<double>& to, const std::vector<double>& from) {
        if (!from.empty()) to[d] = is_stored(sources[d]) ? from[sources[d]] : 0;
      };
      take(value.o, correct.o);
      if (sources[d] == kNaN) value.o[d] = std::numeric_limits<double>::quiet_NaN();
      take(value.a1, correct.a1);
      take(value.a2, correct.a2);
      take(value.running, correct.running);
    }
    return value;
  };
  return {trial};
}

std::vector<Trial> moved_rows(const std::vector<MovedRow>& rows, const GoldenTerms& golden, std::int64_t heads,
                              bool with_lse) {
  std::map<std::size_t, std::size_t> from;
  std::map<std::int64_t, std::set<std::int64_t>> head_moves;
  bool same_query = true;
  for (const MovedRow& row : rows) {
    const auto own = static_cast<std::size_t>(row.query * heads + row.head);
    const std::size_t first_of_query = static_cast<std::size_t>(row.query * heads);
    std::size_t found = golden.rows();
    for (std::size_t h = 0; h < static_cast<std::size_t>(heads) && found == golden.rows(); ++h) {
      const std::size_t other = first_of_query + h;
      if (other != own && holds(*row.candidate, golden, other, with_lse)) found = other;
    }
    for (std::size_t other = 0; other < golden.rows() && found == golden.rows(); ++other) {
      if (other != own && holds(*row.candidate, golden, other, with_lse)) found = other;
    }
    if (found == golden.rows()) return {};
    from[own] = found;
    same_query = same_query && static_cast<std::int64_t>(found) / heads == row.query;
    head_moves[row.head].insert(static_cast<std::int64_t>(found) % heads);
  }
  if (from.empty()) return {};
  std::string cause;
  if (same_query) {
    std::vector<std::string> moves;
    for (const auto& [head, sources] : head_moves) {
      moves.push_back(fmt::format("head {} that of head {}", head, fmt::join(sources, " or ")));
    }
    const std::size_t more = moves.size() > 4 ? moves.size() - 4 : 0;
    moves.resize(moves.size() - more);
    cause = fmt::format("query heads hold the output of other heads: {}{}", fmt::join(moves, ", "),
                        more > 0 ? fmt::format(", and {} more", more) : "");
  } else {
    const auto [own, other] = *from.begin();
    const auto h = static_cast<std::size_t>(heads);
    cause = fmt::format("rows hold the output of other rows: query row {}, head {} that of query row {}, head {}{}",
                        own / h, own % h, other / h, other % h,
                        from.size() > 1 ? fmt::format(", and {} more", from.size() - 1) : "");
  }
  Trial trial;
  trial.name = "rows_moved";
  trial.cause = cause + (with_lse ? "" : "; lse is correct");
  trial.look_at = "the row index of q and of the store of o";
  trial.predict = [from = std::move(from), &golden, heads, with_lse](const RowEvaluator& row) {
    const auto own = static_cast<std::size_t>(row.query() * heads + row.head());
    const auto found = from.find(own);
    RowValue value = row_of(golden, found == from.end() ? own : found->second);
    if (!with_lse) value.terms.lse = golden.row(own).lse;
    return value;
  };
  return {trial};
}

}  // namespace kvscope::golden
