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

// W elements side by side; W = 1 is one element.
template <int W>
struct OutputParts {
  typename Lanes<W>::Vec inputs, scores, ex2, p, sum, cut, merge, golden, output, common, independent, variance,
      before_output;
};

// False: the sources inputs, cut and golden are 0, as for most kernels and goldens.
inline bool has_rare_sources(const OutputFactors& f) {
  return f.inputs != 0 || f.cut != 0 || f.cut_scores != 0 || f.golden_score != 0 || f.golden_sum != 0;
}

// `running` exceeds a1 only if equal additions round alike (equal_weights.h).
template <int W, class V = typename Lanes<W>::Vec>
inline V largest_sum(V a1, V a2, V running) {
  using L = Lanes<W>;
  return L::larger(running, L::smaller(a1, running + a2));
}

// `length` is sqrt(largest^2 + (f.row_sum o)^2) of the largest partial sum, largest_sum(). Without Rare, the factors
// of inputs, cut and golden are 0; adding these zeros would not change a sum.
template <int W, bool Rare, class V = typename Lanes<W>::Vec>
inline OutputParts<W> output_parts(const OutputFactors& f, V o, V a1, V a2, V running, V length) {
  using L = Lanes<W>;
  const V size = L::magnitude(o);
  const V spread = L::smaller(a1, f.spread * a2);
  const V score = f.score * (a2 + size * f.p2);
  const V sum = f.sum * length;
  // What P loses below its normal range: all in one direction, or a systematic part and independent errors.
  const V lost_one_way = f.lost * a1, systematic = f.lost_systematic * a1, deviation = f.lost_deviation * a2;
  const auto separate = systematic + f.k * deviation < lost_one_way;
  const V lost = separate ? systematic : lost_one_way;
  const V lost_deviation = separate ? deviation : V{};
  const V largest_partial = L::smaller(a1, size + 8 * running + 4 * a2);
  OutputParts<W> parts;
  parts.inputs = parts.cut = parts.golden = V{};
  if constexpr (Rare) {
    parts.inputs = f.inputs * a1;
    parts.cut = f.cut * (f.in_tiles ? a1 : largest_partial) + f.cut_scores * (a1 + size);
    parts.golden = f.golden_score * (a1 + size) + f.golden_sum * a1;
  }
  // The errors of scores and of sums are independent: together they are the root of their squares. Each source has the
  // part that its variance has.
  const V together = L::length(score, sum), share = score / L::larger(together, V{} + kTiny);
  parts.scores = f.scores * a1 + f.k * share * score;
  parts.ex2 = f.ex2 * (size + spread);
  parts.p = f.clump * size + f.p * spread + lost + f.k * lost_deviation;
  parts.sum = f.k * (together - share * score) + f.repeated * size;
  parts.merge = f.merge * largest_partial + f.partial_floor;
  // In the order of Budget::before_output.
  if constexpr (Rare) {
    parts.before_output =
        parts.inputs + parts.scores + parts.ex2 + parts.p + parts.sum + parts.cut + parts.merge + parts.golden;
  } else {
    parts.before_output = parts.scores + parts.ex2 + parts.p + parts.sum + parts.merge;
  }
  parts.output = half_step_at<W>(f.output, size + parts.before_output);
  parts.common = (f.clump + f.ex2) * size;
  parts.independent = f.k * (together + lost_deviation) + f.p * spread;
  const V p_deviation = f.p_deviation * spread;
  parts.variance = score * score + sum * sum + p_deviation * p_deviation + lost_deviation * lost_deviation;
  return parts;
}

}  // namespace
}  // namespace kvscope::attention
