// D = A B + C of a tile, for the matrix instructions of a warp and of four.
//
//   a [m][k]   b [k][n]   d [m][n], C before and D after; all row-major
//
// Elements come as numbers: float for f16 bf16 tf32 e4m3 e5m2 (each is a float exactly), int32 for s8 u8 s4 u4 b1,
// double for f64. Sums of floats are ordered by the mode (op.h); f64 is a fused multiply-add for k ascending; integers
// are exact, then wrap or clamp. A NaN is the canonical one.
//
//   c = 1, sixteen products 2^-13 * 2^-13:   seq 1   exact 1 + 2^-22   hopper 1 (each is cut at 2^-25)
//
// D in f16: d holds floats that are f16 numbers; one rounding to f16, at the end.
// Source of mode `hopper`: Khattak and Mikaitis, models of GPU matrix multipliers, 2025.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

struct MatrixProduct {
  int m = 0, n = 0, k = 0;
  Type a = Type::none;  // the element types: of A, of B
  Type b = Type::none;
  Type d = Type::none;  // f32 f16 s32 f64
  SumMode sum = SumMode::seq;
  bool saturate = false;  // s32
  bool both = false;      // b1: counts a and b, not a xor b
  friend bool operator==(const MatrixProduct&, const MatrixProduct&) = default;
};

void multiply_add(const MatrixProduct& product, const float* a, const float* b, float* d, Simd simd = best_simd());
void multiply_add(const MatrixProduct& product, const std::int32_t* a, const std::int32_t* b, std::int32_t* d);
void multiply_add(const MatrixProduct& product, const double* a, const double* b, double* d);

// `count` elements of a type as they stand in memory or in registers, lowest first (two s4 a byte, eight b1): as floats
// of f16 bf16 tf32 e4m3 e5m2 and f32, as integers of s8 u8 s4 u4 b1. Of tf32 the lower 13 bits are not looked at.
void decode_elements(Type type, const std::byte* from, int count, float* to);
void decode_elements(Type type, const std::byte* from, int count, std::int32_t* to);

// Nearest even, for D in f16.
[[nodiscard]] std::uint16_t f16_bits_of(float x);
[[nodiscard]] float float_of_f16_bits(std::uint16_t x);

}  // namespace kvscope::ptx
