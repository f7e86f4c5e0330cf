// What a rising maximum adds to the clump (weight_terms.h).
//
// A tiled kernel rounds exp(score - m), with m the largest score of the tile and of the tiles before it. If the scores
// rise along the row, each tile raises m and is rounded relative to its own maximum. If they rise slowly, all
// probabilities of the tile are just below 1 and round up together, in every tile: the errors of the row do not cancel,
// although its weights, relative to the row's maximum, have all phases.
//
// Measured is the mean phase with the keys of each tile that raises m, below the row's maximum, taken relative to m:
// for tiles of 16, 32, ... 256 keys, from the first tile on and from the last one on. The other keys share their
// maximum with many, and keep the phase that the clump has. A mean below kIndependentPhases standard deviations of
// independent phases is none: the independent part of the bound allows seven.
//
// Example: 16,384 sorted scores of a normal distribution: a tile of 32 keys spans about 0.015 in the middle of the row.
// e4m3 has a step of 1/16 below 1, so that each tile rounds up by about 0.007, a quarter of a half step.
#pragma once

#include <array>
#include <span>

#include "core/attention/weight_sums.h"

namespace kvscope::attention {

struct ReferenceKernels;  // detail/reference_kernels.h

// Smallest and largest tile that are measured, in keys; those between are powers of two.
inline constexpr std::size_t kSmallestTile = 16;
inline constexpr std::size_t kLargestTile = 256;
inline constexpr double kIndependentPhases = 4;

// For each type of kClumpTypes the largest mean phase of all tiles and both directions, 0 to 1; 0 for none. `weights`:
// exp(score - maximum) of the keys in order; `sums`: of them; `row_sum`: with the sink's weight. The result has the
// same bits with every instruction set; without `kernels`, those of the widest instructions of this machine are used.
[[nodiscard]] std::array<double, kClumpTypes> rising_clump(const ReferenceKernels& kernels,
                                                           std::span<const double> weights, const WeightSums& sums,
                                                           double row_sum);
[[nodiscard]] std::array<double, kClumpTypes> rising_clump(const ReferenceKernels& kernels,
                                                           std::span<const float> weights, const WeightSums& sums,
                                                           double row_sum);
[[nodiscard]] std::array<double, kClumpTypes> rising_clump(std::span<const double> weights, const WeightSums& sums,
                                                           double row_sum);
[[nodiscard]] std::array<double, kClumpTypes> rising_clump(std::span<const float> weights, const WeightSums& sums,
                                                           double row_sum);

}  // namespace kvscope::attention
