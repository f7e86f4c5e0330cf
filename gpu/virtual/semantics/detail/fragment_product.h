// The product of one warp on the registers that hold D, in the order of mode seq: neither D nor C is rearranged. Compiled once
// per instruction set (CMakeLists.txt).
//
//   D register 4j + 2h + p, lane (g,t)    row g + 8h, column 8j + 2t + p    h, p < 2; wgmma, and mma.m16n8 with j = 0
//   a [k][16]                             numbers of A by column
//   b [k][n / 8][2][4]                    row of B: of each eight columns the even ones, then the odd ones ("quads")
//
// The lanes of a register are eight rows of four columns. So one step of k adds to them A's number of each row, four times,
// times one quad of B, eight times. The copies of A's numbers are made once per product; those of a quad by its load.
#pragma once

#include "gpu/virtual/semantics/detail/matrix_loops.h"
#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx::semantics {
namespace {

inline constexpr int kFragmentRows = 16;
inline constexpr int kSpread =
    4 * kFragmentRows;  // numbers of a column of A, four times each: the lanes of two registers
inline constexpr int kMostFragmentK = 32;

template <class Vector>
inline Vector load(const float* from) {
  Vector x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

// A quad in each group of four lanes.
template <class Vector>
[[gnu::always_inline]] inline Vector repeated_quad(const float* quad) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Vector) == 64) return Vector(_mm512_maskz_broadcast_f32x4(0xffff, _mm_loadu_ps(quad)));
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(Vector) == 32) return repeated(load<Four>(quad));
#endif
  if constexpr (sizeof(Vector) == 16) return load<Vector>(quad);
}

#if defined(__AVX512F__)
// Numbers kFrom .. kFrom + 3 of a column, four times each.
template <int kFrom>
[[gnu::always_inline]] inline void spread_four(WideVector column, float* to) {
  constexpr int i = kFrom;
  const WideVector spread = __builtin_shufflevector(column, column, i, i, i, i, i + 1, i + 1, i + 1, i + 1, i + 2,
                                                    i + 2, i + 2, i + 2, i + 3, i + 3, i + 3, i + 3);
  __builtin_memcpy(to + 4 * kFrom, &spread, sizeof spread);
}
#endif

// [k][16] -> [k][64]
inline void spread_rows(int k, const float* a, float* to) {
  for (int x = 0; x < k; ++x, a += kFragmentRows, to += kSpread) {
#if defined(__AVX512F__)
    const auto column = load<WideVector>(a);
    spread_four<0>(column, to);
    spread_four<4>(column, to);
    spread_four<8>(column, to);
    spread_four<12>(column, to);
#else
    for (int row = 0; row < kFragmentRows; ++row) {
      const Four number = Four{} + a[row];
      __builtin_memcpy(to + 4 * row, &number, sizeof number);
    }
#endif
  }
}

// sum + a b, rounded as plus_product does.
template <bool kFused, class Vector>
[[gnu::always_inline]] inline Vector plus_products(Vector sum, Vector a, Vector b) {
#if defined(__AVX512F__)
  if constexpr (kFused && sizeof(Vector) == 64) return Vector(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(sum)));
#endif
#if defined(__FMA__)
  if constexpr (kFused && sizeof(Vector) == 32) return Vector(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(sum)));
#endif
  return sum + a * b;
}

template <class Vector>
[[gnu::always_inline]] inline Vector canonical_lanes(Vector x) {
  typedef u32 Words __attribute__((vector_size(sizeof(Vector))));
  return x == x ? x : (Vector)(Words{} + kNanF32);
}

inline int fragment_register(int quad, int half) {
  return 4 * (quad / 2) + 2 * half + quad % 2;
}

