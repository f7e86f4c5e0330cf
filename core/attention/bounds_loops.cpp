// Compiled once per instruction set (CMakeLists.txt).
#include "core/attention/detail/output_formula.h"

namespace kvscope::attention::KVSCOPE_ISA {
namespace {

// W elements from `at` on.
template <int W, bool Rare>
inline void budgets_at(const OutputFactors& f, const ElementRow& elements, const BudgetRow& budgets, std::int64_t at) {
  using L = Lanes<W>;
  const auto o = L::load(elements.o + at), a1 = L::load(elements.a1 + at), a2 = L::load(elements.a2 + at),
             running = L::load(elements.running + at);
  const auto length = L::length(largest_sum<W>(a1, a2, running), f.row_sum * L::magnitude(o));
  const OutputParts<W> parts = output_parts<W, Rare>(f, o, a1, a2, running, length);
  L::store(budgets.total + at, parts.before_output + parts.output);
  L::store(budgets.systematic + at, parts.before_output - parts.independent);
  L::store(budgets.variance + at, parts.variance);
}

template <bool Rare>
inline void budgets_of(const OutputFactors& factors, const ElementRow& elements, const BudgetRow& budgets) {
  constexpr int kWidth = kWidestLanes;
  const OutputFactors f = factors;  // a copy: the stores cannot change it
  std::int64_t i = 0;
  for (; i + kWidth <= elements.count; i += kWidth) budgets_at<kWidth, Rare>(f, elements, budgets, i);
  for (; i < elements.count; ++i) budgets_at<1, Rare>(f, elements, budgets, i);
}

}  // namespace

void budgets_of_row(const OutputFactors& factors, const ElementRow& elements, const BudgetRow& budgets) {
  has_rare_sources(factors) ? budgets_of<true>(factors, elements, budgets)
                            : budgets_of<false>(factors, elements, budgets);
}

}  // namespace kvscope::attention::KVSCOPE_ISA
