// The result of an attention computation. Error bounds are computed from `a1`, `a2` and `smax` (bounds.h).
#pragma once

#include <xtensor/xtensor.hpp>

namespace kvscope::attention {

struct Result {
  xt::xtensor<double, 3> o;     // [query, query_head, value_dim]
  xt::xtensor<double, 2> lse;   // [query, query_head] in the base and with the empty-row value of the options
  xt::xtensor<double, 3> a1;    // [query, query_head, value_dim] sum_t p_t |v_t|
  xt::xtensor<double, 3> a2;    // [query, query_head, value_dim] sqrt(sum_t p_t^2 v_t^2)
  xt::xtensor<double, 2> smax;  // [query, query_head] max over the visible keys of |score|; 0 when there is none
};

}  // namespace kvscope::attention
