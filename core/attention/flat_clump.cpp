#include "core/attention/flat_clump.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvscope::attention {
namespace {

constexpr int kMoreBits = 3;

// The largest weight of four neighboring numbers of a type with `kept` bits, of the weights from `low` to `high`.
template <class T>
double largest_quarter(std::span<const T> weights, int kept, double low, double high) {
  const int shift = 52 - kept - kMoreBits;
  const auto number = [shift](double e) { return std::bit_cast<std::uint64_t>(e) >> shift; };
  const std::uint64_t first = number(low), last = number(high);
  std::vector<double> weight_of(last - first + 1);
  for (const T weight : weights) {
    const std::uint64_t at = number(static_cast<double>(weight)) - first;  // below `low`: larger than any
    if (at < weight_of.size()) weight_of[at] += static_cast<double>(weight);
  }
  double largest = 0;
  for (std::size_t i = 0; i < weight_of.size(); ++i) {
    double four = 0;
    for (std::size_t j = i; j < std::min(i + 4, weight_of.size()); ++j) four += weight_of[j];
    largest = std::max(largest, four);
  }
  return largest;
}

template <class T>
std::array<double, kClumpTypes> measured(std::span<const T> weights, const WeightSums& sums, double row_sum) {
  std::array<double, kClumpTypes> clump{};
  const auto keys = static_cast<double>(weights.size());
  // False for sums that are not numbers, too.
  if (!(sums.row_sum > 0 && keys * sums.squares <= kFlatVariation * sums.row_sum * sums.row_sum)) return clump;
  const double mean = sums.row_sum / keys;
  for (std::size_t type = 0; type < kClumpTypes; ++type) {
    const double around = std::min(0.5, std::ldexp(kFlatSteps, -kClumpKeptBits[type]));
    clump[type] =
        largest_quarter(weights, kClumpKeptBits[type], mean * (1 - around), mean * (1 + around)) / row_sum / 2;
  }
  return clump;
}

}  // namespace

std::array<double, kClumpTypes> flat_clump(std::span<const double> weights, const WeightSums& sums, double row_sum) {
  return measured(weights, sums, row_sum);
}
std::array<double, kClumpTypes> flat_clump(std::span<const float> weights, const WeightSums& sums, double row_sum) {
  return measured(weights, sums, row_sum);
}

}  // namespace kvscope::attention
