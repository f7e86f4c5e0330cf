#include "core/attention/weight_terms.h"

#include "core/attention/detail/reference_kernels.h"

namespace kvscope::attention {

WeightTerms weight_terms_of(std::span<const double> weights) {
  WeightSums sums;
  widest_kernels().exact.weigh(weights.data(), static_cast<std::int64_t>(weights.size()), &sums);
  return WeightTerms(sums);
}

}  // namespace kvscope::attention
