#include "core/golden/verdict/page_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/golden/diagnosis/row_recipe.h"
#include "core/golden/verdict/detail/key_sums.h"
#include "core/golden/verdict/measures.h"

namespace kvscope::golden {
namespace {

constexpr double kPageFalseAlarm = 1e-7;         // of all tests of one tensor
constexpr std::int64_t kMostElements = 1 << 26;  // of K and V that are read
constexpr std::size_t kExactTests = 6;           // directions of a group whose allowed value is computed in full

// The keys of one page, or those of them that are lost when the page is exchanged with a last page that is not full:
// unit g is page g, unit pages + g is the end of page g. The unit after these is not a page: all keys, with the change
// that a wrong scale of the scores makes.
struct Units {
  std::size_t pages = 0, last_slots = 0;  // of the last page; 0: full
  [[nodiscard]] std::size_t of_pages() const { return last_slots == 0 ? pages : 2 * pages; }
  [[nodiscard]] std::size_t scale() const { return of_pages(); }
  [[nodiscard]] std::size_t count() const { return of_pages() + 1; }
};

// A direction: unit `minus` missing, or read from the block of unit `plus`.
struct Direction {
  std::size_t minus = 0, plus = 0;
  [[nodiscard]] bool pair() const { return minus != plus; }
  auto operator<=>(const Direction&) const = default;
};

// |L| and the parts of its allowed value; sums over rows.
struct Test {
  double sum = 0, systematic = 0, variance = 0, rounding_variance = 0, largest_step = 0;

  Test& operator+=(const Test& other) {
    sum += other.sum;
    systematic += other.systematic;
    variance += other.variance;
    rounding_variance += other.rounding_variance;
    largest_step = std::max(largest_step, other.largest_step);
    return *this;
  }
  [[nodiscard]] double ratio(double x) const {
    const double allowed =
        systematic + std::sqrt(2 * x * variance) + std::sqrt(2 * x * rounding_variance) + x / 3 * largest_step;
    return sum == 0 ? 0 : std::fabs(sum) / allowed;
  }
};

// The distance of a candidate's stored value from the golden's, and what rounding may contribute to it. Truncation that
// only makes lse smaller, by up to f, is half of it: the distance from a value that is f / 2 smaller is f / 2 at most.
struct ElementError {
  double error = 0, systematic = 0, deviation = 0, rounding_variance = 0, step = 0;
  double to_other_value = 0;  // how far the golden is from where the nearest stored value changes
  double before_output = 0;   // largest error that may take it there
  [[nodiscard]] double variance() const { return deviation * deviation + rounding_variance; }
};

ElementError element_error(DType type, const attention::Budget& budget, double candidate, double golden) {
  ElementError e;
  e.error = candidate - rounded_to(type, golden) + budget.falling / 2;
  e.systematic = budget.before_output() - budget.independent - budget.common - budget.falling / 2;
  e.deviation = budget.deviation;
  e.step = 2 * attention::half_step(type, std::fabs(golden) + budget.before_output());
  e.before_output = budget.deviation + e.systematic + budget.common + budget.falling / 2;
  e.rounding_variance = std::min(e.before_output * e.step, e.step * e.step / 4);
  e.to_other_value = e.step / 2 - std::fabs(golden - rounded_to(type, golden));
  return e;
}

// The steps of the output are independent if the golden values fall on independent places between two stored values:
// then the mean of the places, as points of a circle, is near its center. In a row of nearly equal values it is not,
// and an error that they share takes all that are near the middle of two values to the other one: steps in one
// direction.
void allow_steps_together(std::span<const double> golden, std::vector<ElementError>& errors) {
  constexpr double kMostOfIndependent = 8;  // the square of the sum of n points exceeds 8 n with probability exp(-8)
  double x = 0, y = 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const double place = 2 * std::numbers::pi * golden[i] / errors[i].step;
    x += std::cos(place), y += std::sin(place);
  }
  if (!(x * x + y * y > kMostOfIndependent * static_cast<double>(errors.size()))) return;
  for (ElementError& e : errors) e.systematic += e.to_other_value < e.before_output ? e.step : 0;
}

// One head of a sequence's last query.
class TestedRow {
 public:
  TestedRow(const PageTestInput& input, std::int64_t sequence, std::int64_t query, std::int64_t head)
      : input_(input),
        evaluator_(input.problem, {}, sequence, query, head),
        row_(static_cast<std::size_t>(query * input.problem.query_heads + head)),
        dims_(static_cast<std::size_t>(input.problem.v.head_size)),
        head_(head) {}

