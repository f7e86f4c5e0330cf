// What nearly equal weights add to the terms of the bounds: their rounding errors have one direction.
//
// Clump (weight_terms.h): the mean phase of weights relative to the row's maximum. A kernel that subtracts another
// number moves all probabilities by the same factor, and nearly equal ones may come to lie around a power of two, above
// which the steps of P are twice as wide as below. If they spread evenly over w of the wide steps, then
//
//   w < 1/2    all of them can be in one half of a step, and the mean phase is up to 1 - w;
//   w >= 1/2   those just above the power of two fill the first half of a step, and round down by half a half step on
//              average: a share of 1 / (2 w) with a phase of 1/2. The others fill whole steps, and cancel.
//
// So the mean phase is at most the largest share of the weights in a quarter of a wide step: 1 for w < 1/4, about
// 1 / (4 w) otherwise. Weights that differ by a power of two have the same phase, relative to any number, so only their
// significands count. The share is measured in numbers of P's type with three more bits: four of them side by side are
// a quarter of a wide step just below a power of two, and half of one above it.
//
// Example: 16,384 scores spread evenly over 0.008, P in bf16, with wide steps of 1/128: w is 1.02, and 0.245 is the
// largest mean phase. Relative to the row's maximum they fill 2.05 steps, and the mean phase is nearly 0.
//
// Additions: an f32 sum of 40,000 weights of about 1 is a multiple of its unit, 2^-8. Weights that differ by less than
// the unit change the sum by the same multiple of it, and their errors have one direction. It depends on the place of
// the weights between two multiples, which a kernel moves by the number that it subtracts. So the sum is made one by
// one, forwards and backwards, for four of these numbers, and the errors of all additions at one unit are added for
// eight places: the largest sum counts.
//
// Example: 65,536 scores of a normal distribution with a deviation of 0.001: 21,000 of 65,536 additions have one
// direction. With a deviation of 0.02 hardly any have.
#pragma once

#include <array>
#include <span>

#include "core/attention/weight_sums.h"

namespace kvscope::attention {

// A share below so many times p2 is none: single weights have it, and the independent part of the bound allows seven
// standard deviations, 4 p2.
inline constexpr double kFlatShare = 2;

struct FlatTerms {
  std::array<double, kClumpTypes> clump{};  // half the share, 0 to 1/2, because the bounds take the clump twice
  double additions = 0;  // of the row sum, as `repeats` counts them: the sum so far over the row sum, added up
};

// Products of nearly equal weights with nearly equal values of one sign may differ by less than half a unit of their
// f32 sum, at its end. Then as many of their additions as of the weights' may have one direction. Returns the factor of
// the mean square of the sum so far that allows for them, or 1: seven deviations of independent errors,
// 7/2 e sqrt(keys) running, are then about e times these additions, with running about 0.58 |o|. The sums are those of
// e v, e |v| and (e v)^2 over the keys.
[[nodiscard]] double larger_sums_of_products(double additions, double keys, double sum, double magnitudes,
                                             double squares);

// `weights`: exp(score - maximum) of the keys; `sums`: of them; `row_sum`: with the sink's weight.
[[nodiscard]] FlatTerms flat_terms(std::span<const double> weights, const WeightSums& sums, double row_sum);
[[nodiscard]] FlatTerms flat_terms(std::span<const float> weights, const WeightSums& sums, double row_sum);

}  // namespace kvscope::attention
