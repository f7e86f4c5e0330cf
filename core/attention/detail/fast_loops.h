// The loops of the fast path (fast.h): sums of float in sixteen lanes, in vectors of W floats: W = 4, 8, 16 are SSE2,
// AVX2 and AVX-512. The number of additions of each sum and their tree are the same for all W; AVX2 and AVX-512 fuse
// multiplications and additions, so the last digits differ. Included by one source file per instruction set, under the
// same rules as reference_loops.h.
#pragma once

#include "core/attention/detail/reference_loops.h"

namespace kvscope::attention {
namespace {

template <int W>
struct FloatLanes;
template <>
struct FloatLanes<4> {
  typedef float Vec __attribute__((vector_size(16)));
  typedef int Bits __attribute__((vector_size(16)));
  typedef float Half __attribute__((vector_size(8)));
  typedef unsigned short Narrow __attribute__((vector_size(8)));
  typedef unsigned Wide __attribute__((vector_size(16)));
};
template <>
struct FloatLanes<8> {
  typedef float Vec __attribute__((vector_size(32)));
  typedef int Bits __attribute__((vector_size(32)));
  typedef float Half __attribute__((vector_size(16)));
  typedef unsigned short Narrow __attribute__((vector_size(16)));
  typedef unsigned Wide __attribute__((vector_size(32)));
};
template <>
struct FloatLanes<16> {
  typedef float Vec __attribute__((vector_size(64)));
  typedef int Bits __attribute__((vector_size(64)));
  typedef float Half __attribute__((vector_size(32)));
  typedef unsigned short Narrow __attribute__((vector_size(32)));
  typedef unsigned Wide __attribute__((vector_size(64)));
};

template <int W>
struct FastLoops {
  using Vec = typename FloatLanes<W>::Vec;
  using Bits = typename FloatLanes<W>::Bits;
  static constexpr int kParts = 16 / W;  // vectors that make sixteen lanes

  static Vec load(const float* p) {
    Vec x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }

  static Vec all(float x) { return x - Vec{}; }  // unlike an addition of 0, this changes no -0 and is a broadcast

  static Vec multiply_add(Vec x, Vec y, Vec z) {
#if defined(__AVX512F__)
    if constexpr (W == 16) return _mm512_fmadd_ps(x, y, z);
#elif defined(__FMA__)
    if constexpr (W == 8) return _mm256_fmadd_ps(x, y, z);
#endif
    return z + x * y;
  }

  static void widen_f32(const std::byte* source, std::int64_t count, float* target) {
    __builtin_memcpy(target, source, static_cast<std::size_t>(4 * count));
  }

  static void widen_bf16(const std::byte* source, std::int64_t count, float* target) {
    std::int64_t i = 0;
    for (; i + W <= count; i += W) {
      typename FloatLanes<W>::Narrow x;
      __builtin_memcpy(&x, source + 2 * i, sizeof x);
      const auto bits = __builtin_convertvector(x, typename FloatLanes<W>::Wide) << 16;
      __builtin_memcpy(target + i, &bits, sizeof bits);
    }
    for (; i < count; ++i) {
      std::uint16_t half;
      __builtin_memcpy(&half, source + 2 * i, sizeof half);
      const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
      __builtin_memcpy(target + i, &bits, sizeof bits);
    }
  }

  static void widen_f16(const std::byte* source, std::int64_t count, float* target) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint16_t half;
      __builtin_memcpy(&half, source + 2 * i, sizeof half);
      target[i] = f16_as_float(half);
    }
  }

