// The bodies of the reference's inner loops for vectors of W doubles: W = 2, 4, 8 are SSE2, AVX2, AVX-512. Included by
// one source file per instruction set, each compiled with its own flags. Everything is in an unnamed namespace and
// calls nothing of the standard library: an inline function compiled here with AVX-512 must not become the copy that
// the linker keeps for the whole program.
#pragma once

#include "core/attention/detail/reference_kernels.h"
#include "core/base/lanes.h"

namespace kvscope::attention {
namespace {

// Prefetches the rows of an Ahead to the second-level cache, at an even pace over `steps` steps: a burst would wait for
// the few cache lines that a core can request at once. Requests of the first-level cache are fewer still.
struct Fetcher {
  Fetcher(const Ahead& rows_ahead, std::int64_t all_steps)
      : ahead(rows_ahead), lines(rows_ahead.count * ((rows_ahead.bytes + 63) / 64)), steps(all_steps) {}

  void step() {
    for (due += lines; due >= steps && row < ahead.count; due -= steps) fetch();
  }
  void finish() {
    while (row < ahead.count) fetch();
  }

  const Ahead& ahead;
  std::int64_t lines, steps;
  std::int64_t row = 0, at = 0;
  std::int64_t due = 0;  // [lines * steps]

 private:
  void fetch() {
    __builtin_prefetch(ahead.rows[row] + at, 0, 2);
    at += 64;
    if (at < ahead.bytes) return;
    at = 0;
    ++row;
  }
};

// seee eemm mmmm mmmm: the fields are moved to a float's places with an exponent that is 112 too small; multiplying
// by 2^112 corrects that exactly, also for subnormals. Exponent 31 is infinity or NaN and becomes the float's 255.
inline float f16_as_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t fields = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
  float scaled;
  __builtin_memcpy(&scaled, &fields, sizeof scaled);
  scaled *= 0x1p112f;
  std::uint32_t bits;
  __builtin_memcpy(&bits, &scaled, sizeof bits);
  bits = (fields >= 0x0f800000u ? fields | 0x7f800000u : bits) | sign;
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

template <int W>
struct Loops {
  using Vec = typename Lanes<W>::Vec;
  using Bits = typename Lanes<W>::Bits;
  using UnsignedBits = typename Lanes<W>::UnsignedBits;
  static constexpr int kParts = 8 / W;  // vectors that make eight lanes

  static Vec load(const double* p) {
    Vec x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(double* p, Vec x) { __builtin_memcpy(p, &x, sizeof x); }

  static void widen_f32(const std::byte* source, std::int64_t count, double* target) {
    for (std::int64_t i = 0; i < count; ++i) {
      float x;
      __builtin_memcpy(&x, source + 4 * i, sizeof x);
      target[i] = static_cast<double>(x);
    }
  }

  static void widen_bf16(const std::byte* source, std::int64_t count, double* target) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint16_t half;
      __builtin_memcpy(&half, source + 2 * i, sizeof half);
      const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
      float x;
      __builtin_memcpy(&x, &bits, sizeof x);
      target[i] = static_cast<double>(x);
    }
  }

