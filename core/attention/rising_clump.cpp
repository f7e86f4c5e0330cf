#include "core/attention/rising_clump.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <iterator>
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

void add(const Phases& from, Phases& to) {
  for (std::size_t type = 0; type < kClumpTypes; ++type) {
    for (std::size_t move = 0; move < kPhaseMoves; ++move) to[type][move] += from[type][move];
  }
}

// The tiles of a row. Those of level 0 have kSmallestTile keys; each of the others is two of the level below.
template <class T>
class Tiles {
 public:
  static constexpr std::size_t kLevels = std::bit_width(kLargestTile / kSmallestTile);

  Tiles(const ReferenceKernels& kernels, std::span<const T> weights) : kernels_(kernels), weights_(weights) {
    for (std::size_t level = 0, size = kSmallestTile; level < kLevels; ++level, size *= 2) {
      std::vector<Tile>& tiles = tiles_[level];
      tiles.resize((weights.size() + size - 1) / size);
      for (std::size_t i = 0; i < tiles.size(); ++i)
        tiles[i].largest = level == 0 ? largest_of(keys(0, i)) : largest_of(level, i);
    }
  }

  [[nodiscard]] std::size_t size(std::size_t level) const { return tiles_[level].size(); }
  [[nodiscard]] T largest(std::size_t level, std::size_t i) const { return tiles_[level][i].largest; }

  // What tile `i` adds to the phases of the row if it is taken relative to its own maximum. Its half with this maximum
  // adds what it does as a tile of the level below.
  const Phases& raised(std::size_t level, std::size_t i) {
    Tile& tile = tiles_[level][i];
    if (tile.measured) return tile.phases;
    tile.measured = true;
    const auto maximum = static_cast<double>(tile.largest);
    if (level == 0) {
      raise(kernels_, keys(0, i), maximum, tile.phases);
      return tile.phases;
    }
    const std::size_t first = 2 * i, second = 2 * i + 1;
    const bool of_first = largest(level - 1, first) == tile.largest;
    const std::span<const T> others = keys(level - 1, of_first ? second : first);
    if (others.empty()) {
      for (auto& of_type : tile.phases) std::ranges::fill(of_type, 0.0);
    } else {
      raise(kernels_, others, maximum, tile.phases);
    }
    add(raised(level - 1, of_first ? first : second), tile.phases);
    return tile.phases;
  }

 private:
  struct Tile {
    T largest;
    bool measured = false;
    Phases phases;  // raised(), once it is measured
    Tile() {}       // leaves the phases as they are: most tiles do not raise the maximum
  };

  // Empty for a tile behind the last one.
  [[nodiscard]] std::span<const T> keys(std::size_t level, std::size_t i) const {
    const std::size_t size = kSmallestTile << level, first = std::min(i * size, weights_.size());
    return weights_.subspan(first, std::min(size, weights_.size() - first));
  }

  [[nodiscard]] T largest_of(std::size_t level, std::size_t i) const {
    const std::vector<Tile>& halves = tiles_[level - 1];
    return 2 * i + 1 < halves.size() ? std::max(halves[2 * i].largest, halves[2 * i + 1].largest)
                                     : halves[2 * i].largest;
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
  std::vector<Tile> tiles_[kLevels];
};

template <class T>
Clump measured(const ReferenceKernels& kernels, std::span<const T> weights, const WeightSums& sums, double row_sum) {
  Clump clump{};
  Tiles<T> tiles(kernels, weights);
  T whole = 0;
  for (std::size_t i = 0; i < tiles.size(0); ++i) whole = std::max(whole, tiles.largest(0, i));
  if (!(whole > 0)) return clump;
  for (std::size_t level = 0; level < Tiles<T>::kLevels; ++level) {
    const std::size_t count = tiles.size(level);
    for (const bool backwards : {false, true}) {
      Phases phases{};  // what the tiles that raised the maximum add to the row's
      bool any = false;
      T maximum = 0;
      for (std::size_t n = 0; n < count; ++n) {
        const std::size_t at = backwards ? count - 1 - n : n;
        const T of_tile = tiles.largest(level, at);
        if (of_tile == whole) break;  // the tiles that follow are rounded relative to the row's maximum
        if (of_tile <= maximum) continue;
        maximum = of_tile;
        any = true;
        add(tiles.raised(level, at), phases);
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
