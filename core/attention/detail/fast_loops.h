// The loops of the fast path (fast.h) over rows of K and V: sums of float in sixteen lanes, in vectors of W floats. The
// number of additions of each sum and their tree are the same for all W; AVX2 and AVX-512 fuse multiplications and
// additions, so the last digits differ. Included by one source file per instruction set, under the same rules as
// reference_loops.h.
#pragma once

#include "core/attention/detail/exact_rows.h"
#include "core/attention/detail/fast_weights.h"
#include "core/attention/detail/float_lanes.h"
#include "core/attention/detail/reference_loops.h"

namespace kvscope::attention {
namespace {

// Prefetches the rows of an Ahead at an even pace over `steps` steps, as Fetcher does, in fewer instructions: the same
// number of lines in each step.
class Lines {
 public:
  Lines(const Ahead& ahead, std::int64_t steps) : row_(ahead.rows), rows_end_(ahead.rows + ahead.count) {
    if (ahead.count == 0 || steps <= 0) {
      row_ = rows_end_;
      return;
    }
    bytes_ = ahead.bytes;
    per_step_ = (ahead.count * ((ahead.bytes + 63) / 64) + steps - 1) / steps;
    next();
  }
  [[gnu::always_inline]] void step() {
    for (std::int64_t i = 0; i < per_step_; ++i) fetch();
  }
  void finish() {
    while (per_step_ > 0) fetch();
  }

 private:
  [[gnu::always_inline]] void fetch() {
    __builtin_prefetch(at_, 0, 2);
    at_ += 64;
    if (at_ >= end_) next();
  }
  void next() {
    if (row_ == rows_end_) {
      per_step_ = 0;
      return;
    }
    at_ = *row_++;
    end_ = at_ + bytes_;
  }

  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
  const std::byte* const* row_;
  const std::byte* const* rows_end_;
  std::int64_t bytes_ = 0;
  std::int64_t per_step_ = 0;  // [lines]; 0 when all are fetched
};

// Rows are of Source's type: F32Rows<W>, Bf16Rows<W> ...
template <int W, class Source>
struct FastLoops {
  using Lane = FloatLanes<W>;
  using Vec = typename Lane::Vec;
  using Bits = typename Lane::Bits;
  using Doubles = typename Lanes<W / 2>::Vec;
  static constexpr int kParts = 16 / W;                               // vectors that make sixteen lanes
  static constexpr std::int64_t kStepBytes = 2 * W * Source::kBytes;  // of a row, for two vectors

  // Rows of q that a tile reads together are stored vector by vector: the first vector of each row, then the second.
  // As many accumulators as registers hold: rows, keys, and keys of a single row.
  static constexpr int kTileRows = W == 4 ? 2 : 4;
  static constexpr int kTileKeys = W == 16 ? 4 : 1;
  static constexpr int kKeysOfOneRow = W == 16 ? 16 : W == 8 ? 4 : 2;

