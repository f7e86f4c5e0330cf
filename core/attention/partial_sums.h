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

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "core/attention/weight_sums.h"

namespace kvscope::attention {

// Terms of Result::partial_sums: of a score, and of the row sum.
inline constexpr std::size_t kPartialTerms = 2;
inline constexpr std::size_t kPartialBlock = 16;  // keys between two looks at the row sum
inline constexpr double kSmallScores = 1;
inline constexpr std::size_t kDotLanes = 32;  // most interleaved sums of a score that are measured

// Mean square of the partial sums of a score, from its products. Example: {1, 1, 1, 1}: (1 + 4 + 9 + 16) / 4 = 7.5 in
// one sum; in a random order about 4 / 6 + 16 / 3 = 6.
[[nodiscard]] double mean_square_of_dot(std::span<const double> products);

// Calls per_block(keys, from_first, from_last) for each block of kPartialBlock weights: the row sum at its end from the
// first key on, and at its begin from the last key on, both with the sink.
template <class T, class F>
void each_partial_block(std::span<const T> weights, double sink, double row_sum, const F& per_block) {
  double before = 0;
  for (std::size_t at = 0; at < weights.size(); at += kPartialBlock) {
    const std::span<const T> keys = weights.subspan(at, std::min(kPartialBlock, weights.size() - at));
    double sums[4] = {};  // one sum would wait for each addition
    std::size_t i = 0;
    for (; i + 4 <= keys.size(); i += 4) {
      for (std::size_t n = 0; n < 4; ++n) sums[n] += static_cast<double>(keys[i + n]);
    }
    for (; i < keys.size(); ++i) sums[0] += static_cast<double>(keys[i]);
    const double block = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    const double from_last = std::max(row_sum - sink - before, block) + sink;
    before += block;
    per_block(keys, sink + before, from_last);
  }
}

// 0 to 1. `sink`: the weight of the sink, 0 without one; the weights and the sink add up to `row_sum`.
template <class T>
[[nodiscard]] double row_sum_so_far(std::span<const T> weights, double sink, double row_sum) {
  double squares_forwards = 0, squares_backwards = 0;
  each_partial_block(weights, sink, row_sum, [&](std::span<const T> keys, double from_first, double from_last) {
    const auto additions = static_cast<double>(keys.size());
    squares_forwards += additions * from_first * from_first;
    squares_backwards += additions * from_last * from_last;
  });
  if (weights.empty() || !(row_sum > 0)) return 1;
  const double share =
      std::sqrt(std::max(squares_forwards, squares_backwards) / static_cast<double>(weights.size())) / row_sum;
  return share < 1 ? share : 1;
}

// What matrix instructions may cut from a row sum of P in each of kClumpTypes, relative to it: the larger of the values
// from the first key on and from the last key on. The products are P itself, with few bits, so nothing is cut while all
// of them are multiples of the unit. With S the sum so far and b the bits of P's significand:
//
//   result    half of 2^-23 S for each 8 keys, if P of any key of their block is below 2^(b - 23) S
//   products  half of 2^-25 S for each key whose P is below 2^(b - 25) S
//
// Blocks are those of row_sum_so_far. A key with weight 0 adds nothing.
// Example: 1,600 equal weights: nothing for f16 and bf16, because P is at least S / 1,600 > 2^-12 S.
template <class T>
[[nodiscard]] std::array<double, kClumpTypes> row_sum_cut(std::span<const T> weights, double sink, double row_sum) {
  constexpr double kProductsOfAnInstruction = 8;
  std::array<double, kClumpTypes> cut{}, backwards{};
  each_partial_block(weights, sink, row_sum, [&](std::span<const T> keys, double from_first, double from_last) {
    // Weights in double, infinite in place of 0 and behind the last one: what is compared side by side.
    std::array<double, kPartialBlock> e;
    e.fill(std::numeric_limits<double>::infinity());
    double smallest = e[0];
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto x = static_cast<double>(keys[i]);
      e[i] = x > 0 ? x : e[i];
      smallest = e[i] < smallest ? e[i] : smallest;
    }
    const double instructions = std::ceil(static_cast<double>(keys.size()) / kProductsOfAnInstruction);
    for (std::size_t type = 0; type < kClumpTypes; ++type) {
      const double fine = std::ldexp(1.0, kClumpKeptBits[type] + 1 - 23);
      const auto cut_at = [&](double sum) {
        if (smallest == std::numeric_limits<double>::infinity() || smallest >= fine * sum) return 0.0;
        const double below = fine / 4 * sum;
        std::int64_t products = 0;
        for (const double x : e) products += x < below ? 1 : 0;
        return sum * (instructions * 0x1p-24 + static_cast<double>(products) * 0x1p-26);
      };
      cut[type] += cut_at(from_first);
      backwards[type] += cut_at(from_last);
    }
  });
  for (std::size_t type = 0; type < kClumpTypes; ++type) {
    cut[type] = std::max(cut[type], backwards[type]) / row_sum;
  }
  return cut;
}

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