  // False when the row holds NaN or infinities, which are compared as masks.
  bool prepare() {
    const attention::RowTerms terms = input_.terms.row(row_);
    lse_ = terms.base_two ? terms.lse * std::numbers::ln2 : terms.lse;
    if (!std::isfinite(lse_)) return false;
    const attention::OutputBudgets budgets(input_.rounding, terms);
    double weighted = 0;
    for (std::size_t i = 0; i < dims_; ++i) {
      const attention::ElementTerms element = input_.terms.element(row_ * dims_ + i);
      const double x = input_.o[row_ * dims_ + i];
      if (!std::isfinite(element.o) || !std::isfinite(x)) return false;
      o_.push_back(element.o);
      errors_.push_back(element_error(input_.rounding.output, budgets.of(element), x, element.o));
      if (!(errors_.back().variance() > 0)) return false;
      weighted += element.o * element.o / errors_.back().variance();
    }
    allow_steps_together(o_, errors_);
    along_o_ = weighted;
    probability_ = attention::probability_errors(input_.rounding, terms);
    if (!input_.lse.empty()) {
      if (!std::isfinite(input_.lse[row_])) return false;
      lse_error_ = element_error(input_.lse_rounding.lse, attention::lse_budget(input_.lse_rounding, terms),
                                 input_.lse[row_], terms.lse);
      lse_unit_ = terms.base_two ? std::numbers::log2e : 1.0;
    }
    return true;
  }

  // Reads K and V. False when the weights do not add up to 1: the problem is not the golden's.
  bool read() {
    terms_ = evaluator_.terms(evaluator_.correct());
    if (terms_.outside) return false;
    const std::optional<double> sink = evaluator_.correct().sink;
    double sum = sink ? std::exp(*sink - lse_) : 0;
    weights_.clear();
    largest_weight_ = sum;
    for (const double score : terms_.scores) {
      weights_.push_back(std::exp(score - lse_));
      sum += weights_.back();
      largest_weight_ = std::max(largest_weight_, weights_.back());
    }
    return std::fabs(sum - 1) < 1e-6;
  }
  void sort() {
    by_weight_.resize(weights_.size());
    for (std::size_t t = 0; t < weights_.size(); ++t) by_weight_[t] = t;
    std::ranges::stable_sort(by_weight_, [&](std::size_t a, std::size_t b) { return weights_[a] < weights_[b]; });
  }
  void forget() { terms_ = {}, weights_ = {}, by_weight_ = {}; }

  // For each unit: the direction d [dim] of o, and the unit's weight.
  void make_directions(const Units& units) {
    directions_.assign(units.count() * dims_, 0);
    unit_weights_.assign(units.count(), 0);
    const auto add = [&](std::size_t unit, std::size_t t) {
      double* d = &directions_[unit * dims_];
      for (std::size_t i = 0; i < dims_; ++i) d[i] += weights_[t] * (o_[i] - terms_.values[t][i]);
      unit_weights_[unit] += weights_[t];
    };
    const std::int64_t page_size = input_.problem.k.page_size;
    for (std::size_t t = 0; t < weights_.size(); ++t) {
      const std::int64_t position = evaluator_.correct().keys[t].position;
      const auto page = static_cast<std::size_t>(position / page_size);
      add(page, t);
      if (units.last_slots != 0 && static_cast<std::size_t>(position % page_size) >= units.last_slots) {
        add(units.pages + page, t);
      }
    }
    add_scale_direction(units.scale());
  }

  // a = d / variance, less its part along o.
  [[nodiscard]] std::vector<double> weighted(const Direction& direction) const {
    std::vector<double> a(dims_);
    double along = 0;
    for (std::size_t i = 0; i < dims_; ++i) {
      a[i] =
          directions_[direction.minus * dims_ + i] - (direction.pair() ? directions_[direction.plus * dims_ + i] : 0);
      along += a[i] * o_[i] / errors_[i].variance();
    }
    for (std::size_t i = 0; i < dims_; ++i) {
      a[i] = (a[i] - (along_o_ > 0 ? along / along_o_ * o_[i] : 0)) / errors_[i].variance();
    }
    return a;
  }

