// The loops of the reference over rows of K and V, for vectors of W doubles and rows of one element type. Elements
// become doubles in registers, exactly. Included by one source file per instruction set, under the same rules as
// reference_loops.h.
#pragma once

#include "core/attention/detail/float_lanes.h"
#include "core/attention/detail/reference_loops.h"

namespace kvscope::attention {
namespace {

// Elements of a row that starts at `row`: those from element d on, as W doubles.
template <int W>
struct F64Elements {
  static constexpr std::int64_t kBytes = 8;
  static typename Lanes<W>::Vec at(const std::byte* row, std::int64_t d) {
    return loaded<typename Lanes<W>::Vec>(row + kBytes * d);
  }
};
template <int W>
struct F32Elements {
  static constexpr std::int64_t kBytes = 4;
  static typename Lanes<W>::Vec at(const std::byte* row, std::int64_t d) {
    return as_doubles<2 * W>(loaded<typename FloatLanes<2 * W>::Half>(row + kBytes * d));
  }
};
template <int W>
struct Bf16Elements {
  static constexpr std::int64_t kBytes = 2;
  static typename Lanes<W>::Vec at(const std::byte* row, std::int64_t d) {
    using Floats = typename FloatLanes<2 * W>::Half;
    if constexpr (W == 2) {
      const auto pair = loaded<std::uint32_t>(row + kBytes * d);
      const std::uint32_t bits[2] = {pair << 16, pair & 0xffff0000U};
      return as_doubles<2 * W>(loaded<Floats>(bits));
    } else {
      const auto stored = loaded<typename FloatLanes<W>::Shorts>(row + kBytes * d);
      const auto bits = __builtin_convertvector(stored, typename FloatLanes<W>::UnsignedBits) << 16;
      return as_doubles<2 * W>((Floats)bits);
    }
  }
};

// Elements: F64Elements<W>, F32Elements<W> ...
template <int W, class Elements>
struct ExactRows {
  using L = Loops<W>;
  using Vec = typename L::Vec;
  using Bits = typename L::Bits;
  static constexpr int kParts = L::kParts;
  // Whether sixteen dims of V are read together, a cache line of floats. It takes 32 registers.
  static constexpr bool kWideSteps = W == 8 && Elements::kBytes == 4;
  // Vectors of dims that accumulate_output() reads together, for four rows: as many sums as registers hold.
  static constexpr int kOutputDims = W == 8 ? 4 : 2;

  // The scores of R rows of q and T keys.
  template <int R, int T, bool ExactProducts>
  static void dots_tile(const double* q, const std::byte* const* keys, std::int64_t padded, double* scores,
                        std::int64_t score_stride) {
    Vec sum[R * T][kParts];
    for (int i = 0; i < R * T * kParts; ++i) sum[i / kParts][i % kParts] = Vec{};
    const std::byte* k[T];
    for (int t = 0; t < T; ++t) k[t] = keys[t];
    for (std::int64_t d = 0; d < padded; d += kLanes) {
      for (int part = 0; part < kParts; ++part) {
        Vec x[T];
        for (int t = 0; t < T; ++t) x[t] = Elements::at(k[t], d + part * W);
        for (int r = 0; r < R; ++r) {
          Vec y = L::load(q + r * padded + d + part * W);
          if constexpr (T > 1) asm("" : "+x"(y));  // in a register: loaded once, not as an operand of each product
          for (int t = 0; t < T; ++t) {
            sum[r * T + t][part] = L::template multiply_add<ExactProducts>(y, x[t], sum[r * T + t][part]);
          }
        }
      }
    }
    if constexpr (W == 8 && R * T == 8) {
      // fold_eight returns the sums of its arguments in the order 0 4 1 5 2 6 3 7, which puts a row's keys side by
      // side.
      const Vec folded = L::fold_eight([](Vec x, Vec y) { return x + y; }, sum[0][0], sum[2][0], sum[4][0], sum[6][0],
                                       sum[1][0], sum[3][0], sum[5][0], sum[7][0]);
      double lane[8];
      L::store(lane, folded);
      for (int r = 0; r < R; ++r) __builtin_memcpy(scores + r * score_stride, lane + r * T, sizeof(double) * T);
      return;
    }
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) scores[r * score_stride + t] = L::fold(sum[r * T + t]);
    }
  }

  // R rows of q, T keys at a time.
  template <int R, int T, bool ExactProducts>
  static void dots_of(const double* q, const std::byte* const* k, std::int64_t keys, std::int64_t padded,
                      double* scores, std::int64_t score_stride, const Ahead& ahead) {
    Fetcher fetcher(ahead, keys / T);
    std::int64_t t = 0;
    for (; t + T <= keys; t += T) {
      fetcher.step();
      dots_tile<R, T, ExactProducts>(q, k + t, padded, scores + t, score_stride);
    }
    for (; t < keys; ++t) dots_tile<R, 1, ExactProducts>(q, k + t, padded, scores + t, score_stride);
    fetcher.finish();
  }