// kParts vectors of lanes, from the one that begins at `lane` of the 64, and kQuads quads of columns, over all k.
template <bool kFused, class Vector, int kParts, int kQuads>
void add_fragment_block(const FragmentProduct& p, const float* a, int lane, int quad, std::byte* registers) {
  constexpr int kLength = sizeof(Vector) / sizeof(float);
  const int quads = p.n / 4;
  Vector* places[kParts][kQuads];
  Vector sum[kParts][kQuads];
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    const int first = lane + i * kLength;
#pragma GCC unroll 4
    for (int q = 0; q < kQuads; ++q) {
      places[i][q] = reinterpret_cast<Vector*>(registers + p.d[fragment_register(quad + q, first / kLanes)] +
                                               4 * (first % kLanes));
      sum[i][q] = Vector{};
      if (p.adds) __builtin_memcpy(&sum[i][q], places[i][q], sizeof(Vector));
    }
  }
  const float* of_a = a + lane;
  const float* of_b = p.b + 4 * quad;
  for (int x = 0; x < p.k; ++x, of_a += kSpread, of_b += 4 * quads) {
    Vector b[kQuads];
#pragma GCC unroll 4
    for (int q = 0; q < kQuads; ++q) b[q] = repeated_quad<Vector>(of_b + 4 * q);
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) {
      const Vector rows = load<Vector>(of_a + i * kLength);
#pragma GCC unroll 4
      for (int q = 0; q < kQuads; ++q) sum[i][q] = plus_products<kFused>(sum[i][q], rows, b[q]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
#pragma GCC unroll 4
    for (int q = 0; q < kQuads; ++q) {
      const Vector result = canonical_lanes(sum[i][q]);
      __builtin_memcpy(places[i][q], &result, sizeof result);
    }
  }
}

template <bool kFused>
void add_fragments(const FragmentProduct& p, const float* a, std::byte* registers) {
  constexpr int kLength = sizeof(WideVector) / sizeof(float);
  constexpr int kParts = 4;  // with four quads: 16 of 32 registers hold sums, with two 8 of 16
  constexpr int kQuads = sizeof(WideVector) == 64 ? 4 : 2;
  for (int lane = 0; lane < kSpread; lane += kParts * kLength) {
    int quad = 0;
    for (; quad + kQuads <= p.n / 4; quad += kQuads)
      add_fragment_block<kFused, WideVector, kParts, kQuads>(p, a, lane, quad, registers);
    for (; quad < p.n / 4; quad += 2) add_fragment_block<kFused, WideVector, kParts, 2>(p, a, lane, quad, registers);
  }
}

inline void fragment_product_in_order(const FragmentProduct& p, std::byte* registers) {
  alignas(64) float a[kMostFragmentK * kSpread];
  spread_rows(p.k, p.a, a);
#if defined(__FMA__)
  if (p.exact_products) return add_fragments<true>(p, a, registers);
#endif
  add_fragments<false>(p, a, registers);
}

// [columns][length], as lines of K-major operands are -> [length][columns / 8][2][4]; columns is a multiple of 8, and
// length of 4.
inline void quads_of_columns(int columns, int length, const float* from, float* to) {
  for (int column = 0; column < columns; column += 8) {
    for (int x = 0; x < length; x += 4) {
      for (int odd = 0; odd < 2; ++odd) {
        const float* const corner = from + (column + odd) * length + x;
        const Four r0 = load<Four>(corner), r1 = load<Four>(corner + 2 * length), r2 = load<Four>(corner + 4 * length),
                   r3 = load<Four>(corner + 6 * length);
        const Four low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5),
                   low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
        const Four high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7),
                   high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
        const Four steps[4] = {
            __builtin_shufflevector(low01, low23, 0, 1, 4, 5), __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
            __builtin_shufflevector(high01, high23, 0, 1, 4, 5), __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
        for (int i = 0; i < 4; ++i)
          __builtin_memcpy(to + (x + i) * columns + column + 4 * odd, &steps[i], sizeof steps[i]);
      }
    }
  }
}
// [length][columns], as lines of MN-major operands are -> the same.
inline void quads_of_rows(int columns, int length, const float* from, float* to) {
  for (int i = 0; i < columns * length; i += 8) {
    const Four low = load<Four>(from + i), high = load<Four>(from + i + 4);
    const Four even = __builtin_shufflevector(low, high, 0, 2, 4, 6),
               odd = __builtin_shufflevector(low, high, 1, 3, 5, 7);
    __builtin_memcpy(to + i, &even, sizeof even);
    __builtin_memcpy(to + i + 4, &odd, sizeof odd);
  }
}

}  // namespace
}  // namespace kvscope::ptx::semantics
