// Vectors of W doubles, W = 1, 2, 4, 8: a double, SSE2, AVX2, AVX-512. For code that is compiled once per instruction
// set (kvscope_each_instruction_set in CMakeLists.txt) with equal results: each operation rounds as on doubles.
// Everything is in an unnamed namespace and calls nothing of the standard library: an inline function compiled with
// AVX-512 must not become the copy that the linker keeps for the whole program.
// Example: Lanes<4>::load(p) + Lanes<4>::load(q) is p[0] + q[0] to p[3] + q[3].
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace kvscope {
namespace {

// The widest of them that the instruction set has.
#if defined(__AVX512F__)
constexpr int kWidestLanes = 8;
#elif defined(__AVX2__)
constexpr int kWidestLanes = 4;
#else
constexpr int kWidestLanes = 2;
#endif

// Written as specializations, because g++ 12 ignores the attribute on a dependent size.
template <int W>
struct LaneTypes;
template <>
struct LaneTypes<1> {
  typedef double Vec;
  typedef long long Bits;
  typedef int Ints;
  typedef unsigned long long UnsignedBits;
};
template <>
struct LaneTypes<2> {
  typedef double Vec __attribute__((vector_size(16)));
  typedef long long Bits __attribute__((vector_size(16)));
  typedef int Ints __attribute__((vector_size(8)));
  typedef unsigned long long UnsignedBits __attribute__((vector_size(16)));
};
template <>
struct LaneTypes<4> {
  typedef double Vec __attribute__((vector_size(32)));
  typedef long long Bits __attribute__((vector_size(32)));
  typedef int Ints __attribute__((vector_size(16)));
  typedef unsigned long long UnsignedBits __attribute__((vector_size(32)));
};
template <>
struct LaneTypes<8> {
  typedef double Vec __attribute__((vector_size(64)));
  typedef long long Bits __attribute__((vector_size(64)));
  typedef int Ints __attribute__((vector_size(32)));
  typedef unsigned long long UnsignedBits __attribute__((vector_size(64)));
};

template <int W>
struct Lanes : LaneTypes<W> {
  using typename LaneTypes<W>::Vec;
  using typename LaneTypes<W>::Bits;

  static Vec load(const double* p) {
    Vec x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(double* p, Vec x) { __builtin_memcpy(p, &x, sizeof x); }

  // The bits of x, and the numbers of those bits.
  static Bits bits(Vec x) {
    Bits b;
    __builtin_memcpy(&b, &x, sizeof b);
    return b;
  }
  static Vec number(Bits b) {
    Vec x;
    __builtin_memcpy(&x, &b, sizeof x);
    return x;
  }

  // The square root of a number from 0 to 10^6, times `factor`, in single precision, cut off toward zero. The root of
  // a double takes three times as long.
  static typename LaneTypes<W>::Ints coarse_root(Vec x, float factor) {
    if constexpr (W == 1) {
      return static_cast<int>(__builtin_sqrtf(static_cast<float>(x)) * factor);
#if defined(__AVX512F__)
    } else if constexpr (W == 8) {
      const __m256 root = _mm256_sqrt_ps(_mm512_maskz_cvtpd_ps(0xff, (__m512d)x));
      return __builtin_convertvector(root * factor, typename LaneTypes<W>::Ints);
#endif
#if defined(__AVX2__)
    } else if constexpr (W == 4) {
      const __m128 root = _mm_sqrt_ps(_mm256_cvtpd_ps((__m256d)x));
      return __builtin_convertvector(root * factor, typename LaneTypes<W>::Ints);
#endif
    } else {
      typename LaneTypes<W>::Ints result;
      for (int i = 0; i < W; ++i) result[i] = static_cast<int>(__builtin_sqrtf(static_cast<float>(x[i])) * factor);
      return result;
    }
  }

  // As std::min and std::max: x where the two are not ordered.
  static Vec smaller(Vec x, Vec y) {
    return y < x ? y : x;
  }
  static Vec larger(Vec x, Vec y) {
    return x < y ? y : x;
  }
  // Whether a lane of a comparison, or of several combined with |, is true.
  static bool any(Bits comparison) {
    if constexpr (W == 1) {
      return comparison != 0;
    } else {
      long long result = 0;
      for (int i = 0; i < W; ++i) result |= comparison[i];
      return result != 0;
    }
  }
  static Vec magnitude(Vec x) {
    return number(bits(x) & 0x7fffffffffffffffll);
  }
  // The power of two at or below |x|: x without its sign and its fraction. 0 for zero and subnormal numbers.
  static Vec power_below(Vec x) {
    return number(bits(x) & 0x7ff0000000000000ll);
  }

  static Vec root(Vec x) {
    if constexpr (W == 1) {
      return __builtin_sqrt(x);
#if defined(__SSE2__)
    } else if constexpr (W == 2) {
      return (Vec)_mm_sqrt_pd((__m128d)x);
#endif
#if defined(__AVX2__)
    } else if constexpr (W == 4) {
      return (Vec)_mm256_sqrt_pd((__m256d)x);
#endif
#if defined(__AVX512F__)
    } else if constexpr (W == 8) {
      return (Vec)_mm512_maskz_sqrt_pd(0xff, (__m512d)x);  // the other form warns in g++ 12
#endif
    } else {
      Vec result;
      for (int i = 0; i < W; ++i) result[i] = __builtin_sqrt(x[i]);
      return result;
    }
  }

  // sqrt(x^2 + y^2 + z^2) of three numbers that are at least 0, scaled by a power of two so that the squares neither
  // overflow nor vanish. Within 3 units in the last place.
  static Vec length(Vec x, Vec y, Vec z) {
    const Vec power = power_below(larger(larger(x, y), z));
    const Vec inverse = number(0x7fe0000000000000ll - bits(power));
    const Vec a = x * inverse, b = y * inverse, c = z * inverse;
    return root(a * a + b * b + c * c) * power;
  }
};

}  // namespace
}  // namespace kvscope