  static void arrange(const float* q, std::int64_t rows, std::int64_t padded, float* target) {
    std::int64_t r = 0;
    for (; r + kTileRows <= rows; r += kTileRows) arrange_tile(q + r * padded, kTileRows, padded, target + r * padded);
    for (; r < rows; ++r) arrange_tile(q + r * padded, 1, padded, target + r * padded);
  }
  static void arrange_tile(const float* q, std::int64_t rows, std::int64_t padded, float* target) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t d = 0; d < padded; d += 2 * W) {
        float* first = target + d * rows + r * W;
        float* second = first + rows * W;
        for (int i = 0; i < W; ++i) {
          first[i] = q[r * padded + d + (Source::kInterleaved ? 2 * i : i)];
          second[i] = q[r * padded + d + (Source::kInterleaved ? 2 * i + 1 : W + i)];
        }
      }
    }
  }

  // The sums of squares of rows of k, which are made beside the dot products.
  class Squares {
   public:
    explicit Squares(LargestLanes* largest) : largest_(largest) {
      if (largest_ != nullptr) most_ = loaded<Quarter>(largest_->bits);
    }
    template <int T>
    void add(const Vec (&sum)[T][kParts]) {
      if constexpr (W == 16 && T == 4) {
        const Quarter folded = (Quarter)fold_four<W>(sum[0][0], sum[1][0], sum[2][0], sum[3][0]);
        most_ = folded > most_ ? folded : most_;
      } else {
        for (int t = 0; t < T; ++t) {
          const float square = fold_lanes<W>(sum[t]);
          single_ = square > single_ ? square : single_;
        }
      }
    }
    void finish() {
      const Quarter others = loaded<Quarter>(largest_->bits);
      most_ = others > most_ ? others : most_;
      __builtin_memcpy(largest_->bits, &most_, sizeof most_);
      if (single_ > 0) largest_->raise(single_);
    }

   private:
    using Quarter = typename FloatLanes<4>::Bits;
    LargestLanes* largest_;
    Quarter most_ = {};
    float single_ = 0;
  };

  // Adds the products of vector I of a block of kFastStep elements, and the squares of k if there are sums for them; q
  // and k begin there.
  template <int R, int T, int I, bool WithSquares>
  [[gnu::always_inline]] static void add_products(const float* q, const std::byte* const* k, std::int64_t at,
                                                  Vec (*sum)[kParts], Vec (*squares)[kParts]) {
    Vec x[T];
    unrolled<T>([&](auto t) KVSCOPE_INLINED {
      x[t.value] = Source::template half<I % 2>(k[t.value] + at + I / 2 * kStepBytes);
      if constexpr (WithSquares) {
        Vec& square = squares[t.value][I % kParts];
        square = multiply_add<W>(x[t.value], x[t.value], square);
      }
    });
    unrolled<R>([&](auto r) KVSCOPE_INLINED {
      Vec y = loaded<Vec>(q + (I * R + r.value) * W);
      if constexpr (T > 1 && W >= 8) asm("" : "+x"(y));  // in a register: loaded once
      unrolled<T>([&](auto t) KVSCOPE_INLINED {
        Vec& target = sum[r.value * T + t.value][I % kParts];
        target = multiply_add<W>(y, x[t.value], target);
      });
    });
  }

  // scores[r * score_stride + t] = dot(q[r], k[t]).
  template <int R, int T, bool WithSquares>
  [[gnu::always_inline]] static void dots_tile(const float* q, const std::byte* const* keys, std::int64_t padded,
                                               float* scores, std::int64_t score_stride, Squares& squares,
                                               Lines& lines) {
    Vec sum[R * T][kParts], square[T][kParts];
    const Vec zero = unknown_zero<W>();
    unrolled<R * T * kParts>([&](auto i) KVSCOPE_INLINED { sum[i.value / kParts][i.value % kParts] = zero; });
    unrolled<T * kParts>([&](auto i) KVSCOPE_INLINED { square[i.value / kParts][i.value % kParts] = zero; });
    const std::byte* k[T];
    unrolled<T>([&](auto t) KVSCOPE_INLINED { k[t.value] = keys[t.value]; });
    for (std::int64_t at = 0; at < padded * Source::kBytes; at += kFastStep * Source::kBytes) {
      lines.step();
      unrolled<kFastStep / W>([&](auto i)
                                  KVSCOPE_INLINED { add_products<R, T, i.value, WithSquares>(q, k, at, sum, square); });
      q += R * kFastStep;
    }
    if constexpr (WithSquares) squares.add(square);
    if constexpr (W == 16 && R * T == 16) {
      const Vec folded = fold_sixteen<W>(&sum[0][0]);
      if constexpr (T == 4) {
        unrolled<R>([&](auto r) KVSCOPE_INLINED { store_quarter<r.value>(folded, scores + r.value * score_stride); });
      } else {
        __builtin_memcpy(scores, &folded, sizeof folded);
      }
    } else {
      for (int i = 0; i < R * T; ++i) scores[i / T * score_stride + i % T] = fold_lanes<W>(sum[i]);
    }
  }
  template <int Q>
  [[gnu::always_inline]] static void store_quarter(Vec x, float* target) {
    const auto quarter = __builtin_shufflevector(x, x, 4 * Q, 4 * Q + 1, 4 * Q + 2, 4 * Q + 3);
    __builtin_memcpy(target, &quarter, sizeof quarter);
  }

  template <int R, int T, bool WithSquares>
  static void dots_of(const float* q, const std::byte* const* k, std::int64_t keys, std::int64_t padded, float* scores,
                      std::int64_t score_stride, LargestLanes* largest_square, const Ahead& ahead) {
    Lines lines(ahead, (keys + T - 1) / T * (padded / kFastStep));
    Squares squares(largest_square);
    std::int64_t t = 0;
    for (; t + T <= keys; t += T) {
      dots_tile<R, T, WithSquares>(q, k + t, padded, scores + t, score_stride, squares, lines);
    }
    for (; t < keys; ++t) dots_tile<R, 1, WithSquares>(q, k + t, padded, scores + t, score_stride, squares, lines);
    if constexpr (WithSquares) squares.finish();
    lines.finish();
  }

  static void dots(const float* q, std::int64_t rows, const std::byte* const* k, std::int64_t keys, std::int64_t padded,
                   float* scores, std::int64_t score_stride, LargestLanes* largest, const Ahead& ahead) {
    std::int64_t r = 0;
    if (largest != nullptr && rows >= kTileRows) {
      dots_of<kTileRows, kTileKeys, true>(q, k, keys, padded, scores, score_stride, largest, ahead);
      r = kTileRows;
    } else if (largest != nullptr) {  // too few registers for the squares beside the sums of one row
      largest->raise(largest_square(k, keys, padded));
    }
    for (; r + kTileRows <= rows; r += kTileRows) {
      dots_of<kTileRows, kTileKeys, false>(q + r * padded, k, keys, padded, scores + r * score_stride, score_stride,
                                           nullptr, r == 0 ? ahead : Ahead{});
    }
    for (; r < rows; ++r) {
      dots_of<1, kKeysOfOneRow, false>(q + r * padded, k, keys, padded, scores + r * score_stride, score_stride,
                                       nullptr, r == 0 ? ahead : Ahead{});
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

  static float largest_square(const std::byte* const* k, std::int64_t keys, std::int64_t padded) {
    constexpr int kKeys = W == 16 ? 16 : 2;
    float largest = 0;
    std::int64_t t = 0;
    for (; t + kKeys <= keys; t += kKeys) largest = largest_square_of<kKeys>(k + t, padded, largest);
    for (; t < keys; ++t) largest = largest_square_of<1>(k + t, padded, largest);
    return largest;
  }

  // R rows of at most kFastKeys weights and their squares. A square below float's normal range is 0: it adds nothing to
  // a sum, and subnormal numbers are slow.
  template <int R>
  struct Weights {
    alignas(64) float of[R][kFastKeys];
    alignas(64) float squares[R][kFastKeys];
    Weights(const float* weights, std::int64_t stride, std::int64_t keys) {
      for (int r = 0; r < R; ++r) {
        for (std::int64_t t = 0; t < keys; t += W) {
          Vec e = {};
          if (t + W <= keys) {
            e = loaded<Vec>(weights + r * stride + t);
          } else {
            __builtin_memcpy(&e, weights + r * stride + t, static_cast<std::size_t>(keys - t) * sizeof(float));
          }
          const Vec square = e < 0x1p-63F ? Vec{} : e * e;
          __builtin_memcpy(&of[r][t], &e, sizeof e);
          __builtin_memcpy(&squares[r][t], &square, sizeof square);
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

  // One row and one step of dims of the sums of a block, which `finish` adds to those in double or keeps in its parts.
  // Vector by vector: the compiler would keep the sums in memory, not in registers, if they were copied as a whole.
  static void start(const float* parts, Sums& first, Sums& second) {
    first.o = loaded<Vec>(parts), first.a1 = loaded<Vec>(parts + W), first.a2 = loaded<Vec>(parts + 2 * W);
    second.o = loaded<Vec>(parts + 3 * W), second.a1 = loaded<Vec>(parts + 4 * W),
    second.a2 = loaded<Vec>(parts + 5 * W);
  }
  static void store(Vec x, float* target) { __builtin_memcpy(target, &x, sizeof x); }
  [[gnu::always_inline]] static void finish(const Sums& first, const Sums& second, const BlockSums& to,
                                            std::int64_t padded, std::int64_t row, std::int64_t d) {
    if (!to.last) {
      float* parts = to.parts + 3 * (row * padded + d);
      store(first.o, parts), store(first.a1, parts + W), store(first.a2, parts + 2 * W);
      store(second.o, parts + 3 * W), store(second.a1, parts + 4 * W), store(second.a2, parts + 5 * W);
      return;
    }
    double* target = to.sums + row * 3 * padded + d;
    add_step(first.o, second.o, target);
    add_step(first.a1, second.a1, target + padded);
    add_step(first.a2, second.a2, target + 2 * padded);
    add_squares(target, to.running + row * padded + d);
  }

  template <int R, bool WithLargest>
  static void accumulate_of(const float* weights, std::int64_t stride, const std::byte* const* v, std::int64_t keys,
                            std::int64_t padded, const BlockSums& to, const Ahead& ahead) {
    const Weights<R> e(weights, stride, keys);
    Lines lines(ahead, keys * padded / (2 * W));
    Lines none(Ahead{}, 1);
    constexpr float zeros[6 * W] = {};
    Bits most[2] = {};  // of the first and the second vectors
    if constexpr (WithLargest) load_largest(*to.largest, most);
    for (std::int64_t d = 0; d < padded; d += 2 * W) {
      const std::int64_t at = d * Source::kBytes;
      Sums first[R], second[R];
      unrolled<R>([&](auto r) KVSCOPE_INLINED {
        start(to.first ? zeros : to.parts + 3 * (r.value * padded + d), first[r.value], second[r.value]);
      });
      if constexpr (W == 16) {  // enough registers for both vectors of a step
        for (std::int64_t t = 0; t < keys; ++t) {
          lines.step();
          const Vec y = Source::template half<0>(v[t] + at), z = Source::template half<1>(v[t] + at);
          const Vec y_size = size_of_lanes(y), z_size = size_of_lanes(z), y_square = y * y, z_square = z * z;
          if constexpr (WithLargest) keep_larger(y_size, most[0]), keep_larger(z_size, most[1]);
          unrolled<R>([&](auto r) KVSCOPE_INLINED {
            const Vec one = all_lanes<W>(e.of[r.value][t]), square = all_lanes<W>(e.squares[r.value][t]);
            first[r.value].add(one, square, y, y_size, y_square);
            second[r.value].add(one, square, z, z_size, z_square);
          });
        }
      } else {
        add_half<R, 0, WithLargest>(e, v, at, keys, first, most[0], lines);
        add_half<R, 1, WithLargest>(e, v, at, keys, second, most[1], none);
      }
      unrolled<R>([&](auto r) KVSCOPE_INLINED { finish(first[r.value], second[r.value], to, padded, r.value, d); });
    }
    if constexpr (WithLargest) store_largest(most, *to.largest);
    lines.finish();
  }
  template <int R, int H, bool WithLargest>
  [[gnu::always_inline]] static void add_half(const Weights<R>& e, const std::byte* const* v, std::int64_t at,
                                              std::int64_t keys, Sums* sums, Bits& most, Lines& lines) {
    for (std::int64_t t = 0; t < keys; ++t) {
      lines.step();
      const Vec y = Source::template half<H>(v[t] + at);
      const Vec size = size_of_lanes(y), square = y * y;
      if constexpr (WithLargest) keep_larger(size, most);
      unrolled<R>([&](auto r) KVSCOPE_INLINED {
        sums[r.value].add(all_lanes<W>(e.of[r.value][t]), all_lanes<W>(e.squares[r.value][t]), y, size, square);
      });
    }
  }

  static void accumulate(const float* weights, std::int64_t stride, std::int64_t rows, const std::byte* const* v,
                         std::int64_t keys, std::int64_t padded, const BlockSums& to, const Ahead& ahead) {
    const auto of_row = [&](std::int64_t r) {
      return BlockSums{
          to.sums + r * 3 * padded, to.running + r * padded, to.parts + r * 3 * padded, to.largest, to.first, to.last};
    };
    std::int64_t r = 0;
    if (to.largest != nullptr && rows >= 4) {
      accumulate_of<4, true>(weights, stride, v, keys, padded, to, ahead);
      r = 4;
    } else if (to.largest != nullptr) {
      accumulate_of<1, true>(weights, stride, v, keys, padded, to, ahead);
      r = 1;
    }
    for (; r + 4 <= rows; r += 4) {
      accumulate_of<4, false>(weights + r * stride, stride, v, keys, padded, of_row(r), r == 0 ? ahead : Ahead{});
    }
    for (; r < rows; ++r) {
      accumulate_of<1, false>(weights + r * stride, stride, v, keys, padded, of_row(r), r == 0 ? ahead : Ahead{});
    }
  }

  // accumulate() of the sums of e * v alone.
  template <int R, bool WithLargest>
  static void accumulate_output_of(const float* weights, std::int64_t stride, const std::byte* const* v,
                                   std::int64_t keys, std::int64_t padded, const BlockSums& to, const Ahead& ahead) {
    // Vectors of a row that are read together: as many sums as registers hold, and whole steps.
    constexpr int kVectors = W == 16 && R == 4 ? 4 : 2;
    Lines lines(ahead, keys * ((padded + kVectors * W - 1) / (kVectors * W)));
    Bits most[2] = {};  // of even and of odd vectors
    if constexpr (WithLargest) load_largest(*to.largest, most);
    std::int64_t d = 0;
    for (; d + kVectors * W <= padded; d += kVectors * W) {
      accumulate_output_step<R, kVectors, WithLargest>(weights, stride, v, keys, d, padded, to, most, lines);
    }
    for (; d < padded; d += 2 * W) {
      accumulate_output_step<R, 2, WithLargest>(weights, stride, v, keys, d, padded, to, most, lines);
    }
    if constexpr (WithLargest) store_largest(most, *to.largest);
    lines.finish();
  }
  template <int R, int N, bool WithLargest>
  [[gnu::always_inline]] static void accumulate_output_step(const float* weights, std::int64_t stride,
                                                            const std::byte* const* v, std::int64_t keys,
                                                            std::int64_t d, std::int64_t padded, const BlockSums& to,
                                                            Bits (&most)[2], Lines& lines) {
    const std::int64_t at = d * Source::kBytes;
    Vec sum[R][N];
    unrolled<R * N>([&](auto i) KVSCOPE_INLINED {
      sum[i.value / N][i.value % N] =
          to.first ? Vec{} : loaded<Vec>(to.parts + i.value / N * padded + d + i.value % N * W);
    });
#pragma GCC unroll 2
    for (std::int64_t t = 0; t < keys; ++t) {
      lines.step();
      Vec y[N];
      unrolled<N>([&](auto n) KVSCOPE_INLINED {
        y[n.value] = Source::template half<n.value % 2>(v[t] + at + n.value / 2 * kStepBytes);
        if constexpr (WithLargest) keep_larger(size_of_lanes(y[n.value]), most[n.value % 2]);
      });
      unrolled<R>([&](auto r) KVSCOPE_INLINED {
        const Vec e = all_lanes<W>(weights[r.value * stride + t]);
        unrolled<N>([&](auto n) KVSCOPE_INLINED {
          sum[r.value][n.value] = multiply_add<W>(e, y[n.value], sum[r.value][n.value]);
        });
      });
    }
    unrolled<R * N / 2>([&](auto i) KVSCOPE_INLINED {
      constexpr int r = i.value * 2 / N, n = i.value * 2 % N;
      const std::int64_t place = r * padded + d + n * W;
      if (to.last) {
        add_step(sum[r][n], sum[r][n + 1], to.sums + place);
      } else {
        store(sum[r][n], to.parts + place), store(sum[r][n + 1], to.parts + place + W);
      }
    });
  }

  static void accumulate_output(const float* weights, std::int64_t stride, std::int64_t rows, const std::byte* const* v,
                                std::int64_t keys, std::int64_t padded, const BlockSums& to, const Ahead& ahead) {
    const auto of_row = [&](std::int64_t r) {
      return BlockSums{to.sums + r * padded, nullptr, to.parts + r * padded, to.largest, to.first, to.last};
    };
    std::int64_t r = 0;
    if (to.largest != nullptr && rows >= 4) {
      accumulate_output_of<4, true>(weights, stride, v, keys, padded, to, ahead);
      r = 4;
    } else if (to.largest != nullptr) {
      accumulate_output_of<1, true>(weights, stride, v, keys, padded, to, ahead);
      r = 1;
    }
    for (; r + 4 <= rows; r += 4) {
      accumulate_output_of<4, false>(weights + r * stride, stride, v, keys, padded, of_row(r),
                                     r == 0 ? ahead : Ahead{});
    }
    for (; r < rows; ++r) {
      accumulate_output_of<1, false>(weights + r * stride, stride, v, keys, padded, of_row(r),
                                     r == 0 ? ahead : Ahead{});
    }
  }

  // Without the sign, the bits of floats have the order of the floats, and those of infinities and NaNs come last. Two
  // rows side by side: a comparison waits for the one before it.
  static double larger(double largest, const std::byte* const* v, std::int64_t keys, std::int64_t padded) {
    Bits most[4] = {};
    for (std::int64_t t = 0; t < keys; t += 2) {
      const std::byte *first = v[t], *second = v[t + 1 < keys ? t + 1 : t];
      for (std::int64_t at = 0; at < padded * Source::kBytes; at += kStepBytes) {
        keep_larger(size_of_lanes(Source::template half<0>(first + at)), most[0]);
        keep_larger(size_of_lanes(Source::template half<1>(first + at)), most[1]);
        keep_larger(size_of_lanes(Source::template half<0>(second + at)), most[2]);
        keep_larger(size_of_lanes(Source::template half<1>(second + at)), most[3]);
      }
    }
    keep_larger((Vec)most[2], most[0]), keep_larger((Vec)most[3], most[1]);
    return larger_of(largest, most[0], most[1]);
  }
  static void keep_larger(Vec size, Bits& most) {
    const Bits bits = (Bits)size;
    most = bits > most ? bits : most;
  }
  static void load_largest(const LargestLanes& largest, Bits (&most)[2]) {
    most[0] = loaded<Bits>(largest.bits);
  }
  static void store_largest(Bits (&most)[2], LargestLanes& largest) {
    keep_larger((Vec)most[1], most[0]);
    __builtin_memcpy(largest.bits, &most[0], sizeof(Bits));
  }
  static double larger_of(double largest, Bits first, Bits second) {
    keep_larger((Vec)second, first);
    for (int lane = 0; lane < W; ++lane) {
      const int of_lane = first[lane];
      float x;
      __builtin_memcpy(&x, &of_lane, sizeof x);
      if (!(x < __builtin_inff())) return __builtin_inf();
      largest = static_cast<double>(x) > largest ? static_cast<double>(x) : largest;
    }
    return largest;
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

  static constexpr FastRowKernels kernels() {
    return {arrange, dots, largest_square, accumulate, accumulate_output, larger, widen};
  }
};

template <int W>
const ReferenceKernels* kernels_of() {
  using Exact = Loops<W>;
  constexpr int kFloats = 2 * W;
  using Weights = FastWeights<kFloats>;
  static constexpr ReferenceKernels kKernels = {.exact = {.widen_f32 = Exact::widen_f32,
                                                          .widen_f16 = Exact::widen_f16,
                                                          .widen_bf16 = Exact::widen_bf16,
                                                          .f64 = ExactRows<W, F64Elements<W>>::kernels(),
                                                          .f32 = ExactRows<W, F32Elements<W>>::kernels_in_place(),
                                                          .bf16 = ExactRows<W, Bf16Elements<W>>::kernels_in_place(),
                                                          .scan = Exact::scan,
                                                          .weigh = Exact::weigh,
                                                          .row_sum = Exact::row_sum,
                                                          .partial = Exact::partial,
                                                          .raise = Exact::raise,
                                                          .join = Exact::join,
                                                          .end_group = Exact::end_group,
                                                          .divide = Exact::divide,
                                                          .divide_roots = Exact::divide_roots},
                                                .fast = {.f32 = FastLoops<kFloats, F32Rows<kFloats>>::kernels(),
                                                         .bf16 = FastLoops<kFloats, Bf16Rows<kFloats>>::kernels(),
                                                         .f16 = FastLoops<kFloats, F16Rows<kFloats>>::kernels(),
                                                         .e4m3 = FastLoops<kFloats, E4m3Rows<kFloats>>::kernels(),
                                                         .e5m2 = FastLoops<kFloats, E5m2Rows<kFloats>>::kernels(),
                                                         .scale = Weights::scale,
                                                         .weigh = Weights::weigh,
                                                         .exponentiate = Weights::exponentiate,
                                                         .partial = Weights::partial,
                                                         .raise = Weights::raise,
                                                         .join = Weights::join}};
  return &kKernels;
}

}  // namespace
}  // namespace kvscope::attention
