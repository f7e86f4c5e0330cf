// Matrix products in the order of mode seq: a plain loop of k, and mma.m16n8k8 and m16n8k16 of f16 and bf16 without any
// rearrangement. Included by matrix_baseline.cpp, matrix_avx2.cpp, matrix_avx512.cpp.
//
// The registers of the fragments, g = lane / 4, t = lane % 4, each word two numbers of neighbouring k:
//
//   A register r    lane (g,t): row g + 8 (r % 2), k = 2t, 2t+1 (+ 8 for r >= 2)
//   B register r    lane (g,t): column g, k = 2t, 2t+1 (+ 8 r)
//   D register i    lane (g,t): row g + 8 (i / 2), column 2t + i % 2
//
// For one k, lane (g,t) of D wants A's number of lane (g, k/2), which stands in its own group of four lanes: a shuffle
// inside 128 bits; and B's numbers of columns 2t and 2t+1, the same for every g: four numbers, repeated.
#pragma once

#include "core/ptx/rows/float_bits.h"

namespace kvscope::ptx::rows {
namespace {

inline void product_in_order(int m, int n, int k, const float* a, const float* b, float* d) {
  for (int i = 0; i < m; ++i) {
    float* __restrict row_d = d + i * n;
    for (int x = 0; x < k; ++x) {
      const float a_ix = a[i * k + x];
      const float* __restrict row_b = b + x * n;
      for (int j = 0; j < n; ++j) row_d[j] += a_ix * row_b[j];
    }
    for (int j = 0; j < n; ++j) row_d[j] = canonical(row_d[j]);
  }
}

#if defined(__AVX512F__)
inline constexpr int kVector = 16;
#elif defined(__AVX2__)
inline constexpr int kVector = 8;
#else
inline constexpr int kVector = 4;
#endif
inline constexpr int kVectors = kLanes / kVector;  // that make a row
typedef float FloatVector __attribute__((vector_size(4 * kVector)));
typedef u32 WordVector __attribute__((vector_size(4 * kVector)));
typedef float Four __attribute__((vector_size(16)));

// The number of lane 4 (lane / 4) + kFrom, in all lanes.
template <int kFrom>
inline FloatVector from_group(FloatVector x) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(x, x, kFrom, kFrom, kFrom, kFrom, kFrom + 4, kFrom + 4, kFrom + 4, kFrom + 4, kFrom + 8,
                                 kFrom + 8, kFrom + 8, kFrom + 8, kFrom + 12, kFrom + 12, kFrom + 12, kFrom + 12);
#elif defined(__AVX2__)
  return __builtin_shufflevector(x, x, kFrom, kFrom, kFrom, kFrom, kFrom + 4, kFrom + 4, kFrom + 4, kFrom + 4);
#else
  return __builtin_shufflevector(x, x, kFrom, kFrom, kFrom, kFrom);
#endif
}
inline FloatVector repeated(Four x) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(x, x, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
#elif defined(__AVX2__)
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

template <int kPair>
[[gnu::always_inline]] inline void add_products_of(const float (&a)[2][2][kLanes], const float (&b)[2][kLanes],
                                                   int vector, FloatVector (&d)[4]) {
  for (int upper = 0; upper < 2; ++upper) {  // k = 2 kPair, then 2 kPair + 1
    const float* x = b[upper] + kPair;
    const FloatVector even = repeated(Four{x[0], x[8], x[16], x[24]});   // columns 0 2 4 6: lanes (0,p) (2,p) ...
    const FloatVector odd = repeated(Four{x[4], x[12], x[20], x[28]});  // columns 1 3 5 7
    for (int half = 0; half < 2; ++half) {
      FloatVector rows_of_a;
      __builtin_memcpy(&rows_of_a, a[half][upper] + kVector * vector, sizeof rows_of_a);
      const FloatVector number = from_group<kPair>(rows_of_a);
      d[2 * half] = d[2 * half] + number * even;
      d[2 * half + 1] = d[2 * half + 1] + number * odd;
    }
  }
}

// List: d0..d3, a0..a(2 kSteps - 1), b0..b(kSteps - 1), c0..c3; kSteps eights of k.
template <bool kBrain, int kSteps>
void mma_in_order(std::byte* rows, const Op& op, LaneMask lanes) {
  alignas(64) float a[kSteps][2][2][kLanes];  // [step, row half, lower or upper of a word, lane]
  alignas(64) float b[kSteps][2][kLanes];
  const u32* list = op.list;
  for (int s = 0; s < kSteps; ++s) {
    for (int half = 0; half < 2; ++half) widen<kBrain>(rows + list[4 + 2 * s + half], a[s][half][0], a[s][half][1]);
    widen<kBrain>(rows + list[4 + 2 * kSteps + s], b[s][0], b[s][1]);
  }
  const u32* c = list + 4 + 3 * kSteps;
  alignas(64) float result[4][kLanes];
  for (int v = 0; v < kVectors; ++v) {
    FloatVector d[4];
    for (int i = 0; i < 4; ++i) __builtin_memcpy(&d[i], rows + c[i] + 4 * kVector * v, sizeof d[i]);
    for (int s = 0; s < kSteps; ++s) {
      add_products_of<0>(a[s], b[s], v, d);
      add_products_of<1>(a[s], b[s], v, d);
      add_products_of<2>(a[s], b[s], v, d);
      add_products_of<3>(a[s], b[s], v, d);
    }
    for (int i = 0; i < 4; ++i) __builtin_memcpy(result[i] + kVector * v, &d[i], sizeof d[i]);
  }
  for (int i = 0; i < 4; ++i) {
    const float* from = result[i];
    store_lanes<float>(row<float>(rows, list[i]), lanes, [from](int lane) { return canonical(from[lane]); });
  }
}

inline RowHandler find_mma_in_order(const Ask& ask) {
  if (ask.opcode != Opcode::mma || ask.sum != SumMode::seq || ask.type != Type::f32 || ask.m != 16) return nullptr;
  if (ask.type2 != ask.type3 || ask.n != 8 || (ask.k != 8 && ask.k != 16)) return nullptr;
  if (ask.type2 == Type::bf16) return ask.k == 8 ? mma_in_order<true, 1> : mma_in_order<true, 2>;
  if (ask.type2 == Type::f16) return ask.k == 8 ? mma_in_order<false, 1> : mma_in_order<false, 2>;
  return nullptr;
}

}  // namespace
}  // namespace kvscope::ptx::rows
