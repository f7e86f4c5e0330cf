#include "core/attention/partial_sums.h"

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

}  // namespace

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
