// The loops of the fast path (fast.h) over rows of K and V: sums of float in sixteen lanes, in vectors of W floats. The
// number of additions of each sum and their tree are the same for all W; AVX2 and AVX-512 fuse multiplications and
// additions, so the last digits differ. Included by one source file per instruction set, under the same rules as
// reference_loops.h.
#pragma once

#include "core/attention/detail/fast_weights.h"
#include "core/attention/detail/float_lanes.h"
#include "core/attention/detail/reference_loops.h"

namespace kvscope::attention {
namespace {

// Rows are of Source's type: F32Rows<W>, Bf16Rows<W> ...
template <int W, class Source>
struct FastLoops {
  using Lane = FloatLanes<W>;
  using Vec = typename Lane::Vec;
  using Bits = typename Lane::Bits;
  using Doubles = typename Lanes<W / 2>::Vec;
  static constexpr int kParts = 16 / W;                               // vectors that make sixteen lanes
  static constexpr std::int64_t kStepBytes = 2 * W * Source::kBytes;  // of a row, for two vectors

  static void arrange(const float* q, std::int64_t padded, float* target) {
    for (std::int64_t d = 0; d < padded; d += 2 * W) {
      for (int i = 0; i < W; ++i) {
        target[d + i] = q[d + (Source::kInterleaved ? 2 * i : i)];
        target[d + W + i] = q[d + (Source::kInterleaved ? 2 * i + 1 : W + i)];
      }
    }
  }

  // Adds the products of vector I of a block of kFastStep elements, which begins at element `block` of each row.
  template <int R, int T, int I>
  static void add_products(const float* q, const std::byte* const* k, std::int64_t padded, std::int64_t block,
                           Vec (*sum)[kParts]) {
    const std::int64_t at = (block + I / 2 * 2 * W) * Source::kBytes;
    Vec x[T];
    for (int t = 0; t < T; ++t) x[t] = Source::template half<I % 2>(k[t] + at);
    for (int r = 0; r < R; ++r) {
      Vec y = loaded<Vec>(q + r * padded + block + I * W);
      if constexpr (T > 1 && W >= 8) asm("" : "+x"(y));  // in a register: loaded once
      for (int t = 0; t < T; ++t) sum[r * T + t][I % kParts] = multiply_add<W>(y, x[t], sum[r * T + t][I % kParts]);
    }
  }
  template <int R, int T, int I = 0>
  static void add_block(const float* q, const std::byte* const* k, std::int64_t padded, std::int64_t block,
                        Vec (*sum)[kParts]) {
    add_products<R, T, I>(q, k, padded, block, sum);
    if constexpr ((I + 1) * W < kFastStep) add_block<R, T, I + 1>(q, k, padded, block, sum);
  }

  // scores[r * score_stride + t] = dot(q[r], k[t]).
  template <int R, int T>
  static void dots_tile(const float* q, const std::byte* const* k, std::int64_t padded, float* scores,
                        std::int64_t score_stride, Fetcher& fetcher) {
    Vec sum[R * T][kParts];
    const Vec zero = unknown_zero<W>();
    for (int i = 0; i < R * T * kParts; ++i) sum[i / kParts][i % kParts] = zero;
    for (std::int64_t block = 0; block < padded; block += kFastStep) {
      fetcher.step();
      add_block<R, T>(q, k, padded, block, sum);
    }
    if constexpr (W == 16 && R * T == 16) {
      const Vec folded = fold_sixteen<W>(&sum[0][0]);
      for (int r = 0; r < R; ++r) {
        __builtin_memcpy(scores + r * score_stride, reinterpret_cast<const float*>(&folded) + r * T, sizeof(float) * T);
      }
    } else {
      for (int i = 0; i < R * T; ++i) scores[i / T * score_stride + i % T] = fold_lanes<W>(sum[i]);
    }
  }

  template <int R, int T>
  static void dots_of(const float* q, const std::byte* const* k, std::int64_t keys, std::int64_t padded, float* scores,
                      std::int64_t score_stride, const Ahead& ahead) {
    Fetcher fetcher(ahead, (keys + T - 1) / T * (padded / kFastStep));
    std::int64_t t = 0;
    for (; t + T <= keys; t += T) dots_tile<R, T>(q, k + t, padded, scores + t, score_stride, fetcher);
    for (; t < keys; ++t) dots_tile<R, 1>(q, k + t, padded, scores + t, score_stride, fetcher);
    fetcher.finish();
  }

