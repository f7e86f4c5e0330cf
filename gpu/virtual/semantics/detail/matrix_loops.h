// Matrix products of row-major matrices in the order of mode seq, and the numbers that they multiply. Compiled once per
// instruction set (CMakeLists.txt).
#pragma once

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "gpu/virtual/semantics/detail/float_bits.h"
#include "gpu/virtual/semantics/detail/fp8.h"

namespace kvscope::ptx::semantics {
namespace {

#if defined(__AVX2__)
inline constexpr int kVector = 8;
#else
inline constexpr int kVector = 4;
#endif
typedef float FloatVector __attribute__((vector_size(4 * kVector)));
typedef float Four __attribute__((vector_size(16)));

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
inline constexpr float kLeastExact = 0x1p-50f, kMostExact = 0x1p50f;
inline bool has_exact_products(const float* numbers, int count) {
  const u32 least = bits_as<u32>(kLeastExact), range = bits_as<u32>(kMostExact) - least;
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

}  // namespace
}  // namespace kvscope::ptx::semantics
