// Sums over the softmax weights of one row, of which weight_terms.h makes the terms of the error bound. Includes
// nothing but integers: the loops that fill it are compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvscope::attention {

// Types of P for which `clump` is measured, in this order: bf16, f16, e4m3.
inline constexpr std::size_t kClumpTypes = 3;
// Terms of `faint`: the weight of keys below 2^-7 of the largest, and what of it f16 and e4m3 lose.
inline constexpr std::size_t kFaintTerms = 3;
// Rounding phases are measured as they are, moved by a quarter of a step, and moved by half a step.
inline constexpr std::size_t kPhaseMoves = 3;

inline constexpr int kClumpKeptBits[kClumpTypes] = {7, 10, 3};  // of the significand after the leading 1

struct WeightSums {
  double row_sum = 0;  // of the weights, in the order of reference.h
  double squares = 0;
  double repeats = 0;
  double phases[kClumpTypes][kPhaseMoves] = {};  // [half steps * 2^31]
  double faint[kFaintTerms] = {};
};

}  // namespace kvscope::attention
