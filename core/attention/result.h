// The result of an attention computation. Error bounds (bounds.h) are computed from the tensors after `lse`.
#pragma once

#include <cstddef>
#include <xtensor/xtensor.hpp>

#include "core/attention/partial_sums.h"
#include "core/attention/weight_sums.h"

namespace kvscope::attention {

// Keys with equal weights, where there are many, count as one in a2 and p2, because their rounding errors are equal: a2
// is then the larger of sqrt(sum_t p_t^2 v_t^2) and sqrt(sum over distinct weights of (sum of their p_t v_t)^2).
// Their additions round alike too: repeats and running are then those of equal_weights.h.
struct Result {
  xt::xtensor<double, 3> o;        // [query, query_head, value_dim]
  xt::xtensor<double, 2> lse;      // [query, query_head] in the base and with the empty-row value of the options
  xt::xtensor<double, 3> a1;       // [query, query_head, value_dim] sum_t p_t |v_t|
  xt::xtensor<double, 3> a2;       // [query, query_head, value_dim] sqrt(sum_t p_t^2 v_t^2)
  xt::xtensor<double, 2> smax;     // [query, query_head] max over the visible keys of |score|; 0 when there is none
  xt::xtensor<double, 3> running;  // [query, query_head, value_dim] rms, over the ends of blocks of 64 keys, of the sum
                                   // so far divided by the whole row sum
  xt::xtensor<double, 2> keys;     // [query, query_head] number of visible keys
  xt::xtensor<double, 2> p2;       // [query, query_head] sqrt(sum_t p_t^2)
  xt::xtensor<double, 3> clump;  // [query, query_head, kClumpTypes] 0 when the rounding errors of P are independent, up
                                 // to 1 when all are equal (weight_terms.h)
  xt::xtensor<double, 2> repeats;  // [query, query_head] additions that round in one direction: keys with the
                                   // weight of the key before them, and weights that an f32 sum absorbs
  xt::xtensor<double, 3> faint;    // [query, query_head, kFaintTerms] weights below the normal range of narrow types
  xt::xtensor<double, 3> lost;     // [query, query_head, kLostTerms] errors of P below that range (weight_terms.h)
  // [query, query_head, kPartialTerms] how large partial sums are (partial_sums.h): of a score, and of the row sum
  // divided by the whole row sum
  xt::xtensor<double, 3> partial_sums;
  // [query, query_head, kClumpTypes] what matrix instructions may cut from a row sum of P in these types, relative to
  // it (partial_sums.h)
  xt::xtensor<double, 3> row_sum_cut;
  // [query, query_head] at least |v| of all elements of all visible keys, infinite if one is not finite; -1 where it
  // was not measured: rows whose faint keys have kFewFaint of the weight or more, or none, and rows without keys
  xt::xtensor<double, 2> largest_value;

  // The error of the result itself, when the fast path computed it (fast.h). Empty and 0: the reference.
  xt::xtensor<double, 2> score_error = {};  // [query, query_head]
  double sum_error = 0;
};

// The output alone, which takes less work; no candidate can be judged with it.
struct Output {
  xt::xtensor<double, 3> o;    // [query, query_head, value_dim]
  xt::xtensor<double, 2> lse;  // [query, query_head], as of Result
  // Largest errors of these numbers, of the fast path (fast.h); 0 where the reference computed them.
  xt::xtensor<double, 2> o_error;    // [query, query_head] of each element of o
  xt::xtensor<double, 2> lse_error;  // [query, query_head]
  bool by_fast_path = false;
};

}  // namespace kvscope::attention
