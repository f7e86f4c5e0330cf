#include "core/attention/rising_clump.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "core/attention/detail/reference_kernels.h"

namespace kvscope::attention {
namespace {

using Clump = std::array<double, kClumpTypes>;
using Phases = double[kClumpTypes][kPhaseMoves];

void raise(const ReferenceKernels& kernels, std::span<const double> tile, double maximum, Phases& phases) {
  kernels.exact.raise(tile.data(), std::ssize(tile), maximum, phases);
}
void raise(const ReferenceKernels& kernels, std::span<const float> tile, double maximum, Phases& phases) {
  kernels.fast.raise(tile.data(), std::ssize(tile), maximum, phases);
}

// The weights of a row in tiles of kSmallestTile keys, of which larger tiles are made.
template <class T>
class SmallTiles {
 public:
  SmallTiles(const ReferenceKernels& kernels, std::span<const T> weights)
      : kernels_(kernels),
        weights_(weights),
        maxima_((weights.size() + kSmallestTile - 1) / kSmallestTile),
        raised_(std::make_unique_for_overwrite<Phases[]>(maxima_.size())) {}

  [[nodiscard]] std::vector<T> largest() const {
    std::vector<T> result(maxima_.size());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = largest_of(keys(i));
    return result;
  }

  // What tile `i` adds to the phases of the row if it is taken relative to `maximum`. Kept for the next call: half of a
  // tile that raised the maximum has the same maximum as the whole.
  const Phases& raised(std::size_t i, T maximum) {
    if (maxima_[i] != maximum) raise(kernels_, keys(i), static_cast<double>(maximum), raised_[i]);
    maxima_[i] = maximum;
    return raised_[i];
  }

 private:
  [[nodiscard]] std::span<const T> keys(std::size_t i) const {
    return weights_.subspan(i * kSmallestTile, std::min(kSmallestTile, weights_.size() - i * kSmallestTile));
  }

  static T largest_of(std::span<const T> keys) {
    T most[4] = {};  // one maximum would wait for each comparison
    std::size_t i = 0;
    for (; i + 4 <= keys.size(); i += 4) {
      for (std::size_t n = 0; n < 4; ++n) most[n] = keys[i + n] > most[n] ? keys[i + n] : most[n];
    }
    for (; i < keys.size(); ++i) most[0] = std::max(most[0], keys[i]);
    return std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
  }

  const ReferenceKernels& kernels_;
  std::span<const T> weights_;
  std::vector<T> maxima_;  // of raised_; 0: not computed
  std::unique_ptr<Phases[]> raised_;
};

// The largest of each two tiles.
template <class T>
void join_pairs(std::vector<T>& largest) {
  for (std::size_t i = 0; i < largest.size(); i += 2) {
    largest[i / 2] = i + 1 < largest.size() ? std::max(largest[i], largest[i + 1]) : largest[i];
  }
  largest.resize((largest.size() + 1) / 2);
}

void add(const Phases& from, Phases& to) {
  for (std::size_t type = 0; type < kClumpTypes; ++type) {
    for (std::size_t move = 0; move < kPhaseMoves; ++move) to[type][move] += from[type][move];
  }
}

template <class T>
Clump measured(const ReferenceKernels& kernels, std::span<const T> weights, const WeightSums& sums, double row_sum) {
  Clump clump{};
  SmallTiles<T> small(kernels, weights);
  std::vector<T> largest = small.largest();  // of each tile of `parts` small ones
  const std::size_t small_tiles = largest.size();
  const T whole = largest.empty() ? T{0} : *std::max_element(largest.begin(), largest.end());
  if (!(whole > 0)) return clump;
  for (std::size_t parts = 1; parts <= kLargestTile / kSmallestTile; parts *= 2, join_pairs(largest)) {
    const std::size_t tiles = largest.size();
    for (const bool backwards : {false, true}) {
      Phases phases{};  // what the tiles that raised the maximum add to the row's
      bool any = false;
      T maximum = 0;
      for (std::size_t n = 0; n < tiles; ++n) {
        const std::size_t at = backwards ? tiles - 1 - n : n;
        const T of_tile = largest[at];
        if (of_tile == whole) break;  // the tiles that follow are rounded relative to the row's maximum
        if (of_tile <= maximum) continue;
        maximum = of_tile;
        any = true;
        const std::size_t last = std::min((at + 1) * parts, small_tiles);
        for (std::size_t i = at * parts; i < last; ++i) add(small.raised(i, maximum), phases);
      }
      if (!any) continue;
      add(sums.phases, phases);
      for (std::size_t type = 0; type < kClumpTypes; ++type) {
        for (const double x : phases[type]) clump[type] = std::max(clump[type], std::fabs(x) / row_sum * 0x1p-31);
      }
    }
  }
  // The standard deviation of the mean of independent phases in -1 .. 1 is p2 / sqrt(3).
  const double independent = kIndependentPhases * std::sqrt(sums.squares / 3) / row_sum;
  for (double& x : clump) x = x > independent ? x : 0;
  return clump;
}

}  // namespace

Clump rising_clump(const ReferenceKernels& kernels, std::span<const double> weights, const WeightSums& sums,
                   double row_sum) {
  return measured(kernels, weights, sums, row_sum);
}
Clump rising_clump(const ReferenceKernels& kernels, std::span<const float> weights, const WeightSums& sums,
                   double row_sum) {
  return measured(kernels, weights, sums, row_sum);
}
Clump rising_clump(std::span<const double> weights, const WeightSums& sums, double row_sum) {
  return measured(widest_kernels(), weights, sums, row_sum);
}
Clump rising_clump(std::span<const float> weights, const WeightSums& sums, double row_sum) {
  return measured(widest_kernels(), weights, sums, row_sum);
}

}  // namespace kvscope::attention
