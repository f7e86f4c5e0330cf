// half_step() of bounds.h for W numbers side by side. For code that is compiled once per instruction set: base/lanes.h.
#pragma once

#include "core/attention/bounds.h"
#include "core/base/lanes.h"

namespace kvscope::attention {
namespace {

// Infinities and NaN have the step of the smallest number. Half a step of the smallest double would round to 0.
template <int W>
inline typename Lanes<W>::Vec half_step_at(const StepOfType& type, typename Lanes<W>::Vec x) {
  using L = Lanes<W>;
  const typename L::Vec none{}, power = L::power_below(x);
  const typename L::Vec finite = power == none + __builtin_inf() ? none : power;
  return L::larger(L::larger(finite, none + type.smallest) * type.unit, none + 0x1p-1074);
}

}  // namespace
}  // namespace kvscope::attention
