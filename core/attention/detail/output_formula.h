// The budget of one element of o from the factors of its row: the only place of the formula in bounds.h. Compiled for
// each instruction set, and for OutputBudgets::of; base/lanes.h has the rules for such code.
#pragma once

#include "core/attention/bounds.h"
#include "core/attention/step_lanes.h"
#include "core/base/lanes.h"

namespace kvscope::attention {

using OutputRowLoop = void(const OutputFactors& factors, const ElementRow& elements, const BudgetRow& budgets);
namespace baseline {
OutputRowLoop budgets_of_row;
}
#if defined(__x86_64__)
namespace avx2 {
OutputRowLoop budgets_of_row;
}
namespace avx512 {
OutputRowLoop budgets_of_row;
}
#endif
namespace {

inline constexpr double kTiny = 0x1p-1000;  // instead of a divisor of 0

// False: the sources inputs and golden, and what accumulator_bits truncates, are 0, and what P loses below its normal
// range has one part, as for most kernels and goldens.
inline bool has_rare_sources(const OutputFactors& f) {
  return f.inputs != 0 || f.cut != 0 || f.golden_score != 0 || f.golden_sum != 0 || f.lost_deviation != 0 ||
         f.lost_systematic != f.lost;
}

// Whether matrix instructions cut sums over the keys; without it, f.cut_scores is 0 too, unless accumulator_bits cut.
inline bool has_cut(const OutputFactors& f) {
  return f.cut_sum_so_far != 0;
}

// The terms of which the budget is made, of W elements side by side; W = 1 is one element.
template <int W>
struct OutputTerms {
  typename Lanes<W>::Vec size, spread, score, largest_sum, sum_of_weights, lost, lost_deviation, inputs, cut, golden,
      merge;
};

// `running` exceeds a1 only if equal additions round alike (equal_weights.h). Without Rare or Cut, the factors of these
// sources are 0, and adding these zeros would not change a sum. `cut` is that of the sum over the keys: what is cut
// from scores is proportional to a1 and to |o|, as other sources are.
template <int W, bool Rare, bool Cut, class V = typename Lanes<W>::Vec>
inline OutputTerms<W> output_terms(const OutputFactors& f, V o, V a1, V a2, V running) {
  using L = Lanes<W>;
  OutputTerms<W> terms;
  const V size = L::magnitude(o);
  terms.size = size;
  terms.spread = L::smaller(a1, f.spread * a2);
  terms.score = f.score * (a2 + size * f.p2);
  // The deviation of the sums over the keys is sqrt(largest_sum^2 + sum_of_weights^2).
  terms.largest_sum = f.sum * L::larger(running, L::smaller(a1, running + a2));
  // `running` is the sum so far from the first key on. From the last key on, it has the part of |o| that the row sum
  // has.
  terms.cut = V{};
  if constexpr (Cut) {
    terms.cut = f.cut_sum_so_far * L::smaller(a1, L::larger(running, f.row_sum_so_far * size) + a2);
  }
  terms.sum_of_weights = f.sum * f.row_sum * size;
  const V largest_partial = L::smaller(a1, size + 8 * running + 4 * a2);
  terms.merge = f.merge * largest_partial + f.partial_floor;
  terms.lost = L::smaller(f.lost * a1, V{} + f.most_lost);
  terms.lost_deviation = terms.inputs = terms.golden = V{};
  if constexpr (Rare) {
    // What P loses below its normal range: all in one direction, or a systematic part and independent errors.
    const V systematic = f.lost_systematic * a1, deviation = f.lost_deviation * a2;
    const auto separate = systematic + f.k * deviation < terms.lost;
    terms.lost = separate ? systematic : terms.lost;
    terms.lost_deviation = separate ? deviation : V{};
    terms.inputs = f.inputs * a1;
    terms.cut += f.cut * (f.in_tiles ? a1 : largest_partial);
    terms.golden = f.golden_score * (a1 + size) + f.golden_sum * a1;
  }
  return terms;
}

// What allows for independent errors. `together`: the deviation of scores and sums, the root of their squares.
template <int W, class V = typename Lanes<W>::Vec>
inline V independent_part(const OutputFactors& f, const OutputTerms<W>& terms, V together) {
  return f.k * (together + terms.lost_deviation) + f.p * terms.spread;
}

template <int W, class V = typename Lanes<W>::Vec>
inline V variance_of(const OutputFactors& f, const OutputTerms<W>& terms) {
  const V p_deviation = f.p_deviation * terms.spread;
  return terms.score * terms.score + terms.largest_sum * terms.largest_sum +
         terms.sum_of_weights * terms.sum_of_weights + p_deviation * p_deviation +
         terms.lost_deviation * terms.lost_deviation;
}

}  // namespace
}  // namespace kvscope::attention
