#include "core/attention/detail/equal_weights.h"

#include <algorithm>
#include <bit>

namespace kvscope::attention {
namespace {

template <class T>
std::vector<std::size_t> sorted_of(std::span<const T> weights) {
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    if (weights[t] > 0) order.push_back(t);
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return weights[a] < weights[b]; });
  return order;
}

}  // namespace

template <class T>
bool EqualWeights::many_of(std::span<const T> weights) {
  constexpr double kShare = 1.0 / 64;
  const std::size_t places = std::bit_ceil(2 * weights.size() + 2);
  const int shift = 64 - std::countr_zero(places);
  seen_.assign(places, 0);
  double equal = 0, equal_squares = 0, squares = 0;
  for (const T weight : weights) {
    const auto e = static_cast<double>(weight);
    if (!(e > 0)) continue;
    squares += e * e;
    const auto bits = std::bit_cast<std::uint64_t>(e);
    std::size_t place = bits * 0x9E3779B97F4A7C15u >> shift;
    while (seen_[place] != 0 && seen_[place] != bits) place = (place + 1) & (places - 1);
    if (seen_[place] == bits) {
      equal += 1;
      equal_squares += e * e;
    }
    seen_[place] = bits;
  }
  return equal > 0 && (equal >= kShare * static_cast<double>(weights.size()) || equal_squares >= kShare * squares);
}

bool EqualWeights::many(std::span<const double> weights) {
  return many_of(weights);
}
bool EqualWeights::many(std::span<const float> weights) {
  return many_of(weights);
}

std::vector<std::size_t> EqualWeights::sorted(std::span<const double> weights) {
  return sorted_of(weights);
}
std::vector<std::size_t> EqualWeights::sorted(std::span<const float> weights) {
  return sorted_of(weights);
}

}  // namespace kvscope::attention
