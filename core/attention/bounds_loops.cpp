// Compiled once per instruction set (CMakeLists.txt).
#include "core/attention/detail/output_formula.h"

namespace kvscope::attention::KVSCOPE_ISA {
namespace {

// W elements from `at` on. The sources are not separated, which takes a root and a division less than Budget.
template <int W, bool Rare, bool Cut>
inline void budgets_at(const OutputFactors& f, const ElementRow& elements, const BudgetRow& budgets, std::int64_t at) {
  using L = Lanes<W>;
  const auto o = L::load(elements.o + at), a1 = L::load(elements.a1 + at), a2 = L::load(elements.a2 + at),
             running = L::load(elements.running + at);
  const OutputTerms<W> terms = output_terms<W, Rare, Cut>(f, o, a1, a2, running);
  const auto together = L::length(terms.score, terms.largest_sum, terms.sum_of_weights);
  auto systematic = (f.scores + f.cut_scores) * a1 + f.ex2 * terms.spread +
                    (f.ex2 + f.clump + f.repeated + f.cut_scores) * terms.size + terms.lost + terms.merge;
  if constexpr (Rare || Cut) systematic += terms.cut;
  if constexpr (Rare) systematic += terms.inputs + terms.golden;
  const auto before_output = systematic + independent_part<W>(f, terms, together);
  L::store(budgets.total + at, before_output + half_step_at<W>(f.output, terms.size + before_output));
  L::store(budgets.systematic + at, systematic);
  L::store(budgets.variance + at, variance_of<W>(f, terms));
}

template <bool Rare, bool Cut>
inline void budgets_of(const OutputFactors& factors, const ElementRow& elements, const BudgetRow& budgets) {
  constexpr int kWidth = kWidestLanes;
  const OutputFactors f = factors;  // a copy: the stores cannot change it
  std::int64_t i = 0;
  for (; i + kWidth <= elements.count; i += kWidth) budgets_at<kWidth, Rare, Cut>(f, elements, budgets, i);
  for (; i < elements.count; ++i) budgets_at<1, Rare, Cut>(f, elements, budgets, i);
}

}  // namespace

void budgets_of_row(const OutputFactors& factors, const ElementRow& elements, const BudgetRow& budgets) {
  if (has_rare_sources(factors)) return budgets_of<true, true>(factors, elements, budgets);
  has_cut(factors) ? budgets_of<false, true>(factors, elements, budgets)
                   : budgets_of<false, false>(factors, elements, budgets);
}

}  // namespace kvscope::attention::KVSCOPE_ISA
