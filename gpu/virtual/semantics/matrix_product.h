// D = A B + C for one tile, used by the matrix instructions of a warp (mma, wmma) and of a warpgroup (wgmma).
//
//   a [m][k]   b [k][n]   d [m][n], C before and D after; all row-major
//
// Elements are passed as numbers: float for f16 bf16 tf32 e4m3 e5m2 e2m3 e3m2 e2m1 (each is exact in float), int32 for s8 u8 s4 u4 b1,
// double for f64. The mode (op.h) orders the sums of floats; f64 uses fused multiply-adds in ascending k, each with one
// rounding; integers are exact, then wrap or clamp. A NaN result is the canonical NaN; of f64, that of the fused
// multiply-add.
//
//   c = 1, sixteen products 2^-13 * 2^-13:   seq 1   exact 1 + 2^-22   hopper 1 (each is truncated at 2^-25)
//
// D in f16: d holds floats that are f16 numbers; rounded to f16 once, at the end.
// Source of mode `hopper`: Khattak and Mikaitis, models of GPU matrix multipliers, 2025.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

struct MatrixProduct {
  int m = 0, n = 0, k = 0;
  Type a = Type::none;  // the element types of A and B
  Type b = Type::none;
  Type d = Type::none;  // f32 f16 s32 f64
  SumMode sum = SumMode::seq;
  Rounding rounding = Rounding::nearest;  // of each fused multiply-add of f64
  bool saturate = false;                  // s32
  bool both = false;                      // b1: multiplies by AND, not XOR
  bool sparse = false;                    // A has k / 2 numbers a row (isa/sparse_metadata.h)
  friend bool operator==(const MatrixProduct&, const MatrixProduct&) = default;
};

// Precondition: not sparse.
void multiply_add(const MatrixProduct& product, const float* a, const float* b, float* d, Simd simd = best_simd());
void multiply_add(const MatrixProduct& product, const std::int32_t* a, const std::int32_t* b, std::int32_t* d);
void multiply_add(const MatrixProduct& product, const double* a, const double* b, double* d);

// A product of mode seq, 16 rows of f32 in the registers of a warp, as wgmma has them (machine/matrix/wgmma.h): it needs no
// row-major D. k is at most 32.
struct FragmentProduct {
  int n = 0, k = 0;
  const float* a = nullptr;          // [k][16]
  const float* b = nullptr;          // [k][n / 8][2][4]: of each eight columns the even ones, then the odd ones
  const std::uint32_t* d = nullptr;  // [n / 2] places of the registers
  bool adds = true;                  // false: C is 0
  bool exact_products = false;       // have_exact_products of a and of b
};
void multiply_add_fragments(const FragmentProduct& product, std::byte* registers, Simd simd = best_simd());
// Whether the product of any two of these numbers, with at most 12 significant bits each, is exact in f32; false if that is
// unknown. Such products may be fused with their sums.
[[nodiscard]] bool have_exact_products(const float* numbers, int count, Simd simd = best_simd());
// Numbers as FragmentProduct::b has them, from [columns][length], or from [length][columns]. columns is a multiple of 8,
// length of 4.
void arrange_quads(bool by_columns, int columns, int length, const float* from, float* to, Simd simd = best_simd());

// With a sparse A: number j of row i, a[i][j], is the one in column positions[i][j] of A; j < k / 2. Products are added
// in the order of j, and rows of B that no number selects are not read.
void multiply_add_sparse(const MatrixProduct& product, const float* a, const std::uint16_t* positions, const float* b,
                         float* d, Simd simd = best_simd());
void multiply_add_sparse(const MatrixProduct& product, const std::int32_t* a, const std::uint16_t* positions,
                         const std::int32_t* b, std::int32_t* d);

// mma.sync of fp8 on Hopper, which has no such instruction: A and B are converted to f16 and multiplied by two, of the lower
// and of the upper two numbers of each register of four. The first begins with 0, the second with the first's sum, and C is
// added at the end with one rounding. An H100 computes these bits (docs/hardware). wgmma has fp8 instructions.
// `positions`: of a sparse A; otherwise nullptr. Precondition: m is at most 16, n 8, k 64.
void multiply_add_in_halves(const MatrixProduct& product, const float* a, const std::uint16_t* positions,
                            const float* b, float* d);

// With block scales: A's number in column x is multiplied by a[row][x / block], B's by b[column][x / block].
struct BlockScales {
  int block = 0;              // columns of A for each scale
  const double* a = nullptr;  // [m][k / block]
  const double* b = nullptr;  // [n][k / block]
};
// Each scaled product is exact, and is added with one rounding to f32, in ascending k; the mode has no effect.
// `positions`: of a sparse A; otherwise nullptr. Precondition: numbers have at most 4 significant bits, and so have scales.
void multiply_add_scaled(const MatrixProduct& product, const BlockScales& scales, const float* a,
                         const std::uint16_t* positions, const float* b, float* d);

// Converts `count` packed elements of a type, lowest first (two s4 or e2m1 per byte, eight b1; e2m3 and e3m2 take a
// byte each): to floats for f16 bf16 tf32 e4m3 e5m2 e2m3 e3m2 e2m1 and f32, to integers for s8 u8 s4 u4 b1. The lower 13
// bits of tf32 are ignored.
void decode_elements(Type type, const std::byte* from, int count, float* to, Simd simd = best_simd());
void decode_elements(Type type, const std::byte* from, int count, std::int32_t* to);

// A block scale, ue8m0 or ue4m3; NaN for ff of ue8m0 and 7f of ue4m3.
[[nodiscard]] double decode_scale(Type type, std::uint8_t bits);

// Rounds to nearest even, for D in f16.
[[nodiscard]] std::uint16_t f16_bits_of(float x);
[[nodiscard]] float float_of_f16_bits(std::uint16_t x);

}  // namespace kvscope::ptx
