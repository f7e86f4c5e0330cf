#include "core/golden/diagnosis/candidate_row.h"

#include <algorithm>
#include <cmath>

namespace kvscope::golden {
namespace {

// What kernels store for a row without keys: o of zeros or of NaN (0 / 0), and lse without a finite value. -1e9 and
// less are initial values of a running maximum.
bool is_without_keys(const CandidateRow& candidate) {
  const bool zeros = std::ranges::all_of(candidate.o, [](double x) { return x == 0; });
  const bool nan = std::ranges::all_of(candidate.o, [](double x) { return std::isnan(x); });
  return (zeros || nan) && (!candidate.has_lse || !std::isfinite(candidate.lse) || candidate.lse <= -1e9);
}

}  // namespace

double misfit(const CandidateRow& candidate, const RowValue& predicted) {
  if (predicted.outside) return kNoFit;
  if (predicted.lost_keys && is_without_keys(candidate)) return 0;
  const auto ratio = [](double have, double want, double allowed) {
    if (std::isnan(have) || std::isnan(want)) return std::isnan(have) && std::isnan(want) ? 0.0 : kNoFit;
    if (std::isinf(have) || std::isinf(want)) return have == want ? 0.0 : kNoFit;
    if (!std::isfinite(allowed)) return have == want ? 0.0 : kNoFit;  // a row without keys: its bound excludes nothing
    return std::fabs(have - want) / allowed;
  };
  double worst = 0;
  const attention::RowTerms terms = predicted.terms;
  const attention::OutputBudgets budgets(candidate.rounding, terms);
  for (std::size_t d = 0; d < std::min(candidate.o.size(), predicted.o.size()); ++d) {
    worst = std::max(worst, ratio(candidate.o[d], predicted.o[d], budgets.of(predicted.element(d)).total()));
  }
  if (candidate.has_lse) {
    const attention::Budget budget =
        attention::lse_budget(candidate.lse_rounding, terms).toward(candidate.lse - predicted.terms.lse);
    worst = std::max(worst, ratio(candidate.lse, predicted.terms.lse, budget.total()));
  }
  if (predicted.o.empty() && !(worst > 1)) return kNoFit;
  return std::isnan(worst) ? kNoFit : worst;
}

}  // namespace kvscope::golden
