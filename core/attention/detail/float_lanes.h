// Vectors of W floats for the loops of the fast path, and how elements of each stored type become such vectors. W = 4,
// 8, 16 are SSE2, AVX2 and AVX-512. Included by one source file per instruction set, under the same rules as
// reference_loops.h.
//
// A row is read in steps of two vectors, 2 W elements. bf16 elements are the upper halves of floats, so a step is one
// load, and the vectors are its even and its odd elements:
//
//   stored   x0 x1 x2 x3 ...      half 0   x0 x2 x4 ...      half 1   x1 x3 x5 ...
//
// The halves of all other types are the first and the last W elements.
#pragma once

#include "core/attention/detail/reference_loops.h"

namespace kvscope::attention {
namespace {

#define KVSCOPE_INLINED __attribute__((always_inline))  // for a lambda, after its parameters

template <int I>
struct Index {
  static constexpr int value = I;
};
// Calls per_index(Index<0>()) to per_index(Index<N - 1>()). The indices are constants before the compiler decides which
// arrays it keeps in registers, unlike those of a loop.
template <int N, class F>
[[gnu::always_inline]] inline void unrolled(const F& per_index) {
  if constexpr (N > 0) {
    unrolled<N - 1>(per_index);
    per_index(Index<N - 1>{});
  }
}

template <int W>
struct FloatLanes;
template <>
struct FloatLanes<4> {
  typedef float Vec __attribute__((vector_size(16)));
  typedef int Bits __attribute__((vector_size(16)));
  typedef unsigned UnsignedBits __attribute__((vector_size(16)));
  typedef float Half __attribute__((vector_size(8)));
  typedef unsigned short Shorts __attribute__((vector_size(8)));
  typedef unsigned char Bytes __attribute__((vector_size(4)));
  static bool any(Bits x) { return (x[0] | x[1] | x[2] | x[3]) != 0; }
};
template <>
struct FloatLanes<8> {
  typedef float Vec __attribute__((vector_size(32)));
  typedef int Bits __attribute__((vector_size(32)));
  typedef unsigned UnsignedBits __attribute__((vector_size(32)));
  typedef float Half __attribute__((vector_size(16)));
  typedef unsigned short Shorts __attribute__((vector_size(16)));
  typedef unsigned char Bytes __attribute__((vector_size(8)));
#if defined(__AVX2__)
  // Whether a lane of a comparison is true.
  static bool any(Bits x) {
    return _mm256_movemask_ps((__m256)x) != 0;
  }
#endif
};
template <>
struct FloatLanes<16> {
  typedef float Vec __attribute__((vector_size(64)));
  typedef int Bits __attribute__((vector_size(64)));
  typedef unsigned UnsignedBits __attribute__((vector_size(64)));
  typedef float Half __attribute__((vector_size(32)));
  typedef unsigned short Shorts __attribute__((vector_size(32)));
  typedef unsigned char Bytes __attribute__((vector_size(16)));
#if defined(__AVX512F__)
  // Whether a lane of a comparison is true.
  static bool any(Bits x) {
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) != 0;
  }
#endif
};

// Templates, so that only the widths of an instruction set are compiled for it.
template <int W>
typename FloatLanes<W>::Half low_half(typename FloatLanes<W>::Vec x) {
  if constexpr (W == 4) return __builtin_shufflevector(x, x, 0, 1);
  if constexpr (W == 8) return __builtin_shufflevector(x, x, 0, 1, 2, 3);
  if constexpr (W == 16) return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
}
template <int W>
typename FloatLanes<W>::Half high_half(typename FloatLanes<W>::Vec x) {
  if constexpr (W == 4) return __builtin_shufflevector(x, x, 2, 3);
  if constexpr (W == 8) return __builtin_shufflevector(x, x, 4, 5, 6, 7);
  if constexpr (W == 16) return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
}
template <int W>
typename FloatLanes<W>::Vec join_halves(typename FloatLanes<W>::Half a, typename FloatLanes<W>::Half b) {
  if constexpr (W == 4) return __builtin_shufflevector(a, b, 0, 1, 2, 3);
  if constexpr (W == 8) return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
  if constexpr (W == 16) return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
// Half of a vector as doubles. g++ 12 splits the conversion of eight floats.
template <int W>
typename Lanes<W / 2>::Vec as_doubles(typename FloatLanes<W>::Half x) {
#if defined(__AVX512F__)
  if constexpr (W == 16) return _mm512_maskz_cvtps_pd(0xff, x);
#endif
  return __builtin_convertvector(x, typename Lanes<W / 2>::Vec);
}
template <int W>
typename FloatLanes<W>::Half as_floats(typename Lanes<W / 2>::Vec x) {
#if defined(__AVX512F__)
  if constexpr (W == 16) return _mm512_maskz_cvtpd_ps(0xff, x);
#endif
  return __builtin_convertvector(x, typename FloatLanes<W>::Half);
}
// a0 b0 a1 b1 ..., the first and the last W.
template <int W>
typename FloatLanes<W>::Vec interleave_low(typename FloatLanes<W>::Vec a, typename FloatLanes<W>::Vec b) {
  if constexpr (W == 4) return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  if constexpr (W == 8) return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  if constexpr (W == 16) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
}
template <int W>
typename FloatLanes<W>::Vec interleave_high(typename FloatLanes<W>::Vec a, typename FloatLanes<W>::Vec b) {
  if constexpr (W == 4) return __builtin_shufflevector(a, b, 2, 6, 3, 7);
  if constexpr (W == 8) return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  if constexpr (W == 16) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}

template <class V>
V loaded(const void* p) {
  V x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}

template <int W>
struct F32Rows {
  using Vec = typename FloatLanes<W>::Vec;
  static constexpr std::int64_t kBytes = 4;  // of an element
  static constexpr bool kInterleaved = false;
  template <int H>
  static Vec half(const std::byte* step) {
    return loaded<Vec>(step + H * sizeof(Vec));
  }
};

template <int W>
struct Bf16Rows {
  using Vec = typename FloatLanes<W>::Vec;
  using UnsignedBits = typename FloatLanes<W>::UnsignedBits;
  static constexpr std::int64_t kBytes = 2;
  static constexpr bool kInterleaved = true;
  template <int H>
  static Vec half(const std::byte* step) {
    const auto pairs = loaded<UnsignedBits>(step);
    return H == 0 ? (Vec)(pairs << 16) : (Vec)(pairs & 0xffff0000U);
  }
};

// Floats with a sign, E bits of exponent and M of mantissa. The magnitude is moved to a float's places; the difference
// of the biases is added to the exponent. A subnormal number is made as 2^(1 - bias) * (1 + mantissa) less
// 2^(1 - bias), exactly: multiplying a subnormal float would be slow. Largest exponent: infinity and NaN, or, without
// infinities (e4m3), NaN where the mantissa is all ones.
template <int W, int E, int M, bool Infinities>
struct SmallFloat {
  using Vec = typename FloatLanes<W>::Vec;
  using Bits = typename FloatLanes<W>::Bits;
  using UnsignedBits = typename FloatLanes<W>::UnsignedBits;
  static constexpr int kBias = (1 << (E - 1)) - 1;
  static constexpr int kMove = (127 - kBias) << 23;

  static Vec value(UnsignedBits stored) {
    const Bits sign = (Bits)((stored >> (E + M)) << 31);
    const Bits fields = (Bits)((stored & ((1U << (E + M)) - 1)) << (23 - M));
    const Bits normal = fields + kMove;
    const Bits smallest = Bits{} + (kMove + (1 << 23));
    const Bits subnormal = (Bits)((Vec)(fields + smallest) - (Vec)smallest);
    const Bits is_subnormal = fields < (1 << 23);
    Bits bits = (subnormal & is_subnormal) | (normal & ~is_subnormal);
    if constexpr (Infinities) {
      bits += (fields >= ((1 << E) - 1) << 23) & (128 - ((1 << E) - 1 - kBias)) << 23;
    } else {
      bits |= (fields == ((1 << (E + M)) - 1) << (23 - M)) & 0x7fc00000;
    }
    return (Vec)(bits | sign);
  }
};

template <int W, class Stored, class Float>
struct SmallFloatRows {
  static constexpr std::int64_t kBytes = sizeof(Stored) / W;
  static constexpr bool kInterleaved = false;
  template <int H>
  static typename FloatLanes<W>::Vec half(const std::byte* step) {
    const auto stored = loaded<Stored>(step + H * sizeof(Stored));
    return Float::value(__builtin_convertvector(stored, typename FloatLanes<W>::UnsignedBits));
  }
};

#if defined(__F16C__)
// f16 elements by the conversion instruction, which is exact, also for subnormals. fp8 elements become f16 first: of
// e5m2, they are the upper bytes; an e4m3 number is moved to the places of an f16, whose exponent is 8 too small:
//
//   s eeee mmm  ->  s 0eeee mmm0000000      NaN, which has no infinity beside it: exponent 31
inline __m256 floats_of(__m128i halves) {
  return _mm256_cvtph_ps(halves);
}
inline __m128i halves_of_e5m2(__m128i bytes) {
  return _mm_slli_epi16(bytes, 8);
}
inline __m128i halves_of_e4m3(__m128i bytes) {
  const __m128i moved = _mm_slli_epi16(bytes, 7);
  const __m128i halves = _mm_add_epi16(moved, _mm_and_si128(moved, _mm_set1_epi16(0x4000)));
  const __m128i largest = _mm_set1_epi16(0x3f80);
  const __m128i nan = _mm_cmpeq_epi16(_mm_and_si128(halves, largest), largest);
  return _mm_or_si128(halves, _mm_and_si128(nan, _mm_set1_epi16(0x7c00)));
}
#if defined(__AVX512F__)
inline __m512 floats_of(__m256i halves) {
  return _mm512_maskz_cvtph_ps(0xffff, halves);  // the other form warns in g++ 12
}
inline __m256i halves_of_e5m2(__m256i bytes) {
  return _mm256_slli_epi16(bytes, 8);
}
inline __m256i halves_of_e4m3(__m256i bytes) {
  const __m256i moved = _mm256_slli_epi16(bytes, 7);
  const __m256i halves = _mm256_add_epi16(moved, _mm256_and_si256(moved, _mm256_set1_epi16(0x4000)));
  const __m256i largest = _mm256_set1_epi16(0x3f80);
  const __m256i nan = _mm256_cmpeq_epi16(_mm256_and_si256(halves, largest), largest);
  return _mm256_or_si256(halves, _mm256_and_si256(nan, _mm256_set1_epi16(0x7c00)));
}
#endif

// The W bytes at `source` as 16-bit numbers.
template <int W>
auto bytes_at(const std::byte* source) {
#if defined(__AVX512F__)
  if constexpr (W == 16) {
    return _mm256_cvtepu8_epi16(loaded<__m128i>(source));
  } else
#endif
  {
    return _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(source)));
  }
}

