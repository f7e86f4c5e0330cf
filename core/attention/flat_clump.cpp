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
// From the fewest bits to the most: a quarter step of one type is inside that of the type before it.
constexpr std::size_t kByBits[kClumpTypes] = {2, 0, 1};  // e4m3, bf16, f16

// The largest weight of four neighboring significands of a type with `kept` bits; the highest and the lowest are
// neighbors.
template <class T>
double largest_quarter(std::span<const T> weights, int kept) {
  const int shift = 52 - kept - kMoreBits;
  const std::uint64_t count = std::uint64_t{1} << (kept + kMoreBits);
  const std::uint64_t last = count - 1;  // all bits set
  std::vector<double> weight_of(count);
  for (const T weight : weights) {
    const auto e = static_cast<double>(weight);
    weight_of[std::bit_cast<std::uint64_t>(e) >> shift & last] += e;
  }
  double largest = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double four =
        weight_of[i] + weight_of[(i + 1) & last] + weight_of[(i + 2) & last] + weight_of[(i + 3) & last];
    largest = std::max(largest, four);
  }
  return largest;
}

template <class T>
std::array<double, kClumpTypes> measured(std::span<const T> weights, const WeightSums& sums, double row_sum) {
  std::array<double, kClumpTypes> clump{};
  const double least = kFlatShare * std::sqrt(sums.squares);
  if (!(least > 0 && least < sums.row_sum)) return clump;  // also of sums that are not numbers
  for (const std::size_t type : kByBits) {
    const double share = largest_quarter(weights, kClumpKeptBits[type]);
    if (!(share > least)) break;
    clump[type] = share / row_sum / 2;
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
