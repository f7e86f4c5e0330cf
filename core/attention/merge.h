// Merges two partial attentions over disjoint sets of keys into the attention over both: the last step of split-K
// kernels, cascades and shared-prefix kernels. A state is an output row and the log-sum-exp of its scores.
//
//   m = max(lse_a, lse_b)   w_x = exp(lse_x - m)   o = (w_a * o_a + w_b * o_b) / (w_a + w_b)   lse = m + log(w_a + w_b)
//
// with exp and log in the states' base. A state without keys has lse -inf (or +inf, which some engines write and which
// means the same). Its output is ignored, and the other state is returned unchanged to the bit. Merging two empty
// states gives o = 0 and the lse selected by `empty`. A NaN lse makes the whole row NaN, so that an error in one part
// stays visible. Example, base 2: o = 1, lse = 0 with o = 3, lse = 1 -> o = 7/3, lse = log2(3) = 1.58496.
#pragma once

#include <span>
#include <xtensor/xtensor.hpp>

#include "core/attention/problem.h"

namespace kvscope::attention {

struct PartialState {
  xt::xtensor<double, 3> o;    // [query, query_head, value_dim]
  xt::xtensor<double, 2> lse;  // [query, query_head]
};

// For one row of each: replaces (o, lse) by its merge with (other, other_lse).
void merge_row(std::span<double> o, double& lse, std::span<const double> other, double other_lse, LseBase base,
               EmptyRow empty = EmptyRow::minus_infinity);

// Merges row by row. GeometryError, with both shapes, when they differ.
[[nodiscard]] PartialState merge(const PartialState& a, const PartialState& b, LseBase base,
                                 EmptyRow empty = EmptyRow::minus_infinity);

// Merges all of them, in the order given; a single state is returned unchanged, empty or not. GeometryError for none.
[[nodiscard]] PartialState merge(std::span<const PartialState> states, LseBase base,
                                 EmptyRow empty = EmptyRow::minus_infinity);

// The largest errors of a state's numbers, as fast_output states them (fast.h).
struct PartialErrors {
  xt::xtensor<double, 2> o;    // [query, query_head] of each element of o
  xt::xtensor<double, 2> lse;  // [query, query_head], in the base of lse
};

// The errors of `merged`, which merge() made of `states`; `errors` are theirs, in the same order. With normalized
// weights W, and E the largest error of lse of the row's states with keys, in base e:
//   lse error = E in the base of lse
//   o error   = exp(2 E) * sum W * o error + (exp(2 E) - 1) * sum W * max over dims |o of the state - o|
// because errors of lse change each W by a factor of at most exp(2 E). Rows without keys have none.
// Example, natural: o = 1 and 3 with equal lse, errors 0.01 of each o and 0.001 of each lse: 0.01202, 0.001.
// GeometryError when the shapes or counts differ.
[[nodiscard]] PartialErrors merge_errors(std::span<const PartialState> states, std::span<const PartialErrors> errors,
                                         const PartialState& merged, LseBase base);

}  // namespace kvscope::attention
