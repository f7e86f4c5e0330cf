#include "core/attention/rising_clump.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/attention/weight_terms.h"

namespace kvscope::attention {
namespace {

using Clump = std::array<double, kClumpTypes>;

// The largest weight of each kSmallestTile keys.
template <class T>
std::vector<T> largest_of_tiles(std::span<const T> weights) {
  std::vector<T> largest;
  largest.reserve(weights.size() / kSmallestTile + 1);
  for (std::size_t first = 0; first < weights.size(); first += kSmallestTile) {
    const auto tile = weights.subspan(first, std::min(kSmallestTile, weights.size() - first));
    T most = 0;
    for (const T e : tile) most = e > most ? e : most;
    largest.push_back(most);
  }
  return largest;
}

// The row's sums of weight times phase, with the tiles that raised the maximum taken relative to it.
class RaisedTiles {
 public:
  explicit RaisedTiles(const WeightSums& sums) {
    for (std::size_t type = 0; type < kClumpTypes; ++type) std::ranges::copy(sums.phases[type], phases_[type]);
  }

  template <class T>
  void add(std::span<const T> tile, T maximum) {
    for (const T weight : tile) {
      const auto e = static_cast<double>(weight);
      const auto of_row = std::bit_cast<std::uint64_t>(e);
      const auto of_tile = std::bit_cast<std::uint64_t>(e / static_cast<double>(maximum));
      for (std::size_t type = 0; type < kClumpTypes; ++type) {
        for (std::size_t move = 0; move < kPhaseMoves; ++move) {
          phases_[type][move] += e * (static_cast<double>(rounding_phase(of_tile, type, move)) -
                                      static_cast<double>(rounding_phase(of_row, type, move)));
        }
      }
    }
  }

  void enlarge(Clump& clump, double row_sum) const {
    for (std::size_t type = 0; type < kClumpTypes; ++type) {
      for (const double x : phases_[type]) clump[type] = std::max(clump[type], std::fabs(x) / row_sum * 0x1p-31);
    }
  }

 private:
  double phases_[kClumpTypes][kPhaseMoves];
};

template <class T>
Clump measured(std::span<const T> weights, const WeightSums& sums, double row_sum) {
  Clump clump{};
  const std::vector<T> largest = largest_of_tiles(weights);
  const T whole = largest.empty() ? T{0} : *std::max_element(largest.begin(), largest.end());
  if (!(whole > 0)) return clump;
  for (std::size_t tile = kSmallestTile; tile <= kLargestTile; tile *= 2) {
    const std::size_t parts = tile / kSmallestTile, tiles = (largest.size() + parts - 1) / parts;
    for (const bool backwards : {false, true}) {
      RaisedTiles raised(sums);
      bool any = false;
      T maximum = 0;
      for (std::size_t n = 0; n < tiles; ++n) {
        const std::size_t at = backwards ? tiles - 1 - n : n;
        const auto first = largest.begin() + static_cast<std::ptrdiff_t>(at * parts);
        const auto last = largest.begin() + static_cast<std::ptrdiff_t>(std::min((at + 1) * parts, largest.size()));
        const T of_tile = *std::max_element(first, last);
        if (of_tile == whole) break;  // the tiles that follow are rounded relative to the row's maximum
        if (of_tile <= maximum) continue;
        maximum = of_tile;
        any = true;
        raised.add(weights.subspan(at * tile, std::min(tile, weights.size() - at * tile)), maximum);
      }
      if (any) raised.enlarge(clump, row_sum);
    }
  }
  // The standard deviation of the mean of independent phases in -1 .. 1 is p2 / sqrt(3).
  const double independent = kIndependentPhases * std::sqrt(sums.squares / 3) / row_sum;
  for (double& x : clump) x = x > independent ? x : 0;
  return clump;
}

}  // namespace

Clump rising_clump(std::span<const double> weights, const WeightSums& sums, double row_sum) {
  return measured(weights, sums, row_sum);
}

Clump rising_clump(std::span<const float> weights, const WeightSums& sums, double row_sum) {
  return measured(weights, sums, row_sum);
}

}  // namespace kvscope::attention