  static void widen_f16(const std::byte* source, std::int64_t count, double* target) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint16_t half;
      __builtin_memcpy(&half, source + 2 * i, sizeof half);
      target[i] = static_cast<double>(f16_as_float(half));
    }
  }

  // ((0+4) + (2+6)) + ((1+5) + (3+7)): halves are added to each other, which every vector width can do in registers.
  static double fold(const Vec* parts) {
    return fold(parts, [](auto x, auto y) { return x + y; });
  }
  // The same with another operation.
  template <class F>
  static double fold(const Vec* parts, const F& join) {
    if constexpr (W == 8) {
      const Vec x = parts[0];
      const auto halves = join(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7));
      const auto quarters =
          join(__builtin_shufflevector(halves, halves, 0, 1), __builtin_shufflevector(halves, halves, 2, 3));
      return join(quarters[0], quarters[1]);
    }
    double lane[8];
    __builtin_memcpy(lane, parts, sizeof lane);
    return join(join(join(lane[0], lane[4]), join(lane[2], lane[6])),
                join(join(lane[1], lane[5]), join(lane[3], lane[7])));
  }

  // x * y + z with the product rounded first, and with one rounding: equal where the product is exact.
  template <bool ExactProducts>
  static Vec multiply_add(Vec x, Vec y, Vec z) {
#if defined(__AVX512F__)
    if constexpr (ExactProducts && W == 8) return _mm512_fmadd_pd(x, y, z);
#elif defined(__FMA__)
    if constexpr (ExactProducts && W == 4) return _mm256_fmadd_pd(x, y, z);
#endif
    return z + x * y;
  }

  // fold() of each argument. Lane 2 i is argument i, and lane 2 i + 1 is argument 4 + i. W = 8.
  template <class F>
  static Vec fold_eight(const F& join, Vec a, Vec b, Vec c, Vec d, Vec e, Vec f, Vec g, Vec h) {
    const Vec first = fold_halves(join, fold_half(join, a, b), fold_half(join, c, d));
    const Vec second = fold_halves(join, fold_half(join, e, f), fold_half(join, g, h));
    return join(__builtin_shufflevector(first, second, 0, 8, 2, 10, 4, 12, 6, 14),
                __builtin_shufflevector(first, second, 1, 9, 3, 11, 5, 13, 7, 15));
  }
  template <class F>
  static Vec fold_half(const F& join, Vec a, Vec b) {  // lanes 0 4, 1 5, 2 6, 3 7 of a, then those of b
    return join(__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11),
                __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15));
  }
  template <class F>
  static Vec fold_halves(const F& join, Vec a, Vec b) {  // two lanes of each of four
    return join(__builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13),
                __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15));
  }

  static Vec all(double x) {
    return Vec{} + x;
  }
  static Vec chosen(Bits condition, Vec a, Vec b) {
    return (Vec)(((Bits)a & condition) | ((Bits)b & ~condition));
  }

  // x > y ? x : y and x < y ? x : y: y if x is NaN. One instruction, where the compiler makes two that wait longer.
  static Vec larger(Vec x, Vec y) {
#if defined(__AVX512F__)
    if constexpr (W == 8) return _mm512_maskz_max_pd(0xff, x, y);
#elif defined(__AVX2__)
    if constexpr (W == 4) return _mm256_max_pd(x, y);
#endif
    return x > y ? x : y;
  }
  static Vec smaller(Vec x, Vec y) {
#if defined(__AVX512F__)
    if constexpr (W == 8) return _mm512_maskz_min_pd(0xff, x, y);
#elif defined(__AVX2__)
    if constexpr (W == 4) return _mm256_min_pd(x, y);
#endif
    return x < y ? x : y;
  }

  template <class V>  // of other vectors, and of single numbers
  static V smaller(V x, V y) {
    return x < y ? x : y;
  }

  static void scan(const double* scores, std::int64_t count, ScoreScan* result) {
    const Bits below_sign = (Bits{} + 0x7fffffffffffffffLL);
    Vec largest = all(-__builtin_inf());
    Vec smallest = all(__builtin_inf());
    Vec magnitude = {};
    Bits numbers = ~Bits{};
    std::int64_t i = 0;
    for (; i + W <= count; i += W) {
      const Vec x = load(scores + i);
      const Vec size = (Vec)((Bits)x & below_sign);
      largest = larger(x, largest);
      smallest = smaller(x, smallest);
      magnitude = larger(size, magnitude);
      numbers &= x == x;
    }
    *result = {-__builtin_inf(), __builtin_inf(), 0, true};
    for (int lane = 0; lane < W; ++lane) {
      result->largest = largest[lane] > result->largest ? largest[lane] : result->largest;
      result->smallest = smallest[lane] < result->smallest ? smallest[lane] : result->smallest;
      result->magnitude = magnitude[lane] > result->magnitude ? magnitude[lane] : result->magnitude;
      result->all_numbers = result->all_numbers && numbers[lane] != 0;
    }
    for (; i < count; ++i) {
      const double x = scores[i];
      const double size = __builtin_fabs(x);
      result->largest = x > result->largest ? x : result->largest;
      result->smallest = x < result->smallest ? x : result->smallest;
      result->magnitude = size > result->magnitude ? size : result->magnitude;
      result->all_numbers = result->all_numbers && x == x;
    }
  }

  // Every NaN as the positive quiet NaN.
  static Vec with_one_nan(Vec x) {
    return chosen(x == x, x, all(__builtin_nan("")));
  }

  // Calls per_vector(x) for the vectors of `values`, the last one with ones after the end, and stores what it returns.
  template <class F>
  static void each_vector(const double* values, std::int64_t count, double* target, const F& per_vector) {
    std::int64_t i = 0;
    for (; i + W <= count; i += W) store(target + i, with_one_nan(per_vector(load(values + i))));
    if (i == count) return;
    double rest[W];
    store(rest, all(1.0));
    __builtin_memcpy(rest, values + i, static_cast<std::size_t>(count - i) * sizeof(double));
    store(rest, with_one_nan(per_vector(load(rest))));
    __builtin_memcpy(target + i, rest, static_cast<std::size_t>(count - i) * sizeof(double));
  }
  static void divide(const double* values, std::int64_t count, double divisor, double* target) {
    each_vector(values, count, target, [&](Vec x) { return x / divisor; });
  }
  static void divide_roots(const double* values, std::int64_t count, double count_of_sums, double divisor,
                           double* target) {
    each_vector(values, count, target, [&](Vec x) { return Lanes<W>::root(x / count_of_sums) / divisor; });
  }

  // join() of rows whose element d starts a vector that `load_at(row, d)` returns as doubles. The sums of a vector stay
  // in registers for all keys.
  template <class Row, class F>
  static void join_rows(double e, const Row* const* values, const Row* const* partners, std::int64_t count,
                        double others, std::int64_t padded, double* together, double* pairs, const F& load_at) {
    const Vec one = all(1.0);
    for (std::int64_t d = 0; d < padded; d += W) {
      Vec sum = load(together + d), equal = {};
      for (std::int64_t i = 0; i < count; ++i) {
        const Vec x = load_at(values[i], d);
        sum += e * x;
        if (partners != nullptr) equal += (Vec)((Bits)one & (x == load_at(partners[i], d)) & (x != 0.0));
      }
      store(together + d, sum);
      if (partners != nullptr) store(pairs + d, load(pairs + d) + others * equal);
    }
  }
  static void join(double e, const double* const* values, const double* const* partners, std::int64_t count,
                   double others, std::int64_t padded, double* together, double* pairs) {
    join_rows(e, values, partners, count, others, padded, together, pairs,
              [](const double* row, std::int64_t d) { return load(row + d); });
  }
  static void end_group(std::int64_t padded, double* together, double* squares) {
    for (std::int64_t d = 0; d < padded; d += W) {
      const Vec sum = load(together + d);
      store(squares + d, load(squares + d) + sum * sum);
      store(together + d, Vec{});
    }
  }

  // rounding_phase() of weight_terms.h, plus kPhaseZero. `removed`: the bits that rounding removes, at the top. Their
  // upper 32 bits, as a signed number n, become the fraction of 2^52 + 2^31 + n.
  static constexpr double kPhaseZero = 0x1p52 + 0x1p31;
  static Vec phase_from_2_52(UnsignedBits removed, std::size_t move) {
    const UnsignedBits moved = removed + (static_cast<unsigned long long>(move) << 62);
    return (Vec)((moved >> 32) ^ 0x4330000080000000ULL);
  }

  // raise() of weights of which `load_at(t)` returns those of keys t to t + W - 1 as doubles, 0 after the last one.
  template <class F>
  static void raise_weights(std::int64_t count, double maximum, double (*phases)[kPhaseMoves], const F& load_at) {
    Vec sum[kClumpTypes][kPhaseMoves][kParts] = {};
    for (std::int64_t t = 0; t < count; t += kLanes) {
      for (int part = 0; part < kParts; ++part) {
        const Vec e = load_at(t + part * W), of_tile = e / maximum;
        for (std::size_t type = 0; type < kClumpTypes; ++type) {
          const UnsignedBits of_row = (UnsignedBits)e << (12 + kClumpKeptBits[type]);
          const UnsignedBits raised = (UnsignedBits)of_tile << (12 + kClumpKeptBits[type]);
          for (std::size_t move = 0; move < kPhaseMoves; ++move) {
            sum[type][move][part] += e * (phase_from_2_52(raised, move) - phase_from_2_52(of_row, move));
          }
        }
      }
    }
    for (std::size_t type = 0; type < kClumpTypes; ++type) {
      for (std::size_t move = 0; move < kPhaseMoves; ++move) phases[type][move] = fold(sum[type][move]);
    }
  }
  static void raise(const double* e, std::int64_t count, double maximum, double (*phases)[kPhaseMoves]) {
    raise_weights(count, maximum, phases, [&](std::int64_t t) { return load_rest(e, t, count); });
  }

  static constexpr std::size_t kFinest = 1;  // the type of the largest kFineShare
  static_assert(kFineShare[kFinest] > kFineShare[0] && kFineShare[kFinest] > kFineShare[2]);

  // Eight blocks of kPartialBlock weights, side by side: block b is lane b.
  struct PartialBlocks {
    Vec shown[8][2][kParts];  // of each block: infinite for a key with weight 0, which adds nothing
    double sums[8], smallest[8];

    template <class F>
    PartialBlocks(std::int64_t first, const F& load_at) {
      Vec pairs[8][kParts], least[8][kParts];
      for (int b = 0; b < 8; ++b) {
        for (int part = 0; part < kParts; ++part) {
          const std::int64_t t = first + b * kPartialBlock + part * W;
          const Vec e = load_at(t), f = load_at(t + kLanes);
          pairs[b][part] = e + f;
          shown[b][0][part] = chosen(e > 0.0, e, all(__builtin_inf()));
          shown[b][1][part] = chosen(f > 0.0, f, all(__builtin_inf()));
          least[b][part] = smaller(shown[b][0][part], shown[b][1][part]);
        }
      }
      fold_blocks(
          pairs, [](auto x, auto y) { return x + y; }, sums);
      fold_blocks(
          least, [](auto x, auto y) { return smaller(x, y); }, smallest);
    }
    // Eight vectors of eight lanes, each in the order of fold().
    template <class F>
    static void fold_blocks(const Vec (&x)[8][kParts], const F& join, double* target) {
      if constexpr (W == 8) {
        store(target, fold_eight(join, x[0][0], x[2][0], x[4][0], x[6][0], x[1][0], x[3][0], x[5][0], x[7][0]));
      } else {
        for (int b = 0; b < 8; ++b) target[b] = fold(x[b], join);
      }
    }
  };

  // partial() of weights of which `load_at(t)` returns those of keys t to t + W - 1 as doubles, 0 after the last one.
  template <class F>
  static void partial_sums_of(std::int64_t count, double sink, double row_sum, PartialRowSums* sums, const F& load_at) {
    static_assert(kPartialBlock == 2 * kLanes);
    constexpr double kHalfUnitOfResults = 0x1p-24, kHalfUnitOfProducts = 0x1p-26;
    Vec squares[2][kParts] = {}, results[2][kClumpTypes][kParts] = {}, products[2][kClumpTypes][kParts] = {};
    double before = 0;
    for (std::int64_t t = 0; t < count; t += 8 * kPartialBlock) {
      const PartialBlocks blocks(t, load_at);
      double so_far[2][8], keys[8], below[2][kClumpTypes][8];
      for (int b = 0; b < 8; ++b) {
        const double others = row_sum - sink - before, block = blocks.sums[b];
        before += block;
        so_far[0][b] = sink + before;
        so_far[1][b] = (others > block ? others : block) + sink;
        const std::int64_t rest = count - t - b * kPartialBlock;
        keys[b] = rest >= kPartialBlock ? kPartialBlock : rest > 0 ? static_cast<double>(rest) : 0;
      }
      for (int direction = 0; direction < 2; ++direction) {
        for (int part = 0; part < kParts; ++part) {
          const Vec sum = load(so_far[direction] + part * W), of = load(keys + part * W);
          const Vec smallest = load(blocks.smallest + part * W);
          squares[direction][part] += of * sum * sum;
          const Vec result = sum * chosen(of > 8.0, all(2), all(1)) * kHalfUnitOfResults;
          for (std::size_t type = 0; type < kClumpTypes; ++type) {
            const Vec fine = kFineShare[type] * sum;
            results[direction][type][part] += (Vec)((Bits)result & (smallest < fine));
            store(below[direction][type] + part * W, fine / 4);
          }
        }
        for (int b = 0; b < 8; ++b) {
          if (W < 8 && !(blocks.smallest[b] < below[direction][kFinest][b])) continue;  // costs more than eight lanes
          const Vec lost = all(so_far[direction][b] * kHalfUnitOfProducts);
          for (std::size_t type = 0; type < kClumpTypes; ++type) {
            for (int part = 0; part < kParts; ++part) {
              for (const auto& half : blocks.shown[b]) {
                products[direction][type][part] += (Vec)((Bits)lost & (half[part] < all(below[direction][type][b])));
              }
            }
          }
        }
      }
    }
    for (int direction = 0; direction < 2; ++direction) {
      sums->squares[direction] = fold(squares[direction]);
      for (std::size_t type = 0; type < kClumpTypes; ++type) {
        sums->cut[direction][type] = fold(results[direction][type]) + fold(products[direction][type]);
      }
    }
  }
  static void partial(const double* e, std::int64_t count, double sink, double row_sum, PartialRowSums* sums) {
    partial_sums_of(count, sink, row_sum, sums, [&](std::int64_t t) { return load_rest(e, t, count); });
  }
  // The vector from element t on, 0 from element `count` on.
  static Vec load_rest(const double* e, std::int64_t t, std::int64_t count) {
    if (t + W <= count) return load(e + t);
    double rest[W] = {};
    for (std::int64_t i = t; i < count; ++i) rest[i - t] = e[i];
    return load(rest);
  }

  // Eight lanes of each sum of weigh().
  struct WeightLanes {
    Vec row_sum[kParts] = {}, squares[kParts] = {};
    Vec phases[kClumpTypes][kPhaseMoves][kParts] = {};
    Vec faint[kFaintTerms][kParts] = {};
    Vec subnormal_errors[kLostTypes][kPhaseMoves][kParts] = {};
    Vec subnormal_squares[kLostTypes][kParts] = {};
    Vec faint_squares[kParts] = {};

    // The terms of WeightTerms::add (weight_terms.h), except the repeats.
    void add(Vec e, int part) {
      row_sum[part] += e;
      squares[part] += e * e;
      for (std::size_t type = 0; type < kClumpTypes; ++type) {
        const UnsignedBits removed = (UnsignedBits)e << (12 + kClumpKeptBits[type]);
        for (std::size_t move = 0; move < kPhaseMoves; ++move) {
          phases[type][move][part] += e * (phase_from_2_52(removed, move) - kPhaseZero);
        }
      }
      const Vec faintly = (Vec)((Bits)e & (e < 0x1p-7));
      faint[0][part] += faintly;
      faint[1][part] += chosen(faintly < 0x1p-25, faintly, all(0x1p-25));
      faint[2][part] += chosen(faintly < 0x1p-10, faintly, all(0x1p-10));
      faint_squares[part] += faintly * faintly;
      for (std::size_t type = 0; type < kLostTypes; ++type) {
        const double step = kSubnormalStep[type], to_multiple = 0x1.8p52 * step;
        const Bits below = (e < kSubnormalBelow[type]) & (e > 0.0);
        const Vec x = (Vec)((Bits)e & below);
        const Vec largest = chosen(x < step / 2, x, all(step / 2));
        subnormal_squares[type][part] += largest * largest;
        for (std::size_t move = 0; move < kPhaseMoves; ++move) {
          const Vec moved = x + static_cast<double>(move) * chosen(x < step / 4, x, all(step / 4));
          const Vec error = moved - ((moved + to_multiple) - to_multiple);
          subnormal_errors[type][move][part] += (Vec)((Bits)error & below);
        }
      }
    }
  };

  static double row_sum(const double* e, std::int64_t count) {
    Vec sum[kParts] = {};
    for (std::int64_t t = 0; t < count; t += kLanes) {
      for (int part = 0; part < kParts; ++part) sum[part] += load_rest(e, t + part * W, count);
    }
    return fold(sum);
  }

  static void weigh(const double* e, std::int64_t count, WeightSums* sums) {
    WeightLanes lanes;
    Bits repeats = {};
    double last = -1;  // the weight before the current eight
    const auto repeated = [](double x, double before) { return __builtin_fabs(x - before) <= 0x1p-20 * x; };
    std::int64_t single_repeats = 0;
    std::int64_t t = 0;
    for (; t + kLanes <= count; t += kLanes) {
      for (int part = 0; part < kParts; ++part) lanes.add(load(e + t + part * W), part);
      single_repeats += repeated(e[t], last) ? 1 : 0;
      last = e[t + kLanes - 1];
      double before[kLanes];  // of each but the first, which is no repeat of -1
      before[0] = -1;
      __builtin_memcpy(before + 1, e + t, sizeof before - sizeof before[0]);
      for (int part = 0; part < kParts; ++part) {
        const Vec x = load(e + t + part * W);
        const Vec distance = (Vec)((Bits)(x - load(before + part * W)) & (Bits{} + 0x7fffffffffffffffLL));
        repeats -= distance <= x * 0x1p-20;
      }
    }
    if (t < count) {
      double rest[kLanes] = {};
      for (std::int64_t i = t; i < count; ++i) {
        rest[i - t] = e[i];
        single_repeats += repeated(e[i], last) ? 1 : 0;
        last = e[i];
      }
      for (int part = 0; part < kParts; ++part) lanes.add(load(rest + part * W), part);
    }
    sums->row_sum = fold(lanes.row_sum);
    sums->squares = fold(lanes.squares);
    for (int lane = 0; lane < W; ++lane) single_repeats += repeats[lane];
    sums->repeats = static_cast<double>(single_repeats);
    for (std::size_t type = 0; type < kClumpTypes; ++type) {
      for (std::size_t move = 0; move < kPhaseMoves; ++move) {
        sums->phases[type][move] = fold(lanes.phases[type][move]);
      }
    }
    for (std::size_t term = 0; term < kFaintTerms; ++term) sums->faint[term] = fold(lanes.faint[term]);
    for (std::size_t type = 0; type < kLostTypes; ++type) {
      for (std::size_t move = 0; move < kPhaseMoves; ++move) {
        sums->subnormal_errors[type][move] = fold(lanes.subnormal_errors[type][move]);
      }
      sums->subnormal_squares[type] = fold(lanes.subnormal_squares[type]);
    }
    sums->faint_squares = fold(lanes.faint_squares);
  }
};

}  // namespace
}  // namespace kvscope::attention
