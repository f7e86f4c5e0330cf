// The product of one warp on the registers that hold D, in the order of mode seq: neither D nor C is rearranged; and mma.m16n8 of
// f16, bf16, tf32, e4m3 and e5m2. Compiled once per instruction set (CMakeLists.txt).
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
  if constexpr (sizeof(Vector) == 32) {
    const auto x = load<Four>(quad);
    return __builtin_shufflevector(x, x, 0, 1, 2, 3, 0, 1, 2, 3);
  }
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

// Transposes four rows of four, `stride` numbers apart.
[[gnu::always_inline]] inline void transpose(const float* from, int stride, Four (&columns)[4]) {
  const Four r0 = load<Four>(from), r1 = load<Four>(from + stride), r2 = load<Four>(from + 2 * stride),
             r3 = load<Four>(from + 3 * stride);
  const Four low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7), high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
  columns[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  columns[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  columns[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  columns[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

// [columns][length], as lines of K-major operands are -> [length][columns / 8][2][4]; columns is a multiple of 8, and
// length of 4.
inline void quads_of_columns(int columns, int length, const float* from, float* to) {
  for (int column = 0; column < columns; column += 8) {
    for (int x = 0; x < length; x += 4) {
      for (int odd = 0; odd < 2; ++odd) {
        Four steps[4];
        transpose(from + (column + odd) * length + x, 2 * length, steps);
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

// --- mma -------------------------------------------------------------------------------------------------------------
// E numbers per register (tf32 1, 16 bits 2, 8 bits 4), g = lane / 4, t = lane % 4; number e of register r of lane (g,t):
//
//   A   row g + 8 (r % 2), k = t E + e + 4 E (r / 2)       B   k = t E + e + 4 E r, column g

constexpr int numbers_per_register(Type type) {
  return type == Type::tf32 ? 1 : type == Type::f16 || type == Type::bf16 ? 2 : 4;
}

// Number kNumber of each word.
template <Type kType, int kNumber>
[[gnu::always_inline]] inline void decode_words(const std::byte* words, float* to) {
  const u32* w = static_cast<const Cell<u32>*>(__builtin_assume_aligned(words, 64));
#if defined(__AVX512F__)
  if constexpr (kType == Type::f16) {
    for (int i = 0; i < kLanes; i += 16) {
      const __m512i all = _mm512_loadu_si512(w + i);
      const __m256i halves = _mm512_maskz_cvtepi32_epi16(0xffff, kNumber == 0 ? all : __m512i(__v16su(all) >> 16));
      _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(0xffff, halves));
    }
    return;
  }
#endif
  KVSCOPE_LANES
  for (int i = 0; i < kLanes; ++i) {
    const u32 bits = w[i] >> (32 / numbers_per_register(kType) * kNumber);
    if constexpr (kType == Type::f16) {
      to[i] = f16_to_f32(static_cast<u16>(bits));
    } else if constexpr (kType == Type::bf16) {
      to[i] = bits_as<float>(bits << 16);
    } else if constexpr (kType == Type::tf32) {
      to[i] = bits_as<float>(bits & 0xffffe000u);
    } else if constexpr (kType == Type::e5m2) {
      to[i] = f16_to_f32(static_cast<u16>((bits & 0xff) << 8));
    } else {  // e4m3: the fields are moved to those of a float, which leaves the exponent 120 too small
      const u32 magnitude = bits & 0x7f;
      const u32 scaled = bits_as<u32>(bits_as<float>(magnitude << 20) * 0x1p120f);
      to[i] = bits_as<float>(magnitude == 0x7f ? kNanF32 : scaled | (bits & 0x80) << 24);
    }
  }
}

// Number kFrom of each group of four lanes, four times.
template <int kFrom, class Vector>
[[gnu::always_inline]] inline Vector from_group(Vector x) {
  constexpr int i = kFrom;
  if constexpr (sizeof(Vector) == 64) {
    return __builtin_shufflevector(x, x, i, i, i, i, i + 4, i + 4, i + 4, i + 4, i + 8, i + 8, i + 8, i + 8, i + 12,
                                   i + 12, i + 12, i + 12);
  } else if constexpr (sizeof(Vector) == 32) {
    return __builtin_shufflevector(x, x, i, i, i, i, i + 4, i + 4, i + 4, i + 4);
  } else {
    return __builtin_shufflevector(x, x, i, i, i, i);
  }
}
// has_exact_products of many numbers, 32 at a time: per lane the largest magnitude, and the largest of 2^32 - magnitude (of 0: 0), as
// bits.
struct ExactProducts {
  alignas(64) u32 highest[kLanes] = {};
  alignas(64) u32 lowest[kLanes] = {};

  [[gnu::always_inline]] void add(const float* numbers) {
    KVSCOPE_LANES
    for (int i = 0; i < kLanes; ++i) {
      const u32 magnitude = bits_as<u32>(numbers[i]) & 0x7fffffffu, below = 0u - magnitude;
      highest[i] = magnitude > highest[i] ? magnitude : highest[i];
      lowest[i] = below > lowest[i] ? below : lowest[i];
    }
  }
  [[nodiscard]] bool hold() const {
    u32 outside = 0;
    for (int i = 0; i < kLanes; ++i) {
      outside |= static_cast<u32>(highest[i] > bits_as<u32>(kMostExact)) |
                 static_cast<u32>(lowest[i] > 0u - bits_as<u32>(kLeastExact));
    }
    return outside == 0;
  }
};

// The numbers of two factors.
template <Type kA, Type kB, int kK>
struct MmaFactors {
  static constexpr int kEach = numbers_per_register(kA);
  static constexpr int kGroups = kK / (4 * kEach);  // registers of B, and pairs of registers of A
  static constexpr bool kMayBeInexact = kA == Type::bf16 || kA == Type::tf32;
  alignas(64) float a[kGroups][kEach][kSpread];  // as the registers have them: rows g, then rows g + 8
  alignas(64) float b[kK][8];                    // quads
  ExactProducts exact;

  template <Type kType, int kNumber>
  [[gnu::always_inline]] void decode(const std::byte* words, float* to) {
    decode_words<kType, kNumber>(words, to);
    if constexpr (kMayBeInexact) exact.add(to);
  }
  template <int kNumber>
  [[gnu::always_inline]] void add_number(const std::byte* registers, const u32* list) {
    if constexpr (kNumber < kEach) {
      for (int r = 0; r < 2 * kGroups; ++r)
        decode<kA, kNumber>(registers + list[r], a[r / 2][kNumber] + kLanes * (r % 2));
      for (int r = 0; r < kGroups; ++r) {
        alignas(64) float numbers[kLanes];
        decode<kB, kNumber>(registers + list[2 * kGroups + r], numbers);
        for (int odd = 0; odd < 2; ++odd) {
          Four steps[4];
          transpose(numbers + 4 * odd, 8, steps);
          for (int t = 0; t < 4; ++t)
            __builtin_memcpy(b[4 * kEach * r + t * kEach + kNumber] + 4 * odd, &steps[t], sizeof steps[t]);
        }
      }
    }
  }
};

// Adds the products of numbers t E .. t E + E - 1 of k.
template <bool kFused, int kT, int kEach, int kParts>
[[gnu::always_inline]] inline void add_step(const WideVector (&a)[kEach][kParts], const float (*b)[8],
                                            WideVector (&sum)[kParts][2]) {
#pragma GCC unroll 4
  for (int e = 0; e < kEach; ++e) {
    const auto even = repeated_quad<WideVector>(b[kT * kEach + e]),
               odd = repeated_quad<WideVector>(b[kT * kEach + e] + 4);
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) {
      const WideVector rows = from_group<kT>(a[e][i]);
      sum[i][0] = plus_products<kFused>(sum[i][0], rows, even);
      sum[i][1] = plus_products<kFused>(sum[i][1], rows, odd);
    }
  }
}
// d: [4][32], the registers.
template <bool kFused, Type kA, Type kB, int kK>
void add_factors(const MmaFactors<kA, kB, kK>& factors, float* d) {
  constexpr int kEach = MmaFactors<kA, kB, kK>::kEach;
  constexpr int kLength = sizeof(WideVector) / sizeof(float);
  constexpr int kParts = kLength == 16 ? 4 : 2;
  for (int first = 0; first < kSpread; first += kParts * kLength) {
    WideVector sum[kParts][2];
    const auto place = [&](int i, int odd) {
      const int lane = first + i * kLength;
      return d + (2 * (lane / kLanes) + odd) * kLanes + lane % kLanes;
    };
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i)
      sum[i][0] = load<WideVector>(place(i, 0)), sum[i][1] = load<WideVector>(place(i, 1));
    for (int group = 0; group < MmaFactors<kA, kB, kK>::kGroups; ++group) {
      WideVector a[kEach][kParts];
#pragma GCC unroll 4
      for (int e = 0; e < kEach; ++e) {
#pragma GCC unroll 4
        for (int i = 0; i < kParts; ++i) a[e][i] = load<WideVector>(factors.a[group][e] + first + i * kLength);
      }
      const float(*const b)[8] = factors.b + 4 * kEach * group;
      add_step<kFused, 0>(a, b, sum);
      add_step<kFused, 1>(a, b, sum);
      add_step<kFused, 2>(a, b, sum);
      add_step<kFused, 3>(a, b, sum);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) {
#pragma GCC unroll 2
      for (int odd = 0; odd < 2; ++odd) {
        const WideVector result = canonical_lanes(sum[i][odd]);
        __builtin_memcpy(place(i, odd), &result, sizeof result);
      }
    }
  }
}

// List: d0..d3, A, B, c0..c3.
template <Type kA, Type kB, int kK>
void mma_in_order(std::byte* registers, const Op& op, LaneMask lanes) {
  const u32* const list = op.list;
  MmaFactors<kA, kB, kK> factors;
  factors.template add_number<0>(registers, list + 4);
  factors.template add_number<1>(registers, list + 4);
  factors.template add_number<2>(registers, list + 4);
  factors.template add_number<3>(registers, list + 4);
  alignas(64) float d[4][kLanes];
  for (int i = 0; i < 4; ++i) __builtin_memcpy(d[i], registers + list[4 + 3 * factors.kGroups + i], sizeof d[i]);
#if defined(__FMA__)
  const bool fused = !factors.kMayBeInexact || factors.exact.hold();
#else
  const bool fused = false;
#endif
  (fused ? add_factors<true, kA, kB, kK> : add_factors<false, kA, kB, kK>)(factors, d[0]);
  for (int i = 0; i < 4; ++i) {
    if (list[i] == kNoRegister) continue;  // _
    const float* from = d[i];
    store_lanes<float>(register_of<float>(registers, list[i]), lanes, [from](int lane) { return from[lane]; });
  }
}

template <Type kA, Type kB, int kUnit>
OpHandler mma_of(const OpQuery& query) {
  if (query.type2 != kA || query.type3 != kB) return nullptr;
  return query.k == kUnit       ? mma_in_order<kA, kB, kUnit>
         : query.k == 2 * kUnit ? mma_in_order<kA, kB, 2 * kUnit>
                                : nullptr;
}
inline OpHandler find_mma_in_order(const OpQuery& query) {
  if (query.opcode != Opcode::mma || query.sum != SumMode::seq || query.type != Type::f32 || query.m != 16)
    return nullptr;
  if (query.sparse || query.scale != Type::none || query.n != 8) return nullptr;
  constexpr OpHandler (*kFinders[])(const OpQuery&) = {
      mma_of<Type::f16, Type::f16, 8>,    mma_of<Type::bf16, Type::bf16, 8>,  mma_of<Type::tf32, Type::tf32, 4>,
      mma_of<Type::e4m3, Type::e4m3, 16>, mma_of<Type::e4m3, Type::e5m2, 16>, mma_of<Type::e5m2, Type::e4m3, 16>,
      mma_of<Type::e5m2, Type::e5m2, 16>};
  for (const auto find : kFinders) {
    if (const OpHandler handler = find(query)) return handler;
  }
  return nullptr;
}

}  // namespace
}  // namespace kvscope::ptx::semantics