  static void dots(const float* q, std::int64_t rows, const std::byte* const* k, std::int64_t keys, std::int64_t padded,
                   float* scores, std::int64_t score_stride, const Ahead& ahead) {
    // As many accumulators as registers hold.
    constexpr int kRows = W == 4 ? 2 : 4;
    constexpr int kKeys = W == 16 ? 4 : 1;
    constexpr int kKeysOfOneRow = W == 16 ? 16 : W == 8 ? 4 : 2;
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

  // The larger of `largest` and the sums of squares of T rows.
  template <int T>
  static float largest_square_of(const std::byte* const* k, std::int64_t padded, float largest) {
    Vec sum[T][kParts];
    const Vec zero = unknown_zero<W>();
    for (int i = 0; i < T * kParts; ++i) sum[i / kParts][i % kParts] = zero;
    for (std::int64_t d = 0; d < padded; d += 2 * W) {
      for (int t = 0; t < T; ++t) {
        const std::byte* step = k[t] + d * Source::kBytes;
        const Vec first = Source::template half<0>(step), second = Source::template half<1>(step);
        Vec& even = sum[t][0];  // the sums of squares need no fixed tree: W = 4 uses two of its four vectors
        Vec& odd = sum[t][kParts / 2];
        even = multiply_add<W>(first, first, even);
        odd = multiply_add<W>(second, second, odd);
      }
    }
    float square[T];
    if constexpr (W == 16 && T == 16) {
      const Vec folded = fold_sixteen<W>(&sum[0][0]);
      __builtin_memcpy(square, &folded, sizeof square);
    } else {
      for (int t = 0; t < T; ++t) square[t] = fold_lanes<W>(sum[t]);
    }
    for (const float x : square) largest = x > largest ? x : largest;
    return largest;
  }

  static double largest_square(const std::byte* const* k, std::int64_t keys, std::int64_t padded) {
    constexpr int kKeys = W == 16 ? 16 : 2;
    float largest = 0;
    std::int64_t t = 0;
    for (; t + kKeys <= keys; t += kKeys) largest = largest_square_of<kKeys>(k + t, padded, largest);
    for (; t < keys; ++t) largest = largest_square_of<1>(k + t, padded, largest);
    return static_cast<double>(largest);
  }

  // The squares of R rows of weights. A square below float's normal range is 0: it adds nothing to a sum, and subnormal
  // numbers are slow.
  template <int R>
  struct Squares {
    float of[R][kFastKeys];
    Squares(const float* weights, std::int64_t stride, std::int64_t keys) {
      for (int r = 0; r < R; ++r) {
        for (std::int64_t t = 0; t < keys; ++t) {
          const float e = weights[r * stride + t];
          of[r][t] = e < 0x1p-63F ? 0.0F : e * e;
        }
      }
    }
  };

  // One vector of V for a row of weights: of v, |v| and v^2.
  struct Sums {
    Vec o, a1, a2;
    void add(Vec e, Vec square_of_e, Vec y, Vec size, Vec square) {
      o = multiply_add<W>(e, y, o);
      a1 = multiply_add<W>(e, size, a1);
      a2 = multiply_add<W>(square_of_e, square, a2);
    }
  };

  static Vec size_of_lanes(Vec x) { return (Vec)((Bits)x & 0x7fffffff); }

  static void add_to(Vec x, double* target) {
    const Doubles low = loaded<Doubles>(target) + as_doubles<W>(low_half<W>(x));
    const Doubles high = loaded<Doubles>(target + W / 2) + as_doubles<W>(high_half<W>(x));
    __builtin_memcpy(target, &low, sizeof low);
    __builtin_memcpy(target + W / 2, &high, sizeof high);
  }
  static void add_step(Vec first, Vec second, double* target) {
    add_to(Source::kInterleaved ? interleave_low<W>(first, second) : first, target);
    add_to(Source::kInterleaved ? interleave_high<W>(first, second) : second, target + W);
  }
  static void add_squares(const double* sums, double* running) {
    for (int i = 0; i < 2 * W; i += W / 2) {
      const Doubles x = loaded<Doubles>(sums + i);
      const Doubles y = loaded<Doubles>(running + i) + x * x;
      __builtin_memcpy(running + i, &y, sizeof y);
    }
  }

  template <int R>
  static void accumulate_of(const float* weights, std::int64_t stride, const std::byte* const* v, std::int64_t keys,
                            std::int64_t padded, double* sums, double* running, const Ahead& ahead) {
    const Squares<R> squares(weights, stride, keys);
    Fetcher fetcher(ahead, keys * padded / (2 * W));
    for (std::int64_t d = 0; d < padded; d += 2 * W) {
      const std::int64_t at = d * Source::kBytes;
      Sums first[R], second[R];
      const Vec zero = unknown_zero<W>();
      for (int r = 0; r < R; ++r) first[r] = second[r] = {zero, zero, zero};
      if constexpr (W == 16) {  // enough registers for both vectors of a step
        for (std::int64_t t = 0; t < keys; ++t) {
          fetcher.step();
          const Vec y = Source::template half<0>(v[t] + at), z = Source::template half<1>(v[t] + at);
          const Vec y_size = size_of_lanes(y), z_size = size_of_lanes(z), y_square = y * y, z_square = z * z;
          for (int r = 0; r < R; ++r) {
            Vec e = all_lanes<W>(weights[r * stride + t]), e_square = all_lanes<W>(squares.of[r][t]);
            first[r].add(e, e_square, y, y_size, y_square);
            second[r].add(e, e_square, z, z_size, z_square);
          }
        }
      } else {
        add_half<R, 0>(weights, stride, squares, v, at, keys, first, fetcher);
        add_half<R, 1>(weights, stride, squares, v, at, keys, second, Fetcher(Ahead{}, 1));
      }
      for (int r = 0; r < R; ++r) {
        double* target = sums + r * 3 * padded + d;
        add_step(first[r].o, second[r].o, target);
        add_step(first[r].a1, second[r].a1, target + padded);
        add_step(first[r].a2, second[r].a2, target + 2 * padded);
        add_squares(target, running + r * padded + d);
      }
    }
  }
  template <int R, int H, class F>
  static void add_half(const float* weights, std::int64_t stride, const Squares<R>& squares, const std::byte* const* v,
                       std::int64_t at, std::int64_t keys, Sums* sums, F&& fetcher) {
    for (std::int64_t t = 0; t < keys; ++t) {
      fetcher.step();
      const Vec y = Source::template half<H>(v[t] + at);
      const Vec size = size_of_lanes(y), square = y * y;
      for (int r = 0; r < R; ++r) {
        sums[r].add(all_lanes<W>(weights[r * stride + t]), all_lanes<W>(squares.of[r][t]), y, size, square);
      }
    }
  }

  static void accumulate(const float* weights, std::int64_t stride, std::int64_t rows, const std::byte* const* v,
                         std::int64_t keys, std::int64_t padded, double* sums, double* running, const Ahead& ahead) {
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      accumulate_of<4>(weights + r * stride, stride, v, keys, padded, sums + r * 3 * padded, running + r * padded,
                       r == 0 ? ahead : Ahead{});
    }
    for (; r < rows; ++r) {
      accumulate_of<1>(weights + r * stride, stride, v, keys, padded, sums + r * 3 * padded, running + r * padded,
                       r == 0 ? ahead : Ahead{});
    }
  }

