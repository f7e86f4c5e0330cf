// Matrix products in the order of mode seq: of row-major matrices, and mma.m16n8k8 and m16n8k16 of f16 and bf16 without
// rearranging the fragments. Compiled once per instruction set (CMakeLists.txt).
//
// The registers of the fragments, g = lane / 4, t = lane % 4; each word holds two numbers with adjacent k:
//
//   A register r    lane (g,t): row g + 8 (r % 2), k = 2t, 2t+1 (+ 8 for r >= 2)
//   B register r    lane (g,t): column g, k = 2t, 2t+1 (+ 8 r)
//   D register i    lane (g,t): row g + 8 (i / 2), column 2t + i % 2
//
// For one k, lane (g,t) of D needs A's number from lane (g, k/2), which is in the same group of four lanes: a shuffle
// within 128 bits. It needs B's numbers of columns 2t and 2t+1, the same for each g: four numbers, repeated.
#pragma once

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "gpu/virtual/semantics/detail/float_bits.h"
#include "gpu/virtual/semantics/detail/fp8.h"

namespace kvscope::ptx::semantics {
namespace {

// Eight lanes with AVX-512 as well: sixteen are not faster here, and leave half as many independent sums.
#if defined(__AVX2__)
inline constexpr int kVector = 8;
#else
inline constexpr int kVector = 4;
#endif
inline constexpr int kVectors = kLanes / kVector;  // vectors per row
inline constexpr int kTogether = 2;                // vectors processed together: the additions of one sum are dependent
typedef float FloatVector __attribute__((vector_size(4 * kVector)));
typedef u32 WordVector __attribute__((vector_size(4 * kVector)));
typedef float Four __attribute__((vector_size(16)));

// The number of lane 4 (lane / 4) + kFrom, broadcast to the four lanes of each group.
template <int kFrom>
inline FloatVector from_group(FloatVector x) {
#if defined(__AVX2__)
  return __builtin_shufflevector(x, x, kFrom, kFrom, kFrom, kFrom, kFrom + 4, kFrom + 4, kFrom + 4, kFrom + 4);
#else
  return __builtin_shufflevector(x, x, kFrom, kFrom, kFrom, kFrom);
#endif
}
inline FloatVector repeated(Four x) {
#if defined(__AVX2__)
  return __builtin_shufflevector(x, x, 0, 1, 2, 3, 0, 1, 2, 3);
#else
  return x;
#endif
}

// The lower and the upper number of each word.
template <bool kBrain>
inline void widen(const std::byte* words, float* lower, float* upper) {
  const u32* w = static_cast<const Cell<u32>*>(__builtin_assume_aligned(words, 64));
  KVSCOPE_LANES
  for (int i = 0; i < kLanes; ++i) {
    if constexpr (kBrain) {
      lower[i] = bits_as<float>(w[i] << 16);
      upper[i] = bits_as<float>(w[i] & 0xffff0000u);
    } else {
      lower[i] = f16_to_f32(static_cast<u16>(w[i]));
      upper[i] = f16_to_f32(static_cast<u16>(w[i] >> 16));
    }
  }
}

// B for eight k in the order of D's lanes: for pair p of k, lower and upper, four numbers of even columns and four of
// odd columns.
struct Columns {
  Four even[4][2];
  Four odd[4][2];
};
// Transposes four rows of four, eight numbers apart.
inline void transpose(const float* x, Four& c0, Four& c1, Four& c2, Four& c3) {
  Four r[4];
  for (int i = 0; i < 4; ++i) __builtin_memcpy(&r[i], x + 8 * i, sizeof r[i]);
  const Four a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  const Four b = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  const Four c = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const Four d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  c0 = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  c1 = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  c2 = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  c3 = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

template <int kPair>
[[gnu::always_inline]] inline void add_products_of(const float (&a)[2][2][kLanes], const Columns& b, int vector,
                                                   FloatVector (&d)[kTogether][4]) {
#pragma GCC unroll 2
  for (int upper = 0; upper < 2; ++upper) {  // k = 2 kPair, then 2 kPair + 1
    const FloatVector even = repeated(b.even[kPair][upper]);
    const FloatVector odd = repeated(b.odd[kPair][upper]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 2
      for (int t = 0; t < kTogether; ++t) {
        FloatVector rows_of_a;
        __builtin_memcpy(&rows_of_a, a[half][upper] + kVector * (vector + t), sizeof rows_of_a);
        const FloatVector number = from_group<kPair>(rows_of_a);
        d[t][2 * half] = d[t][2 * half] + number * even;
        d[t][2 * half + 1] = d[t][2 * half + 1] + number * odd;
      }
    }
  }
}

// List: d0..d3, a0..a(2 kSteps - 1), b0..b(kSteps - 1), c0..c3; kSteps groups of eight k.
template <bool kBrain, int kSteps>
void mma_in_order(std::byte* registers, const Op& op, LaneMask lanes) {
  alignas(64) float a[kSteps][2][2][kLanes];  // [step, row half, lower or upper of a word, lane]
  alignas(64) Columns b[kSteps];
  const u32* list = op.list;
  for (int s = 0; s < kSteps; ++s) {
    for (int half = 0; half < 2; ++half)
      widen<kBrain>(registers + list[4 + 2 * s + half], a[s][half][0], a[s][half][1]);
    alignas(64) float numbers[2][kLanes];
    widen<kBrain>(registers + list[4 + 2 * kSteps + s], numbers[0], numbers[1]);
    for (int upper = 0; upper < 2; ++upper) {  // column n of B is row n of the register
      transpose(numbers[upper], b[s].even[0][upper], b[s].even[1][upper], b[s].even[2][upper], b[s].even[3][upper]);
      transpose(numbers[upper] + 4, b[s].odd[0][upper], b[s].odd[1][upper], b[s].odd[2][upper], b[s].odd[3][upper]);
    }
  }
  const u32* c = list + 4 + 3 * kSteps;
  alignas(64) float result[4][kLanes];
  for (int v = 0; v < kVectors; v += kTogether) {
    FloatVector d[kTogether][4];
    for (int t = 0; t < kTogether; ++t) {
      for (int i = 0; i < 4; ++i) __builtin_memcpy(&d[t][i], registers + c[i] + 4 * kVector * (v + t), sizeof d[t][i]);
    }
    for (int s = 0; s < kSteps; ++s) {
      add_products_of<0>(a[s], b[s], v, d);
      add_products_of<1>(a[s], b[s], v, d);
      add_products_of<2>(a[s], b[s], v, d);
      add_products_of<3>(a[s], b[s], v, d);
    }
    for (int t = 0; t < kTogether; ++t) {
      for (int i = 0; i < 4; ++i) __builtin_memcpy(result[i] + kVector * (v + t), &d[t][i], sizeof d[t][i]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    if (list[i] == kNoRegister) continue;  // _
    const float* from = result[i];
    store_lanes<float>(register_of<float>(registers, list[i]), lanes,
                       [from](int lane) { return canonical(from[lane]); });
  }
}

// --- row-major matrices ----------------------------------------------------------------------------------------------

#if defined(__AVX512F__)
typedef float WideVector __attribute__((vector_size(64)));
#else
typedef FloatVector WideVector;
#endif

// sum + a b. A fused operation rounds once; it gives the same bits if the product is exact.
template <bool kFused, class Vector>
[[gnu::always_inline]] inline Vector plus_product(Vector sum, float a, Vector b) {
#if defined(__AVX512F__)
  if constexpr (kFused && sizeof(Vector) == 64)
    return Vector(_mm512_fmadd_ps(_mm512_set1_ps(a), __m512(b), __m512(sum)));
#endif
#if defined(__FMA__)
  if constexpr (kFused && sizeof(Vector) == 32)
    return Vector(_mm256_fmadd_ps(_mm256_set1_ps(a), __m256(b), __m256(sum)));
#endif
  return sum + a * b;
}

// kRows rows and kWidth vectors of D in registers, over all k.
template <bool kFused, class Vector, int kRows, int kWidth>
void add_block(int n, int k, const float* a, const float* b, float* d) {
  constexpr int kLength = sizeof(Vector) / sizeof(float);
  Vector sum[kRows][kWidth];
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kWidth; ++v) __builtin_memcpy(&sum[i][v], d + i * n + v * kLength, sizeof(Vector));
  }
  for (int x = 0; x < k; ++x) {
    Vector row_b[kWidth];
    for (int v = 0; v < kWidth; ++v) __builtin_memcpy(&row_b[v], b + x * n + v * kLength, sizeof(Vector));
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kWidth; ++v) sum[i][v] = plus_product<kFused>(sum[i][v], a[i * k + x], row_b[v]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kWidth; ++v) __builtin_memcpy(d + i * n + v * kLength, &sum[i][v], sizeof(Vector));
  }
}
template <bool kFused, class Vector, int kWidth>
void add_columns(int m, int n, int k, const float* a, const float* b, float* d) {
  constexpr int kRows = 4;
  int i = 0;
  for (; i + kRows <= m; i += kRows) add_block<kFused, Vector, kRows, kWidth>(n, k, a + i * k, b, d + i * n);
  for (; i < m; ++i) add_block<kFused, Vector, 1, kWidth>(n, k, a + i * k, b, d + i * n);
}
template <bool kFused>
void add_product(int m, int n, int k, const float* a, const float* b, float* d) {
  constexpr int kWidth = sizeof(WideVector) == 64 ? 4 : 2;  // with four rows: 16 of 32 registers, or 8 of 16, hold sums
  constexpr int kLength = sizeof(WideVector) / sizeof(float);
  int j = 0;
  for (; j + kWidth * kLength <= n; j += kWidth * kLength)
    add_columns<kFused, WideVector, kWidth>(m, n, k, a, b + j, d + j);
  for (; j + kLength <= n; j += kLength) add_columns<kFused, WideVector, 1>(m, n, k, a, b + j, d + j);
  for (; j + kVector <= n; j += kVector) add_columns<kFused, FloatVector, 1>(m, n, k, a, b + j, d + j);
  for (; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      for (int x = 0; x < k; ++x) d[i * n + j] += a[i * k + x] * b[x * n + j];
    }
  }
}

// Whether the product of any two of these numbers, with at most 12 significant bits each, is exact in f32: each is 0 or
// between 2^-50 and 2^50.
inline bool has_exact_products(const float* numbers, int count) {
  const u32 least = bits_as<u32>(0x1p-50f), range = bits_as<u32>(0x1p50f) - least;
  u32 outside = 0;
  for (int i = 0; i < count; ++i) {
    const u32 magnitude = bits_as<u32>(numbers[i]) & 0x7fffffffu;
    outside |= static_cast<u32>(magnitude - least > range) & static_cast<u32>(magnitude != 0);
  }
  return outside == 0;
}

inline void product_in_order(int m, int n, int k, const float* a, const float* b, float* d) {
#if defined(__FMA__)
  const bool fused = has_exact_products(a, m * k) && has_exact_products(b, k * n);
#else
  const bool fused = false;
#endif
  (fused ? add_product<true> : add_product<false>)(m, n, k, a, b, d);
  for (int i = 0; i < m * n; ++i) d[i] = canonical(d[i]);
}

inline void decode_numbers(Type type, const std::byte* from, int count, float* to) {
  typedef u16 AnyU16 __attribute__((may_alias, aligned(1)));
  typedef u32 AnyU32 __attribute__((may_alias, aligned(1)));
  const auto* bytes = reinterpret_cast<const Cell<u8>*>(from);
  const auto* halves = reinterpret_cast<const AnyU16*>(from);
  const auto* words = reinterpret_cast<const AnyU32*>(from);
  switch (type) {
    case Type::f16:
      for (int i = 0; i < count; ++i) to[i] = f16_to_f32(halves[i]);
      return;
    case Type::bf16:
      for (int i = 0; i < count; ++i) to[i] = bf16_to_f32(halves[i]);
      return;
    case Type::e4m3:
      for (int i = 0; i < count; ++i) to[i] = e4m3_to_f32(bytes[i]);
      return;
    case Type::e5m2:
      for (int i = 0; i < count; ++i) to[i] = e5m2_to_f32(bytes[i]);
      return;
    case Type::e2m3:
      for (int i = 0; i < count; ++i) to[i] = e2m3_to_f32(bytes[i]);
      return;
    case Type::e3m2:
      for (int i = 0; i < count; ++i) to[i] = e3m2_to_f32(bytes[i]);
      return;
    case Type::e2m1:
      for (int i = 0; i < count; ++i) to[i] = e2m1_to_f32(static_cast<u8>(bytes[i / 2] >> (4 * (i % 2))));
      return;
    case Type::tf32:
      for (int i = 0; i < count; ++i) to[i] = bits_as<float>(words[i] & 0xffffe000u);
      return;
    default:
      for (int i = 0; i < count; ++i) to[i] = bits_as<float>(words[i]);
      return;
  }
}

inline OpHandler find_mma_in_order(const OpQuery& query) {
  if (query.opcode != Opcode::mma || query.sum != SumMode::seq || query.type != Type::f32 || query.m != 16)
    return nullptr;
  if (query.sparse || query.type2 != query.type3 || query.n != 8 || (query.k != 8 && query.k != 16)) return nullptr;
  if (query.type2 == Type::bf16) return query.k == 8 ? mma_in_order<true, 1> : mma_in_order<true, 2>;
  if (query.type2 == Type::f16) return query.k == 8 ? mma_in_order<false, 1> : mma_in_order<false, 2>;
  return nullptr;
}

}  // namespace
}  // namespace kvscope::ptx::semantics
