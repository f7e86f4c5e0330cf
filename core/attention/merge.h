// Two partial attentions over disjoint sets of keys become the attention over both: what split-K kernels, cascades and
// shared-prefix kernels do last. A state is an output row and the log-sum-exp of its scores.
//
//   m = max(lse_a, lse_b)   w_x = exp(lse_x - m)   o = (w_a * o_a + w_b * o_b) / (w_a + w_b)   lse = m + log(w_a + w_b)
//
// with exp and log in the states' base. A state without keys has lse -inf (or +inf: some engines write that, and it is
// read as the same), its output is not read, and the other state comes back unchanged to the bit. Two states merged,
// both empty: o = 0 and the lse that `empty` names. A NaN lse makes the whole row NaN: a broken part must not vanish in
// the sum. Example, base 2: o = 1, lse = 0 with o = 3, lse = 1 -> o = 7/3, lse = log2(3) = 1.58496.
#pragma once

#include <span>
#include <xtensor/xtensor.hpp>

#include "core/attention/problem.h"

namespace kvscope::attention {

struct PartialState {
  xt::xtensor<double, 3> o;    // [query, query_head, value_dim]
  xt::xtensor<double, 2> lse;  // [query, query_head]
};

// One row of each: `o` and `lse` take the merged row of (o, lse) and (other, other_lse).
void merge_row(std::span<double> o, double& lse, std::span<const double> other, double other_lse, LseBase base,
               EmptyRow empty = EmptyRow::minus_infinity);

// Row by row. GeometryError when the two shapes differ, both printed.
[[nodiscard]] PartialState merge(const PartialState& a, const PartialState& b, LseBase base,
                                 EmptyRow empty = EmptyRow::minus_infinity);

// All of them, in the order given; one alone comes back unchanged, empty or not. GeometryError for none.
[[nodiscard]] PartialState merge(std::span<const PartialState> states, LseBase base,
                                 EmptyRow empty = EmptyRow::minus_infinity);

}  // namespace kvscope::attention