  // Lanes i and i + 8 are added first, then i and i + 4, i + 2, i + 1.
  static double fold(const Vec* parts) {
    float lane[16];
    __builtin_memcpy(lane, parts, sizeof lane);
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
    }
    return static_cast<double>(lane[0]);
  }

  // The same of eight vectors; element i is argument i. W = 16.
  static typename FloatLanes<8>::Vec fold_eight(Vec a, Vec b, Vec c, Vec d, Vec e, Vec f, Vec g, Vec h) {
    const Vec first = fold_quarters(fold_half(a, b), fold_half(c, d));
    const Vec second = fold_quarters(fold_half(e, f), fold_half(g, h));
    const Vec pairs =
        __builtin_shufflevector(first, second, 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) +
        __builtin_shufflevector(first, second, 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31);
    return __builtin_shufflevector(pairs, pairs, 0, 2, 4, 6, 8, 10, 12, 14) +
           __builtin_shufflevector(pairs, pairs, 1, 3, 5, 7, 9, 11, 13, 15);
  }
  static Vec fold_half(Vec a, Vec b) {  // eight lanes of each
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
           __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  }
  static Vec fold_quarters(Vec a, Vec b) {  // four lanes of each of four
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
           __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }

  // sums[r * T + t] = dot(q[r], k[t]).
  template <int R, int T>
  static void dots_tile(const float* q, const float* k, std::int64_t padded, double* sums) {
    Vec sum[R * T][kParts];
    for (int i = 0; i < R * T * kParts; ++i) sum[i / kParts][i % kParts] = Vec{};
    for (std::int64_t d = 0; d < padded; d += kFastLanes) {
      for (int part = 0; part < kParts; ++part) {
        Vec x[T];
        for (int t = 0; t < T; ++t) x[t] = load(k + t * padded + d + part * W);
        for (int r = 0; r < R; ++r) {
          Vec y = load(q + r * padded + d + part * W);
          if constexpr (T > 1 && W >= 8) asm("" : "+x"(y));  // in a register: loaded once
          for (int t = 0; t < T; ++t) sum[r * T + t][part] = multiply_add(y, x[t], sum[r * T + t][part]);
        }
      }
    }
    if constexpr (W == 16 && R * T == 8) {
      const auto folded =
          fold_eight(sum[0][0], sum[1][0], sum[2][0], sum[3][0], sum[4][0], sum[5][0], sum[6][0], sum[7][0]);
      const typename Lanes<8>::Vec wide = __builtin_convertvector(folded, typename Lanes<8>::Vec);
      __builtin_memcpy(sums, &wide, sizeof wide);
    } else {
      for (int i = 0; i < R * T; ++i) sums[i] = fold(sum[i]);
    }
  }

  template <int R, int T>
  static void dots_of(const float* q, const float* k, std::int64_t keys, std::int64_t padded, double* scores,
                      std::int64_t score_stride, const Ahead& ahead) {
    Fetcher fetcher(ahead, keys / T);
    double sums[R * T];
    std::int64_t t = 0;
    for (; t + T <= keys; t += T) {
      fetcher.step();
      dots_tile<R, T>(q, k + t * padded, padded, sums);
      for (int r = 0; r < R; ++r) __builtin_memcpy(scores + r * score_stride + t, sums + r * T, sizeof(double) * T);
    }
    for (; t < keys; ++t) {
      dots_tile<R, 1>(q, k + t * padded, padded, sums);
      for (int r = 0; r < R; ++r) scores[r * score_stride + t] = sums[r];
    }
    fetcher.finish();
  }

  static void dots(const float* q, std::int64_t rows, const float* k, std::int64_t keys, std::int64_t padded,
                   double* scores, std::int64_t score_stride, const Ahead& ahead) {
    constexpr int kRows = W == 4 ? 2 : 4;
    constexpr int kKeys = W == 16 ? 2 : 1;
    constexpr int kKeysOfOneRow = W == 16 ? 8 : W == 8 ? 4 : 2;
    std::int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) {
      dots_of<kRows, kKeys>(q + r * padded, k, keys, padded, scores + r * score_stride, score_stride,
                            r == 0 ? ahead : Ahead{});
    }
    for (; r < rows; ++r) {
      dots_of<1, kKeysOfOneRow>(q + r * padded, k, keys, padded, scores + r * score_stride, score_stride,
                                r == 0 ? ahead : Ahead{});
    }
  }

  // The sums of squares of T rows.
  template <int T>
  static double largest_square_of(const float* rows, std::int64_t padded) {
    Vec sum[T][kParts];
    for (int i = 0; i < T * kParts; ++i) sum[i / kParts][i % kParts] = Vec{};
    for (std::int64_t d = 0; d < padded; d += kFastLanes) {
      for (int part = 0; part < kParts; ++part) {
        for (int t = 0; t < T; ++t) {
          const Vec x = load(rows + t * padded + d + part * W);
          sum[t][part] = multiply_add(x, x, sum[t][part]);
        }
      }
    }
    double square[T];
    if constexpr (W == 16 && T == 8) {
      const auto folded =
          fold_eight(sum[0][0], sum[1][0], sum[2][0], sum[3][0], sum[4][0], sum[5][0], sum[6][0], sum[7][0]);
      for (int t = 0; t < T; ++t) square[t] = static_cast<double>(folded[t]);
    } else {
      for (int t = 0; t < T; ++t) square[t] = fold(sum[t]);
    }
    double largest = 0;
    for (int t = 0; t < T; ++t) largest = square[t] > largest ? square[t] : largest;
    return largest;
  }

  static double largest_square(const float* rows, std::int64_t count, std::int64_t padded) {
    constexpr int kRows = W == 16 ? 8 : 2;
    double largest = 0;
    std::int64_t t = 0;
    for (; t + kRows <= count; t += kRows) {
      const double square = largest_square_of<kRows>(rows + t * padded, padded);
      largest = square > largest ? square : largest;
    }
    for (; t < count; ++t) {
      const double square = largest_square_of<1>(rows + t * padded, padded);
      largest = square > largest ? square : largest;
    }
    return largest;
  }

  // The weights of R rows and at most kFastKeys keys as floats, and their squares. A square below float's normal range
  // is 0: it adds nothing to a sum, and subnormal numbers are slow.
  template <int R>
  struct Weights {
    static constexpr int kWide = W / 2;  // doubles of a vector
    using Exact = Loops<kWide>;
    using Half = typename FloatLanes<W>::Half;
    float once[R][kFastKeys], squared[R][kFastKeys];
    Weights(const double* weights, std::int64_t stride, std::int64_t keys) {
      for (int r = 0; r < R; ++r) {
        std::int64_t t = 0;
        for (; t + kWide <= keys; t += kWide) {
          const auto e = Exact::load(weights + r * stride + t);
          const auto kept = (typename Exact::Vec)((typename Exact::Bits)e & (e >= 0x1p-63));
          const auto first = __builtin_convertvector(e, Half);
          const auto second = __builtin_convertvector(kept * kept, Half);
          __builtin_memcpy(&once[r][t], &first, sizeof first);
          __builtin_memcpy(&squared[r][t], &second, sizeof second);
        }
        for (; t < keys; ++t) {
          const double e = weights[r * stride + t];
          once[r][t] = static_cast<float>(e);
          squared[r][t] = e < 0x1p-63 ? 0.0F : static_cast<float>(e * e);
        }
      }
    }
  };

  // Sums of floats over the keys of the call, which are then added to the doubles.
  template <int R>
  static void accumulate_of(const Weights<R>& weights, const float* v, std::int64_t v_stride, std::int64_t keys,
                            std::int64_t padded, double* sums, const Ahead& ahead) {
    const Bits below_sign = Bits{} + 0x7fffffff;
    Fetcher fetcher(ahead, keys * padded / W);
    for (std::int64_t d = 0; d < padded; d += W) {
      Vec sum[R][3];
      for (int i = 0; i < R * 3; ++i) sum[i / 3][i % 3] = Vec{};
      const float* column = v + d;
      for (std::int64_t t = 0; t < keys; ++t, column += v_stride) {
        fetcher.step();
        const Vec y = load(column);
        const Vec size = (Vec)((Bits)y & below_sign);
        const Vec square = y * y;
        for (int r = 0; r < R; ++r) {
          const Vec e = all(weights.once[r][t]);
          sum[r][0] = multiply_add(e, y, sum[r][0]);
          sum[r][1] = multiply_add(e, size, sum[r][1]);
          sum[r][2] = multiply_add(all(weights.squared[r][t]), square, sum[r][2]);
        }
      }
      for (int r = 0; r < R; ++r) {
        for (int s = 0; s < 3; ++s) {
          double* target = sums + (r * 3 + s) * padded + d;
          for (int lane = 0; lane < W; ++lane) target[lane] += static_cast<double>(sum[r][s][lane]);
        }
      }
    }
  }

  static void accumulate(const double* weights, std::int64_t weight_stride, std::int64_t rows, const float* v,
                         std::int64_t v_stride, std::int64_t keys, std::int64_t padded, double* sums,
                         const Ahead& ahead) {
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      accumulate_of<4>(Weights<4>(weights + r * weight_stride, weight_stride, keys), v, v_stride, keys, padded,
                       sums + r * 3 * padded, r == 0 ? ahead : Ahead{});
    }
    for (; r < rows; ++r) {
      accumulate_of<1>(Weights<1>(weights + r * weight_stride, weight_stride, keys), v, v_stride, keys, padded,
                       sums + r * 3 * padded, r == 0 ? ahead : Ahead{});
    }
  }
};

template <int W>
const ReferenceKernels* kernels_of() {
  using Exact = Loops<W>;
  using Fast = FastLoops<2 * W>;
  static constexpr ReferenceKernels kKernels = {
      .exact = {Exact::widen_f32, Exact::widen_f16, Exact::widen_bf16, Exact::template dots<false>, Exact::accumulate},
      .dots_of_exact_products = Exact::template dots<true>,
      .scan = Exact::scan,
      .weigh = Exact::weigh,
      .fast = {Fast::widen_f32, Fast::widen_f16, Fast::widen_bf16, Fast::dots, Fast::accumulate},
      .largest_square = Fast::largest_square};
  return &kKernels;
}

}  // namespace
}  // namespace kvscope::attention