  // Everything but the errors of P, which need the keys.
  [[nodiscard]] Test output_test(const std::vector<double>& a) const {
    Test test;
    for (std::size_t i = 0; i < dims_; ++i) {
      const ElementError& e = errors_[i];
      test.sum += a[i] * e.error;
      test.systematic += std::fabs(a[i]) * e.systematic;
      test.rounding_variance += a[i] * a[i] * e.rounding_variance;
      test.largest_step = std::max(test.largest_step, std::fabs(a[i]) * e.step);
    }
    return test;
  }

  // At most kTogether directions.
  [[nodiscard]] std::vector<Test> exact_output_tests(std::span<const Direction> directions) const {
    std::vector<std::vector<double>> a;
    std::vector<double> columns(dims_ * kTogether);  // [dim, direction]
    for (const Direction& direction : directions) {
      a.push_back(weighted(direction));
      for (std::size_t i = 0; i < dims_; ++i) columns[i * kTogether + a.size() - 1] = a.back()[i];
    }
    struct Sums {
      double squares = 0, magnitudes = 0;
      double together = 0, together_squares = 0;  // of the keys with the same weight, whose errors are equal
    };
    std::array<Sums, kTogether> sums;
    std::array<double, kTogether> along{};
    auto* const project = key_sums().project;
    for (std::size_t n = 0; n < by_weight_.size(); ++n) {
      const std::size_t t = by_weight_[n];
      project(terms_.values[t], o_.data(), columns.data(), static_cast<std::int64_t>(dims_), along.data());
      const double error = relative_error(weights_[t]);
      const bool last = n + 1 == by_weight_.size() || weights_[by_weight_[n + 1]] != weights_[t];
      for (std::size_t j = 0; j < directions.size(); ++j) {
        const double change = along[j] * weights_[t];
        sums[j].magnitudes += std::fabs(change);
        sums[j].squares += change * error * (change * error);
        sums[j].together += change * error;
        if (!last) continue;
        sums[j].together_squares += sums[j].together * sums[j].together;
        sums[j].together = 0;
      }
    }
    std::vector<Test> tests;
    for (std::size_t j = 0; j < directions.size(); ++j) {
      Test test = output_test(a[j]);
      test.systematic += probability_.common * sums[j].magnitudes;
      test.variance =
          probability_.independent * probability_.independent * std::max(sums[j].squares, sums[j].together_squares);
      for (std::size_t i = 0; i < dims_; ++i) {
        test.variance += a[j][i] * a[j][i] * errors_[i].deviation * errors_[i].deviation;
      }
      tests.push_back(test);
    }
    return tests;
  }

  [[nodiscard]] Test lse_test(const Direction& direction) const {
    const double change = -unit_weights_[direction.minus] + (direction.pair() ? unit_weights_[direction.plus] : 0);
    const double a = change * lse_unit_ / lse_error_.variance();
    const ElementError& e = lse_error_;
    return {a * e.error, std::fabs(a) * e.systematic, a * a * e.deviation * e.deviation, a * a * e.rounding_variance,
            std::fabs(a) * e.step};
  }

  [[nodiscard]] std::int64_t head() const { return head_; }

 private:
  // The change of o if all scores double, to first order: sum of p_t (s_t - mean) (v_t - o), and mean for lse. Units
  // are missing keys, so the signs are those of a loss.
  void add_scale_direction(std::size_t unit) {
    double mean = 0;
    for (std::size_t t = 0; t < weights_.size(); ++t) mean += weights_[t] * terms_.scores[t];
    double* d = &directions_[unit * dims_];
    for (std::size_t t = 0; t < weights_.size(); ++t) {
      const double change = weights_[t] * (mean - terms_.scores[t]);
      for (std::size_t i = 0; i < dims_; ++i) d[i] += change * (terms_.values[t][i] - o_[i]);
    }
    unit_weights_[unit] = -mean;
  }

