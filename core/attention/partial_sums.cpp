#include "core/attention/partial_sums.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/attention/detail/reference_kernels.h"

namespace kvscope::attention {
namespace {

// Sum of the squares of the sums so far, with `lanes` interleaved sums.
double squares_in_lanes(std::span<const double> products, std::size_t lanes) {
  double sums[kDotLanes] = {}, squares = 0;
  for (std::size_t d = 0; d < products.size(); ++d) {
    double& sum = sums[d % lanes];
    sum += products[d];
    squares += sum * sum;
  }
  return squares;
}

RowSumTerms terms_of(const PartialRowSums& sums, std::size_t keys, double row_sum) {
  RowSumTerms terms;
  for (std::size_t type = 0; type < kClumpTypes; ++type) {
    terms.cut[type] = std::max(sums.cut[0][type], sums.cut[1][type]) / row_sum;
  }
  if (keys == 0 || !(row_sum > 0)) return terms;
  const double squares = std::max(sums.squares[0], sums.squares[1]);
  const double share = std::sqrt(squares / static_cast<double>(keys)) / row_sum;
  terms.so_far = share < 1 ? share : 1;
  return terms;
}

}  // namespace

RowSumTerms row_sum_terms(const ReferenceKernels& kernels, std::span<const double> weights, double sink,
                          double row_sum) {
  PartialRowSums sums;
  kernels.exact.partial(weights.data(), std::ssize(weights), sink, row_sum, &sums);
  return terms_of(sums, weights.size(), row_sum);
}
RowSumTerms row_sum_terms(const ReferenceKernels& kernels, std::span<const float> weights, double sink,
                          double row_sum) {
  PartialRowSums sums;
  kernels.fast.partial(weights.data(), std::ssize(weights), sink, row_sum, &sums);
  return terms_of(sums, weights.size(), row_sum);
}
RowSumTerms row_sum_terms(std::span<const double> weights, double sink, double row_sum) {
  return row_sum_terms(widest_kernels(), weights, sink, row_sum);
}
RowSumTerms row_sum_terms(std::span<const float> weights, double sink, double row_sum) {
  return row_sum_terms(widest_kernels(), weights, sink, row_sum);
}

double mean_square_of_dot(std::span<const double> products) {
  if (products.empty()) return 0;
  double backwards = 0, score = 0, own = 0;
  for (std::size_t d = products.size(); d-- > 0;) {
    score += products[d];
    backwards += score * score;
    own += products[d] * products[d];
  }
  double largest = backwards;
  for (std::size_t lanes = 1; lanes <= kDotLanes; lanes *= 2) {
    largest = std::max(largest, squares_in_lanes(products, lanes));
  }
  return std::max(largest / static_cast<double>(products.size()), own / 6 + score * score / 3);
}

}  // namespace kvscope::attention