  // Elements of a row as floats in their order. `count` is any number.
  static void widen(const std::byte* source, std::int64_t count, float* target) {
    std::int64_t i = 0;
    for (; i + 2 * W <= count; i += 2 * W) widen_step(source + i * Source::kBytes, target + i);
    if (i == count) return;
    std::byte rest[kStepBytes] = {};
    float values[2 * W];
    __builtin_memcpy(rest, source + i * Source::kBytes, static_cast<std::size_t>((count - i) * Source::kBytes));
    widen_step(rest, values);
    __builtin_memcpy(target + i, values, static_cast<std::size_t>(count - i) * sizeof(float));
  }
  static void widen_step(const std::byte* step, float* target) {
    const Vec first = Source::template half<0>(step), second = Source::template half<1>(step);
    const Vec low = Source::kInterleaved ? interleave_low<W>(first, second) : first;
    const Vec high = Source::kInterleaved ? interleave_high<W>(first, second) : second;
    __builtin_memcpy(target, &low, sizeof low);
    __builtin_memcpy(target + W, &high, sizeof high);
  }

  static constexpr FastRowKernels kernels() { return {arrange, dots, largest_square, accumulate, widen}; }
};

template <int W>
const ReferenceKernels* kernels_of() {
  using Exact = Loops<W>;
  constexpr int kFloats = 2 * W;
  using Weights = FastWeights<kFloats>;
  static constexpr ReferenceKernels kKernels = {.exact = {.widen_f32 = Exact::widen_f32,
                                                          .widen_f16 = Exact::widen_f16,
                                                          .widen_bf16 = Exact::widen_bf16,
                                                          .dots = Exact::template dots<false>,
                                                          .dots_of_exact_products = Exact::template dots<true>,
                                                          .accumulate = Exact::accumulate,
                                                          .scan = Exact::scan,
                                                          .weigh = Exact::weigh},
                                                .fast = {.f32 = FastLoops<kFloats, F32Rows<kFloats>>::kernels(),
                                                         .bf16 = FastLoops<kFloats, Bf16Rows<kFloats>>::kernels(),
                                                         .f16 = FastLoops<kFloats, F16Rows<kFloats>>::kernels(),
                                                         .e4m3 = FastLoops<kFloats, E4m3Rows<kFloats>>::kernels(),
                                                         .e5m2 = FastLoops<kFloats, E5m2Rows<kFloats>>::kernels(),
                                                         .scale = Weights::scale,
                                                         .weigh = Weights::weigh}};
  return &kKernels;
}

}  // namespace
}  // namespace kvscope::attention