  // The deviation of a probability's error, relative to that of a probability in the normal range of P's type.
  [[nodiscard]] double relative_error(double weight) const {
    if (!(probability_.smallest * largest_weight_ > probability_.independent * weight)) return 1;
    const double lost = std::min(1.0, probability_.smallest * largest_weight_ / weight) / std::numbers::sqrt3;
    return std::max(1.0, std::hypot(probability_.independent, lost) / probability_.independent);
  }

  const PageTestInput& input_;
  RowEvaluator evaluator_;
  std::size_t row_, dims_;
  std::int64_t head_;
  double lse_ = 0, along_o_ = 0, lse_unit_ = 1, largest_weight_ = 0;
  std::vector<double> o_;
  std::vector<ElementError> errors_;
  ElementError lse_error_;
  attention::ProbabilityErrors probability_;
  RowEvaluator::Terms terms_;
  std::vector<double> weights_, directions_, unit_weights_;
  std::vector<std::size_t> by_weight_;
};

// The direction of a wrong scale, and those of pages with the largest |L| over a lower bound of its allowed value.
std::vector<Direction> largest(const Units& units, const std::vector<Test>& of_unit, double x) {
  std::vector<std::size_t> order(units.of_pages());
  for (std::size_t g = 0; g < order.size(); ++g) order[g] = g;
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return of_unit[a].ratio(x) > of_unit[b].ratio(x); });
  std::vector<Direction> chosen{{units.scale(), units.scale()}};
  for (std::size_t i = 0; i < std::min(kExactTests, order.size()); ++i) chosen.push_back({order[i], order[i]});
  // A page that is counted twice and one that is missing: opposite signs.
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return of_unit[a].sum < of_unit[b].sum; });
  chosen.push_back({order.back(), order.front()});  // tested sequences have at least two pages
  chosen.push_back({order[order.size() - 2], order.front()});
  if (order.size() >= 3) chosen.push_back({order.back(), order[1]});
  return chosen;
}

std::string unit_text(const Units& units, std::size_t unit) {
  if (unit < units.pages) return fmt::format("page {}", unit);
  return fmt::format("page {} from slot {} on", unit - units.pages, units.last_slots);
}

std::string direction_text(const Units& units, const Direction& direction, std::int64_t sequence, std::int64_t head) {
  std::string text = direction.minus == units.scale()
                         ? fmt::format("scale of the scores of sequence {}", sequence)
                         : fmt::format("{} of sequence {}", unit_text(units, direction.minus), sequence);
  if (direction.pair()) text += fmt::format(" from the block of {}", unit_text(units, direction.plus));
  return text + (head < 0 ? std::string(", all heads") : fmt::format(", head {}", head));
}

class Tester {
 public:
  explicit Tester(const PageTestInput& input) : input_(input) {
    if (!input.lse.empty()) result_.lse.emplace();
    choose_sequences();
  }

  PageTests run() {
    x_ = std::log(4 * std::max<double>(1, static_cast<double>(tests_ + scale_tests_)) / kPageFalseAlarm);
    for (const std::int64_t sequence : sequences_) {
      if (!test_sequence(sequence)) {
        result_.same_problem = false;
        return result_;
      }
    }
    for (PageTestResult* r : {&result_.o, result_.lse ? &*result_.lse : nullptr}) {
      if (r != nullptr) r->tests = tests_;
    }
    return result_;
  }

 private:
  [[nodiscard]] Units units_of(std::int64_t sequence) const {
    const std::int64_t size = input_.problem.k.page_size, keys = input_.problem.keys(sequence);
    return {static_cast<std::size_t>((keys + size - 1) / size), static_cast<std::size_t>(keys % size)};
  }

  void choose_sequences() {
    const attention::Problem& p = input_.problem;
    std::int64_t elements = 0;
    for (std::int64_t sequence = 0; sequence < p.batch; ++sequence) {
      if (p.first_query(sequence + 1) == p.first_query(sequence) || units_of(sequence).pages < 2) continue;
      const std::int64_t own = p.keys(sequence) * p.query_heads * (p.k.head_size + p.v.head_size);
      if (elements + own > kMostElements) {
        ++result_.untested;
        continue;
      }
      elements += own;
      sequences_.push_back(sequence);
      const auto units = static_cast<std::int64_t>(units_of(sequence).of_pages());
      tests_ += units * units * (p.query_heads + 1);
      scale_tests_ += p.query_heads + 1;
    }
  }