template <int W>
struct F16Rows {
  static constexpr std::int64_t kBytes = 2;
  static constexpr bool kInterleaved = false;
  template <int H>
  static typename FloatLanes<W>::Vec half(const std::byte* step) {
#if defined(__AVX512F__)
    if constexpr (W == 16) return floats_of(loaded<__m256i>(step + 2 * H * W));
#endif
    if constexpr (W == 8) return floats_of(loaded<__m128i>(step + 2 * H * W));
  }
};
template <int W>
struct E5m2Rows {
  static constexpr std::int64_t kBytes = 1;
  static constexpr bool kInterleaved = false;
  template <int H>
  static typename FloatLanes<W>::Vec half(const std::byte* step) {
    return floats_of(halves_of_e5m2(bytes_at<W>(step + H * W)));
  }
};
template <int W>
struct E4m3Rows {
  static constexpr std::int64_t kBytes = 1;
  static constexpr bool kInterleaved = false;
  template <int H>
  static typename FloatLanes<W>::Vec half(const std::byte* step) {
    return floats_of(halves_of_e4m3(bytes_at<W>(step + H * W))) * 0x1p8F;
  }
};
#else
template <int W>
using F16Rows = SmallFloatRows<W, typename FloatLanes<W>::Shorts, SmallFloat<W, 5, 10, true>>;
template <int W>
using E4m3Rows = SmallFloatRows<W, typename FloatLanes<W>::Bytes, SmallFloat<W, 4, 3, false>>;
template <int W>
using E5m2Rows = SmallFloatRows<W, typename FloatLanes<W>::Bytes, SmallFloat<W, 5, 2, true>>;
#endif

