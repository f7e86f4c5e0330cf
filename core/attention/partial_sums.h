// How large the partial sums of a row are: an addition rounds in proportion to the sum so far.
//
// Of a score: the root mean square of the partial sums of the products scale * q_d * k_d, the largest of any key and of
// these orders: from the first or the last element on, in 2 to 32 interleaved sums, and a random order, whose expected
// mean square is a sixth of the sum of the squared products and a third of the squared score. The term is at most
// 1 + smax, and 1 + smax for rows with smax of kSmallScores or more, where it would rarely be smaller.
//
// Of the row sum: the root mean square, over the keys, of the sum at the end of a key's block of kPartialBlock keys,
// divided by the whole row sum: the larger of the values from the first key on and from the last key on. A kernel that
// splits the keys adds a part of the same numbers to a smaller sum. The sink's weight belongs to every sum.
//
// Example: 1,600 equal weights: sqrt((1^2 + 2^2 + ... + 100^2) / 100) / 100 = 0.582; in one block of keys: 1. All
// weight on the first key: 1, because every sum from the first key on is the whole one.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/attention/weight_sums.h"

namespace kvscope::attention {

struct ReferenceKernels;

// Terms of Result::partial_sums: of a score, and of the row sum.
inline constexpr std::size_t kPartialTerms = 2;
inline constexpr double kSmallScores = 1;
inline constexpr std::size_t kDotLanes = 32;  // most interleaved sums of a score that are measured

// Mean square of the partial sums of a score, from its products. Example: {1, 1, 1, 1}: (1 + 4 + 9 + 16) / 4 = 7.5 in
// one sum; in a random order about 4 / 6 + 16 / 3 = 6.
[[nodiscard]] double mean_square_of_dot(std::span<const double> products);

struct RowSumTerms {
  double so_far = 1;                      // rms of the row sum so far over the whole one, 0 to 1
  std::array<double, kClumpTypes> cut{};  // relative to the row sum
};

// `sink`: the weight of the sink, 0 without one; the weights and the sink add up to `row_sum`.
//
// cut: what matrix instructions may cut from a row sum of P in each of kClumpTypes, the larger of the values from the
// first key on and from the last key on. The products are P itself, with few bits, so nothing is cut while all of them
// are multiples of the unit. With S the sum so far and b the bits of P's significand:
//
//   result    half of 2^-23 S for each 8 keys, if P of any key of their block is below 2^(b - 23) S
//   products  half of 2^-25 S for each key whose P is below 2^(b - 25) S
//
// A key with weight 0 adds nothing.
// Example: 1,600 equal weights: nothing for f16 and bf16, because P is at least S / 1,600 > 2^-12 S.
[[nodiscard]] RowSumTerms row_sum_terms(std::span<const double> weights, double sink, double row_sum);
[[nodiscard]] RowSumTerms row_sum_terms(std::span<const float> weights, double sink, double row_sum);
// With the loops of a given instruction set; the results are equal.
[[nodiscard]] RowSumTerms row_sum_terms(const ReferenceKernels& kernels, std::span<const double> weights, double sink,
                                        double row_sum);
[[nodiscard]] RowSumTerms row_sum_terms(const ReferenceKernels& kernels, std::span<const float> weights, double sink,
                                        double row_sum);

// Additions that an f32 sum loses: weights below half a unit of the sum, in such half units. `smallest`: about the
// smallest of the weights `e`.
template <class T>
[[nodiscard]] double absorbed(std::span<const T> e, double smallest, double sum) {
  const double half_unit = 0x1p-24 * sum;
  if (smallest > 2 * half_unit) return 0;
  double lost = 0;
  for (const T x : e) lost += static_cast<double>(x) < half_unit ? static_cast<double>(x) : 0;
  return half_unit > 0 ? lost / half_unit : 0;
}

}  // namespace kvscope::attention
