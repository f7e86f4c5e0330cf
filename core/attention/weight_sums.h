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
// Rows whose faint keys have less of the weight get the largest |v|: a1 is then that of other keys, and says little
// about the values of faint ones.
inline constexpr double kFewFaint = 1.0 / 16;
// Types with subnormal probabilities, f16 and e4m3 in this order, and the terms of `lost`: the systematic and the
// independent part of their errors for each type, and the size of the weights below 2^-7.
inline constexpr std::size_t kLostTypes = 2;
inline constexpr std::size_t kLostTerms = 2 * kLostTypes + 1;
// Rounding phases are measured as they are, moved by a quarter of a step, and moved by half a step.
inline constexpr std::size_t kPhaseMoves = 3;

// The spacing of a type's subnormal numbers, and the weights that are measured with it.
inline constexpr double kSubnormalStep[kLostTypes] = {0x1p-24, 0x1p-9};
inline constexpr double kSubnormalBelow[kLostTypes] = {0x1p-14, 0x1p-7};

inline constexpr int kClumpKeptBits[kClumpTypes] = {7, 10, 3};  // of the significand after the leading 1

// Of a sum S of P with b bits: P below 2^(b - 23) S is not a multiple of the unit of S in f32.
inline constexpr double kFineShare[kClumpTypes] = {0x1p-15, 0x1p-12, 0x1p-19};  // b = kept + 1

struct WeightSums {
  double row_sum = 0;  // of the weights, in the order of reference.h
  double squares = 0;
  double repeats = 0;
  double phases[kClumpTypes][kPhaseMoves] = {};  // [half steps * 2^31]
  double faint[kFaintTerms] = {};
  double subnormal_errors[kLostTypes][kPhaseMoves] = {};  // of weights that round to multiples of the step
  double subnormal_squares[kLostTypes] = {};              // of the largest errors
  double faint_squares = 0;                               // of the weights below 2^-7
};

// Keys between two looks at the row sum so far.
inline constexpr std::int64_t kPartialBlock = 16;

// Sums over the blocks of a row, of which partial_sums.h makes its terms: [0] from the first key on, [1] from the last.
struct PartialRowSums {
  double squares[2] = {};           // of the row sum at the end of a block, times its keys
  double cut[2][kClumpTypes] = {};  // what matrix instructions cut from it
};

}  // namespace kvscope::attention
