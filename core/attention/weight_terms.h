// The terms of the error bound that depend on a row's softmax weights alone: p2, clump, faint, lost and repeats.
//
// p2 is sqrt(sum p^2), the size of a sum of errors that are independent between keys.
//
// The clump tells whether the rounding errors of P cancel. The errors of keys with different scores have different
// signs, and their sum grows with the root of the number of keys. If all scores are nearly equal, all probabilities
// round by the same amount in the same direction, and their sum grows with the number of keys. A probability's phase is
// its distance from the nearest number of the narrow type, in half steps: -1 .. 1. The clump of a row is the largest
// magnitude of the weighted mean phase, when all phases are moved by 0, a quarter or half a step: kernels round
// exp(score - m), and m moves all phases. m need not be the row's maximum: kernels raise it late, take an upper bound
// of it, or scale P to the range of its type, so that the largest probability rounds too. flat_weights.h and
// rising_clump.h add to it.
//
// faint is what P loses below the normal range of its type: the weight of keys under 2^-7 of the largest, and the sums
// of min(e, half the smallest number) for f16 and for e4m3: the largest possible loss.
//
// lost separates that loss. Below the normal range, P rounds to multiples of the smallest number. A key's error is at
// most min(e, half of that), and its sign varies if the weights differ by more than a step. The systematic part is the
// size of the sum of the errors, with all weights moved by 0, a quarter or half a step, as for the clump, at most by
// three times themselves. The independent part is the root of the sum of the squared largest errors. Weights below half
// a step round to 0: their errors have one sign, and the systematic part has all of them.
//
// repeats counts the keys whose weight is the previous key's, to 2^-20: adding equal numbers one by one rounds in the
// same direction each time. Weights of 1 are counted too, because they are not 1 relative to another m.
//
// Example: 1000 keys with one score, and one key with a score 2 higher: the clump is at least half the weight of the
// 1000 keys. 1000 keys with scores spread over 0.1 or more: about 0.02 for bf16.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/attention/weight_sums.h"

namespace kvscope::attention {

// The phase of the double with these bits, in half steps * 2^31, moved by `move` quarters of a step: the bits that
// rounding removes, as a signed number.
[[nodiscard]] inline std::int32_t rounding_phase(std::uint64_t bits, std::size_t type, std::size_t move) {
  const auto removed = static_cast<std::uint32_t>(bits << (12 + kClumpKeptBits[type]) >> 32);
  return static_cast<std::int32_t>(removed + static_cast<std::uint32_t>(move) * 0x40000000u);
}

class WeightTerms {
 public:
  WeightTerms() = default;
  // Sums of the weights of a row by the loops of the reference, which add the same terms in eight lanes.
  explicit WeightTerms(const WeightSums& sums) : sums_(sums) {}

  // A key's weight exp(score - maximum), in 0 .. 1; twice that for a key that a faulty kernel counts twice.
  void add(double e) {
    sums_.row_sum += e;
    sums_.squares += e * e;
    if (std::fabs(e - last_) <= 0x1p-20 * e) sums_.repeats += 1;
    last_ = e;
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(e);
    for (std::size_t type = 0; type < kClumpTypes; ++type) {
      for (std::size_t move = 0; move < kPhaseMoves; ++move) {
        sums_.phases[type][move] += e * static_cast<double>(rounding_phase(bits, type, move));
      }
    }
    if (e >= 0x1p-7) return;
    sums_.faint[0] += e;
    sums_.faint[1] += e < 0x1p-25 ? e : 0x1p-25;
    sums_.faint[2] += e < 0x1p-10 ? e : 0x1p-10;
    sums_.faint_squares += e * e;
    for (std::size_t type = 0; type < kLostTypes; ++type) {
      if (e == 0 || e >= kSubnormalBelow[type]) continue;
      const double step = kSubnormalStep[type], largest = e < step / 2 ? e : step / 2;
      sums_.subnormal_squares[type] += largest * largest;
      for (std::size_t move = 0; move < kPhaseMoves; ++move) {
        const double moved = e + static_cast<double>(move) * (e < step / 4 ? e : step / 4);
        const double to_multiple = 0x1.8p52 * step;  // the sum with it is rounded to a multiple of the step
        sums_.subnormal_errors[type][move] += moved - ((moved + to_multiple) - to_multiple);
      }
    }
  }

  [[nodiscard]] const WeightSums& sums() const { return sums_; }
  // `row_sum`: of all weights, with the sink's.
  [[nodiscard]] double p2(double row_sum) const { return std::sqrt(sums_.squares) / row_sum; }
  // Relative to the row's maximum; rising_clump.h has what maxima of tiles add, flat_weights.h what other numbers do.
  [[nodiscard]] double clump(std::size_t type, double row_sum) const {
    double largest = 0;
    for (const double x : sums_.phases[type]) largest = std::fabs(x) > largest ? std::fabs(x) : largest;
    return largest / row_sum * 0x1p-31;
  }
  [[nodiscard]] double repeats() const { return sums_.repeats; }
  [[nodiscard]] double faint(std::size_t which, double row_sum) const { return sums_.faint[which] / row_sum; }
  // [f16 systematic, e4m3 systematic, f16 independent, e4m3 independent, size of the faint weights]
  [[nodiscard]] double lost(std::size_t which, double row_sum) const {
    if (which == 2 * kLostTypes) return std::sqrt(sums_.faint_squares) / row_sum;
    if (which >= kLostTypes) return std::sqrt(sums_.subnormal_squares[which - kLostTypes]) / row_sum;
    double largest = 0;
    for (const double x : sums_.subnormal_errors[which]) largest = std::fabs(x) > largest ? std::fabs(x) : largest;
    return largest / row_sum;
  }

 private:
  WeightSums sums_;
  double last_ = -1;
};

// The terms of these weights, by the loops of the reference.
[[nodiscard]] WeightTerms weight_terms_of(std::span<const double> weights);

}  // namespace kvscope::attention