  template <bool ExactProducts>
  static void dots(const double* q, std::int64_t rows, const std::byte* const* k, std::int64_t keys,
                   std::int64_t padded, double* scores, std::int64_t score_stride, const Ahead& ahead) {
    // As many accumulators as registers hold, with a row for itself and with several.
    constexpr int kRows = W == 2 ? 2 : 4;
    constexpr int kKeys = W == 8 ? 2 : 1;
    constexpr int kKeysOfOneRow = W == 8 ? 8 : W == 4 ? 4 : 2;
    std::int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) {
      dots_of<kRows, kKeys, ExactProducts>(q + r * padded, k, keys, padded, scores + r * score_stride, score_stride,
                                           r == 0 ? ahead : Ahead{});
    }
    for (; r < rows; ++r) {
      dots_of<1, kKeysOfOneRow, ExactProducts>(q + r * padded, k, keys, padded, scores + r * score_stride, score_stride,
                                               r == 0 ? ahead : Ahead{});
    }
  }

  // Calls of_rows(Index<4>, first row) while there are four, then of_rows(Index<1>, row).
  template <class F>
  static void in_fours(std::int64_t rows, const F& of_rows) {
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) of_rows(Index<4>{}, r);
    for (; r < rows; ++r) of_rows(Index<1>{}, r);
  }

  // The sums of N vectors of dims from dim `d` on stay in registers over all keys. |e * v| is e * |v|, and o adds it
  // times the sign of v: the product with 1 or -1 is exact.
  template <int R, int N>
  [[gnu::always_inline]] static void accumulate_dims(const double* weights, std::int64_t weight_stride,
                                                     const std::byte* const* v, std::int64_t keys, std::int64_t d,
                                                     std::int64_t padded, double* sums, Fetcher& fetcher) {
    const Bits sign_bit = Bits{} + static_cast<long long>(0x8000000000000000ULL);
    Vec sum[R][N][3];
    unrolled<R * N * 3>([&](auto index) KVSCOPE_INLINED {
      constexpr int i = decltype(index)::value;
      sum[i / (3 * N)][i / 3 % N][i % 3] = L::load(sums + (i / (3 * N) * 3 + i % 3) * padded + d + i / 3 % N * W);
    });
    for (std::int64_t t = 0; t < keys; ++t) {
      fetcher.step();
      unrolled<N>([&](auto n) KVSCOPE_INLINED {
        // The weights are loaded again for each vector of dims: registers for them would take those of sums.
        if constexpr (N > 1) asm("" : : : "memory");
        const Vec y = Elements::at(v[t], d + n.value * W);
        const Vec sign = (Vec)(((Bits)y & sign_bit) | (Bits)L::all(1.0));
        const Vec size = (Vec)((Bits)y & ~sign_bit);
        unrolled<R>([&](auto r) KVSCOPE_INLINED {
          Vec(&to)[3] = sum[r.value][n.value];
          const Vec x = size * weights[r.value * weight_stride + t];
          to[0] = L::template multiply_add<true>(x, sign, to[0]);
          to[1] += x;
          to[2] += x * x;
        });
      });
    }
    unrolled<R * N * 3>([&](auto index) KVSCOPE_INLINED {
      constexpr int i = decltype(index)::value;
      L::store(sums + (i / (3 * N) * 3 + i % 3) * padded + d + i / 3 % N * W, sum[i / (3 * N)][i / 3 % N][i % 3]);
    });
  }

  template <int R>
  static void accumulate_of(const double* weights, std::int64_t weight_stride, const std::byte* const* v,
                            std::int64_t keys, std::int64_t padded, double* sums, const Ahead& ahead) {
    constexpr int kDims = kWideSteps ? 2 : 1;  // vectors: 24 sums or 12
    Fetcher fetcher(ahead, keys * padded / (kDims * W));
    std::int64_t d = 0;
    for (; d + kDims * W <= padded; d += kDims * W) {
      accumulate_dims<R, kDims>(weights, weight_stride, v, keys, d, padded, sums, fetcher);
    }
    for (; d < padded; d += W) accumulate_dims<R, 1>(weights, weight_stride, v, keys, d, padded, sums, fetcher);
    fetcher.finish();
  }

  static void accumulate(const double* weights, std::int64_t weight_stride, std::int64_t rows,
                         const std::byte* const* v, std::int64_t keys, std::int64_t padded, double* sums,
                         const Ahead& ahead) {
    in_fours(rows, [&](auto count, std::int64_t r) {
      accumulate_of<count.value>(weights + r * weight_stride, weight_stride, v, keys, padded, sums + r * 3 * padded,
                                 r == 0 ? ahead : Ahead{});
    });
  }

  // accumulate() of the first sum alone: |e * v| times the sign of v is e * v.
  template <int R, int N>
  [[gnu::always_inline]] static void accumulate_output_dims(const double* weights, std::int64_t weight_stride,
                                                            const std::byte* const* v, std::int64_t keys,
                                                            std::int64_t d, std::int64_t padded, double* sums,
                                                            Fetcher& fetcher) {
    Vec sum[R][N];
    unrolled<R * N>([&](auto i) KVSCOPE_INLINED {
      sum[i.value / N][i.value % N] = L::load(sums + i.value / N * padded + d + i.value % N * W);
    });
    for (std::int64_t t = 0; t < keys; ++t) {
      fetcher.step();
      Vec y[N];
      unrolled<N>([&](auto n) KVSCOPE_INLINED { y[n.value] = Elements::at(v[t], d + n.value * W); });
      unrolled<R>([&](auto r) KVSCOPE_INLINED {
        const Vec e = L::all(weights[r.value * weight_stride + t]);
        unrolled<N>([&](auto n) KVSCOPE_INLINED { sum[r.value][n.value] += y[n.value] * e; });
      });
    }
    unrolled<R * N>([&](auto i) KVSCOPE_INLINED {
      L::store(sums + i.value / N * padded + d + i.value % N * W, sum[i.value / N][i.value % N]);
    });
  }

  template <int R>
  static void accumulate_output_of(const double* weights, std::int64_t weight_stride, const std::byte* const* v,
                                   std::int64_t keys, std::int64_t padded, double* sums, const Ahead& ahead) {
    constexpr int kDims = kOutputDims;
    Fetcher fetcher(ahead, keys * padded / (kDims * W));
    std::int64_t d = 0;
    for (; d + kDims * W <= padded; d += kDims * W) {
      accumulate_output_dims<R, kDims>(weights, weight_stride, v, keys, d, padded, sums, fetcher);
    }
    for (; d < padded; d += W) accumulate_output_dims<R, 1>(weights, weight_stride, v, keys, d, padded, sums, fetcher);
    fetcher.finish();
  }

  static void accumulate_output(const double* weights, std::int64_t weight_stride, std::int64_t rows,
                                const std::byte* const* v, std::int64_t keys, std::int64_t padded, double* sums,
                                const Ahead& ahead) {
    in_fours(rows, [&](auto count, std::int64_t r) {
      accumulate_output_of<count.value>(weights + r * weight_stride, weight_stride, v, keys, padded, sums + r * padded,
                                        r == 0 ? ahead : Ahead{});
    });
  }

  // Four rows side by side: a comparison waits for the one before it.
  static double larger(double largest, const std::byte* const* v, std::int64_t keys, std::int64_t padded) {
    const Bits sign_bit = Bits{} + static_cast<long long>(0x8000000000000000ULL);
    Vec most[4], of_infinite[4] = {};
    for (Vec& x : most) x = L::all(largest);
    for (std::int64_t t = 0; t < keys; t += 4) {
      const std::byte* rows[4];
      for (int i = 0; i < 4; ++i) rows[i] = v[t + i < keys ? t + i : t];
      for (std::int64_t d = 0; d < padded; d += W) {
        for (int i = 0; i < 4; ++i) {
          const Vec x = Elements::at(rows[i], d);
          const Vec size = (Vec)((Bits)x & ~sign_bit);
          most[i] = L::chosen(size > most[i], size, most[i]);
          of_infinite[i] += x * 0.0;  // NaN, if x is not finite
        }
      }
    }
    double zero = 0;
    for (int i = 0; i < 4; ++i) {
      for (int lane = 0; lane < W; ++lane) {
        largest = most[i][lane] > largest ? most[i][lane] : largest;
        zero += of_infinite[i][lane];
      }
    }
    return zero == 0 ? largest : __builtin_inf();
  }

  static constexpr ExactRowKernels kernels() {
    return {dots<false>, dots<true>, accumulate, accumulate_output, larger};
  }

  // Of rows that are read where they are, if that is faster than decoding them first. Each row of K is decoded again
  // for the next rows of q, of which W = 2 has two at a time. Rows of V are in few sets of the first-level cache, where
  // a line is kept for one step only: a step should read all of it.
  static constexpr ExactRowKernels kernels_in_place() {
    if constexpr (W == 2) return {nullptr, nullptr, nullptr, nullptr, nullptr};
    if constexpr (kWideSteps) return kernels();
    return {dots<false>, dots<true>, nullptr, W == 8 ? accumulate_output : nullptr, nullptr};
  }
};

}  // namespace
}  // namespace kvscope::attention