// x * y + z, with one rounding where the instruction set has it.
template <int W>
typename FloatLanes<W>::Vec multiply_add(typename FloatLanes<W>::Vec x, typename FloatLanes<W>::Vec y,
                                         typename FloatLanes<W>::Vec z) {
#if defined(__AVX512F__)
  if constexpr (W == 16) return _mm512_fmadd_ps(x, y, z);
#elif defined(__FMA__)
  if constexpr (W == 8) return _mm256_fmadd_ps(x, y, z);
#endif
  return z + x * y;
}

template <int W>
typename FloatLanes<W>::Vec all_lanes(float x) {
  return x - typename FloatLanes<W>::Vec{};  // unlike an addition of 0, this changes no -0 and is a broadcast
}

// Zero that the compiler does not know: it would clear an array of sums in memory, although the sums are in registers.
template <int W>
typename FloatLanes<W>::Vec unknown_zero() {
  typename FloatLanes<W>::Vec zero = {};
  asm("" : "+x"(zero));
  return zero;
}

// Sixteen lanes in 16 / W vectors: lanes i and i + 8 are added first, then i and i + 4, i + 2, i + 1.
template <int W>
float fold_lanes(const typename FloatLanes<W>::Vec* parts) {
  float lane[16];
  __builtin_memcpy(lane, parts, sizeof lane);
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

// The same of sixteen vectors of sixteen lanes: lane i of the result is the sum of x[i]. Each level adds two vectors
// into one; the lanes that it keeps of the first are below, or before, those of the second:
//
//   level 1   a b -> [ a0+a8 .. a7+a15 | b8+b0 .. b15+b7 ]     of x[i] and x[i + 8]
//   level 2   the same within halves, of the results i and i + 4; then within quarters, then within pairs
//
// One operand of each addition is a blend, which has more execution units than a shuffle.
template <int W>
[[gnu::always_inline]] inline typename FloatLanes<W>::Vec fold_sixteen(const typename FloatLanes<W>::Vec* x) {
  static_assert(W == 16);
  using Vec = typename FloatLanes<W>::Vec;
  Vec halves[8], quarters[4], pairs[2];
  unrolled<8>([&](auto index) KVSCOPE_INLINED {
    constexpr int i = decltype(index)::value;
    const Vec a = x[i], b = x[i + 8];
    halves[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 26, 27, 28, 29, 30, 31) +
                __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23);
  });
  unrolled<4>([&](auto index) KVSCOPE_INLINED {
    constexpr int i = decltype(index)::value;
    const Vec a = halves[i], b = halves[i + 4];
    quarters[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 20, 21, 22, 23, 8, 9, 10, 11, 28, 29, 30, 31) +
                  __builtin_shufflevector(a, b, 4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
  });
  unrolled<2>([&](auto index) KVSCOPE_INLINED {
    constexpr int i = decltype(index)::value;
    const Vec a = quarters[i], b = quarters[i + 2];
    pairs[i] = __builtin_shufflevector(a, b, 0, 1, 18, 19, 4, 5, 22, 23, 8, 9, 26, 27, 12, 13, 30, 31) +
               __builtin_shufflevector(a, b, 2, 3, 16, 17, 6, 7, 20, 21, 10, 11, 24, 25, 14, 15, 28, 29);
  });
  const Vec a = pairs[0], b = pairs[1];
  return __builtin_shufflevector(a, b, 0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10, 27, 12, 29, 14, 31) +
         __builtin_shufflevector(a, b, 1, 16, 3, 18, 5, 20, 7, 22, 9, 24, 11, 26, 13, 28, 15, 30);
}

// The sums of the lanes of each argument.
template <int W>
typename FloatLanes<4>::Vec fold_four(typename FloatLanes<W>::Vec a, typename FloatLanes<W>::Vec b,
                                      typename FloatLanes<W>::Vec c, typename FloatLanes<W>::Vec d) {
  static_assert(W == 16);
  using Vec = typename FloatLanes<W>::Vec;
  const auto two = [](Vec x, Vec y) KVSCOPE_INLINED {  // x02 y02 x13 y13 of each four lanes
    return __builtin_shufflevector(x, y, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
           __builtin_shufflevector(x, y, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  };
  const Vec ab = two(a, b), cd = two(c, d);
  const Vec sum = __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
                  __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  const auto half = low_half<W>(sum) + high_half<W>(sum);
  return low_half<W / 2>(half) + high_half<W / 2>(half);
}

}  // namespace
}  // namespace kvscope::attention