  bool test_sequence(std::int64_t sequence) {
    const attention::Problem& p = input_.problem;
    const std::int64_t query = p.first_query(sequence + 1) - 1;
    const Units units = units_of(sequence);
    std::vector<TestedRow> rows;
    std::set<double> seen;  // equal heads have equal errors
    std::vector<Test> output_all(units.count()), lse_all(units.count());
    std::set<Direction> chosen;
    const auto choose = [&](const std::vector<Test>& of_unit) {
      for (const Direction& direction : largest(units, of_unit, x_)) chosen.insert(direction);
    };
    for (std::int64_t head = 0; head < p.query_heads; ++head) {
      TestedRow row(input_, sequence, query, head);
      if (!row.prepare()) continue;
      if (!seen.insert(input_.terms.row(static_cast<std::size_t>(query * p.query_heads + head)).lse).second) continue;
      if (!row.read()) return false;
      row.make_directions(units);
      std::vector<Test> of_unit(units.count());
      for (std::size_t unit = 0; unit < units.count(); ++unit) {
        of_unit[unit] = row.output_test(row.weighted({unit, unit}));
        output_all[unit] += of_unit[unit];
        if (result_.lse) lse_all[unit] += row.lse_test({unit, unit});
      }
      choose(of_unit);
      row.forget();
      rows.push_back(std::move(row));
    }
    if (rows.empty()) return true;  // no direction is the worst of none
    choose(output_all);
    if (result_.lse) choose(lse_all);
    const std::vector<Direction> directions(chosen.begin(), chosen.end());
    std::vector<std::pair<Direction, Test>> output_sums, lse_sums;
    for (const Direction& direction : chosen) {
      output_sums.emplace_back(direction, Test{});
      lse_sums.emplace_back(direction, Test{});
    }
    for (TestedRow& row : rows) {
      if (!row.read()) return false;
      row.sort();
      std::vector<Test> tests;
      for (std::size_t i = 0; i < directions.size(); i += kTogether) {
        const auto some = std::span(directions).subspan(i, std::min(kTogether, directions.size() - i));
        for (const Test& test : row.exact_output_tests(some)) tests.push_back(test);
      }
      for (std::size_t i = 0; i < output_sums.size(); ++i) {
        const Direction direction = output_sums[i].first;
        output_sums[i].second += tests[i];
        judge(tests[i], units, direction, sequence, row.head(), 1, result_.o);
        if (!result_.lse) continue;
        const Test lse = row.lse_test(direction);
        lse_sums[i].second += lse;
        judge(lse, units, direction, sequence, row.head(), 1, *result_.lse);
      }
      row.forget();
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    for (std::size_t i = 0; i < output_sums.size(); ++i) {
      judge(output_sums[i].second, units, output_sums[i].first, sequence, -1, count, result_.o);
      if (result_.lse) judge(lse_sums[i].second, units, lse_sums[i].first, sequence, -1, count, *result_.lse);
    }
    return true;
  }

  void judge(const Test& test, const Units& units, const Direction& direction, std::int64_t sequence, std::int64_t head,
             std::int64_t rows, PageTestResult& result) const {
    const double ratio = test.ratio(x_);
    if (!(ratio <= 1)) ++result.failing;
    if (ratio <= result.ratio && !result.worst.empty()) return;
    result.ratio = ratio;
    result.rows = rows;
    result.worst = direction_text(units, direction, sequence, head);
    const auto page_of = [&](std::size_t unit) {
      return unit == units.scale() ? -1 : static_cast<std::int64_t>(unit % units.pages);
    };
    result.place = {sequence, head, page_of(direction.minus), direction.pair() ? page_of(direction.plus) : -1};
  }

  const PageTestInput& input_;
  std::vector<std::int64_t> sequences_;
  std::int64_t tests_ = 0, scale_tests_ = 0;
  double x_ = 0;
  PageTests result_;
};

}  // namespace

PageTests test_pages(const PageTestInput& input) {
  return Tester(input).run();
}

}  // namespace kvscope::golden
