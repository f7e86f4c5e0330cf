#include "core/golden/verdict/detail/output_pass.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/convert.h"
#include "core/base/interruption.h"
#include "core/golden/verdict/detail/verdict_loops.h"
#include "core/golden/verdict/golden_terms.h"

namespace kvscope::golden {
namespace {

// A bound of of_row() differs from that of of() by less than this, relative to it.
constexpr double kMargin = 1e-12;

class OutputJudge {
 public:
  OutputJudge(const Bundle& golden, const Tensor& o, const attention::Rounding& rounding,
              const std::optional<Tolerance>& fixed, const Locator& locator)
      : o_(o),
        want_(values<double>(golden.tensors.at("o"))),
        heads_(golden.tensors.at("o").shape[1]),
        dims_(golden.tensors.at("o").shape[2]),
        rounding_(rounding),
        fixed_(fixed),
        locator_(locator),
        terms_(golden),
        type_(number_type(rounding.output)),
        measuring_(o.dtype) {}

  OutputPass run() {
    const std::size_t rows = dims_ == 0 ? 0 : want_.size() / static_cast<std::size_t>(dims_);
    if (!fixed_) pass_.evidence.resize(rows);
    for (row_ = 0; row_ < rows; ++row_) {
      interruption_point();
      if (!fixed_) budgets_.emplace(rounding_, terms_.row(row_));
      summary_ = nullptr;
      for (std::int64_t dim = 0; dim < dims_; dim += kBlock) {
        judge(row_ * static_cast<std::size_t>(dims_) + static_cast<std::size_t>(dim), std::min(kBlock, dims_ - dim));
      }
    }
    pass_.measures = measuring_.result();
    return std::move(pass_);
  }

 private:
  // `count` elements of row_ from `at` on.
  void judge(std::size_t at, std::int64_t count) {
    const auto n = static_cast<std::size_t>(count);
    const auto size = static_cast<std::size_t>(size_of(o_.dtype));
    to_doubles(o_.dtype, o_.bytes.data() + at * size, std::span(have_).first(n));
    const std::span<const double> want = want_.subspan(at, n), have = std::span<const double>(have_).first(n);
    if (!measuring_.add(o_.bytes.data() + at * size, have, want) || !fits(want)) return judge_one_by_one(at, n);
    if (fixed_) {
      for (std::size_t i = 0; i < n; ++i) allowed_[i] = fixed_->allowed(want[i]);
    } else {
      budgets_->of_row(terms_.elements(at, count), {allowed_.data(), systematic_.data(), variance_.data()});
      loops_.weigh(type_, rounding_.deviations, have.data(), want.data(), systematic_.data(), variance_.data(), count,
                   &weighed_);
      if (!weighed_.usable) return judge_one_by_one(at, n);
      pass_.evidence[row_].add(weighed_, count);
    }
    pass_.masks.elements += count;
    if (pass_.judged.worst_ratio >= 0 && !loops_.exceeds(have.data(), want.data(), allowed_.data(), certain(), count)) {
      return;
    }
    for (std::size_t i = 0; i < n; ++i) judge_by_vector(at + i, have[i], want[i], allowed_[i]);
  }

  // Elements whose error is up to this share of the allowed error do not fail and are not the worst.
  [[nodiscard]] double certain() const { return std::min(1.0, pass_.judged.worst_ratio) * (1 - kMargin); }

  // Whether no golden value rounds to an infinity of the output's type, which may be narrower than the stored type.
  [[nodiscard]] bool fits(std::span<const double> want) const {
    if (rounding_.output == o_.dtype) return true;
    return std::ranges::all_of(want, [&](double g) { return std::isfinite(rounded_to(rounding_.output, g)); });
  }

  void judge_by_vector(std::size_t at, double have, double want, double allowed) {
    const double error = std::abs(have - want);
    if (pass_.judged.worst_ratio >= 0 && error <= certain() * allowed) return;
    const double near = ratio_of(error, allowed);
    // Of many failing elements, only those that may be the worst of all or of their head are judged again.
    const double known = std::min(pass_.judged.worst_ratio, summary_ == nullptr ? 0.0 : summary_->worst_ratio);
    const bool only_counted = near > 1 + kMargin && near < known * (1 - kMargin);
    add(at, error, only_counted ? near : ratio_of(error, exactly_allowed(at, want)));
  }

  void judge_one_by_one(std::size_t at, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const double have = have_[i], want = want_[at + i], rounded = rounded_to(rounding_.output, want);
      pass_.masks.add(at + i, have, rounded);
      if (!std::isfinite(have)) continue;
      if (!fixed_ && std::isfinite(rounded)) {
        add_evidence(pass_.evidence[row_], rounding_, rounding_.output, budgets_->of(terms_.element(at + i)), have,
                     want, rounded);
      }
      if (std::isfinite(want)) {
        const double error = std::abs(have - want);
        add(at + i, error, ratio_of(error, exactly_allowed(at + i, want)));
      }
    }
  }

  [[nodiscard]] double exactly_allowed(std::size_t at, double want) const {
    return fixed_ ? fixed_->allowed(want) : budgets_->of(terms_.element(at)).total();
  }

  void add(std::size_t at, double error, double ratio) {
    if (!pass_.judged.add(at, ratio)) return;
    if (summary_ == nullptr) {
      const auto row = static_cast<std::int64_t>(row_);
      const Place place = locator_.place(row / heads_, row % heads_, -1);
      summary_ = &pass_.summaries[{place.sequence, place.head}];
      summary_->sequence = place.sequence;
      summary_->head = place.head;
    }
    ++summary_->failing;
    summary_->max_abs = std::max(summary_->max_abs, error);
    summary_->worst_ratio = std::max(summary_->worst_ratio, ratio);
  }

  const Tensor& o_;
  std::span<const double> want_;
  std::int64_t heads_, dims_;
  const attention::Rounding& rounding_;
  const std::optional<Tolerance>& fixed_;
  const Locator& locator_;
  GoldenTerms terms_;
  NumberType type_;
  const VerdictLoops& loops_ = verdict_loops();
  Measuring measuring_;
  OutputPass pass_;
  std::size_t row_ = 0;
  HeadSummary* summary_ = nullptr;  // of row_, once one of its elements failed
  std::optional<attention::OutputBudgets> budgets_;
  std::array<double, kBlock> have_, allowed_, systematic_, variance_;
  EvidenceBlock weighed_;
};

}  // namespace

OutputPass pass_over_output(const Bundle& golden, const Tensor& o, const attention::Rounding& rounding,
                            const std::optional<Tolerance>& fixed, const Locator& locator) {
  return OutputJudge(golden, o, rounding, fixed, locator).run();
}

}  // namespace kvscope::golden
