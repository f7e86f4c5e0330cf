// The softmax weights of the fast path (fast.h) as floats, and their sums, in vectors of W floats. Included by one
// source file per instruction set, under the same rules as reference_loops.h.
#pragma once

#include "core/attention/detail/float_lanes.h"
#include "core/attention/detail/reference_loops.h"

namespace kvscope::attention {
namespace {

template <int W>
struct FastWeights {
  using Lane = FloatLanes<W>;
  using Vec = typename Lane::Vec;
  using Bits = typename Lane::Bits;
  using UnsignedBits = typename Lane::UnsignedBits;
  using Half = typename Lane::Half;
  using Doubles = typename Lanes<W / 2>::Vec;
  using DoubleBits = typename Lanes<W / 2>::Bits;
  static constexpr int kParts = 16 / W;
  static constexpr std::int64_t kFloatSums = 64;  // additions of floats before a double takes their sum

  static void scale(const float* dots, std::int64_t count, double factor, double* scores) {
    std::int64_t t = 0;
    for (; t + W / 2 <= count; t += W / 2) {
      const Doubles x = as_doubles<W>(loaded<Half>(dots + t)) * factor;
      __builtin_memcpy(scores + t, &x, sizeof x);
    }
    for (; t < count; ++t) scores[t] = static_cast<double>(dots[t]) * factor;
  }

  static void raise(const float* e, std::int64_t count, double maximum, double (*phases)[kPhaseMoves]) {
    Loops<W / 2>::raise_weights(count, maximum, phases, [&](std::int64_t t) { return load_rest(e, t, count); });
  }
  static void partial(const float* e, std::int64_t count, double sink, double row_sum, PartialRowSums* sums) {
    Loops<W / 2>::partial_sums_of(count, sink, row_sum, sums, [&](std::int64_t t) { return load_rest(e, t, count); });
  }
  // Half a vector from element t on as doubles, 0 from element `count` on.
  static Doubles load_rest(const float* e, std::int64_t t, std::int64_t count) {
    if (t + W / 2 <= count) return as_doubles<W>(loaded<Half>(e + t));
    float rest[W / 2] = {};
    for (std::int64_t i = t; i < count; ++i) rest[i - t] = e[i];
    return as_doubles<W>(loaded<Half>(rest));
  }

  static void join(double e, const float* const* values, const float* const* partners, std::int64_t count,
                   double others, std::int64_t padded, double* together, double* pairs) {
    Loops<W / 2>::join_rows(e, values, partners, count, others, padded, together, pairs,
                            [](const float* row, std::int64_t d) { return as_doubles<W>(loaded<Half>(row + d)); });
  }

  // exp(x) = 2^n * 2^f with x / ln 2 = n + f, n an integer and |f| <= 1/2. n and f are computed in double and f is
  // rounded once, to float, which changes the result by at most 0.4 units of 2^-24. 2^f is the polynomial of degree 6
  // with the smallest relative error and a constant of 1; with coefficients and operations in float, its error is at
  // most 1.4 units, and 1.7 if products are rounded separately.
  struct Power {
    Half n, f;
  };
  static Power power(Doubles x) {
    constexpr double kLog2E = 0x1.71547652b82fep+0, kMagic = 0x1.8p52;
    const Doubles lowest = Doubles{} - 100.0;  // of weights that the caller rejects
    const Doubles kept = (Doubles)(((DoubleBits)x & (x >= lowest)) | ((DoubleBits)lowest & ~(DoubleBits)(x >= lowest)));
    const Doubles whole = kept * kLog2E;
    const Doubles n = (whole + kMagic) - kMagic;
    return {as_floats<W>(n), as_floats<W>(whole - n)};
  }
  static Vec exp(Doubles low, Doubles high) {
    const Power a = power(low), b = power(high);
    const Vec f = join_halves<W>(a.f, b.f);
    Vec p = all_lanes<W>(0x1.41d334p-13F);
    p = multiply_add<W>(p, f, all_lanes<W>(0x1.5f456ap-10F));
    p = multiply_add<W>(p, f, all_lanes<W>(0x1.3b2dbcp-7F));
    p = multiply_add<W>(p, f, all_lanes<W>(0x1.c6aed4p-5F));
    p = multiply_add<W>(p, f, all_lanes<W>(0x1.ebfbdap-3F));
    p = multiply_add<W>(p, f, all_lanes<W>(0x1.62e43p-1F));
    p = multiply_add<W>(p, f, all_lanes<W>(1.0F));
    const Bits n = __builtin_convertvector(join_halves<W>(a.n, b.n), Bits);
    return (Vec)((Bits)p + (n << 23));
  }

  // Sums over weights in W lanes.
  struct Sums {
    Doubles row_sum = {}, squares = {};
    Vec phases[kClumpTypes][kPhaseMoves] = {};
    Vec faint[kFaintTerms] = {};
    Vec subnormal_errors[kLostTypes][kPhaseMoves] = {};
    Vec subnormal_squares[kLostTypes] = {};
    Vec faint_squares = {};

    // The terms of WeightTerms::add (weight_terms.h), except the repeats.
    void add(Vec e) {
      const Doubles low = as_doubles<W>(low_half<W>(e));
      const Doubles high = as_doubles<W>(high_half<W>(e));
      row_sum += low;
      row_sum += high;
      squares += low * low;
      squares += high * high;
      for (std::size_t type = 0; type < kClumpTypes; ++type) {
        const UnsignedBits removed = (UnsignedBits)e << (9 + kClumpKeptBits[type]);
        for (std::size_t move = 0; move < kPhaseMoves; ++move) {
          const Bits moved = (Bits)(removed + (static_cast<unsigned>(move) << 30));
          phases[type][move] = multiply_add<W>(e, __builtin_convertvector(moved, Vec), phases[type][move]);
        }
      }
      if (!Lane::any(e < 0x1p-7F)) return;
      const Vec faintly = e < 0x1p-7F ? e : Vec{};
      faint[0] += faintly;
      faint[1] += smaller(faintly, all_lanes<W>(0x1p-25F));
      faint[2] += smaller(faintly, all_lanes<W>(0x1p-10F));
      const Vec visible = e >= 0x1p-63F ? faintly : Vec{};  // whose squares are in float's normal range
      faint_squares = multiply_add<W>(visible, visible, faint_squares);
      for (std::size_t type = 0; type < kLostTypes; ++type) {
        constexpr float kToMultiple = 0x1.8p23F;  // times the step: the sum with it is rounded to a multiple
        const auto step = static_cast<float>(kSubnormalStep[type]);
        const Bits below = e < static_cast<float>(kSubnormalBelow[type]);
        if (type == 0 && !Lane::any(below)) continue;  // f16: rare. A weight of 0 adds 0 to all of these sums
        const Vec x = below ? e : Vec{};
        const Vec largest = smaller(below ? visible : Vec{}, all_lanes<W>(step / 2));
        subnormal_squares[type] = multiply_add<W>(largest, largest, subnormal_squares[type]);
        const Vec quarter = smaller(x, all_lanes<W>(step / 4));
        for (std::size_t move = 0; move < kPhaseMoves; ++move) {
          const Vec moved = x + static_cast<float>(move) * quarter;
          subnormal_errors[type][move] += moved - ((moved + kToMultiple * step) - kToMultiple * step);
        }
      }
    }
    static Vec smaller(Vec a, Vec b) { return a < b ? a : b; }

    void add_to(WeightSums* sums) const {
      for (int i = 0; i < W / 2; ++i) {
        sums->row_sum += row_sum[i];
        sums->squares += squares[i];
      }
      for (int i = 0; i < W; ++i) {
        for (std::size_t type = 0; type < kClumpTypes; ++type) {
          for (std::size_t move = 0; move < kPhaseMoves; ++move) {
            sums->phases[type][move] += static_cast<double>(phases[type][move][i]);
          }
        }
        for (std::size_t term = 0; term < kFaintTerms; ++term) {
          sums->faint[term] += static_cast<double>(faint[term][i]);
        }
        for (std::size_t type = 0; type < kLostTypes; ++type) {
          for (std::size_t move = 0; move < kPhaseMoves; ++move) {
            sums->subnormal_errors[type][move] += static_cast<double>(subnormal_errors[type][move][i]);
          }
          sums->subnormal_squares[type] += static_cast<double>(subnormal_squares[type][i]);
        }
        sums->faint_squares += static_cast<double>(faint_squares[i]);
      }
    }
  };

  // The row sum alone, as Sums has it.
  struct RowSum {
    Doubles row_sum = {};
    void add(Vec e) {
      row_sum += as_doubles<W>(low_half<W>(e));
      row_sum += as_doubles<W>(high_half<W>(e));
    }
    void add_to(WeightSums* sums) const {
      for (int i = 0; i < W / 2; ++i) sums->row_sum += row_sum[i];
    }
  };

  static void weigh(const double* scores, std::int64_t count, double largest, float* e, WeightSums* sums) {
    exponentiate_and_add<Sums>(scores, count, largest, e, sums);
    sums->repeats = static_cast<double>(repeats(e, count));
  }
  static double exponentiate(const double* scores, std::int64_t count, double largest, float* e) {
    WeightSums sums;
    exponentiate_and_add<RowSum>(scores, count, largest, e, &sums);
    return sums.row_sum;
  }

  template <class S>
  static void exponentiate_and_add(const double* scores, std::int64_t count, double largest, float* e,
                                   WeightSums* sums) {
    *sums = WeightSums{};
    const std::int64_t whole = count / W * W;
    for (std::int64_t first = 0; first < whole; first += kFloatSums * W) {
      const std::int64_t end = first + kFloatSums * W < whole ? first + kFloatSums * W : whole;
      // Two loops: an exponential takes long, and the processor overlaps those of more keys without the sums between.
      for (std::int64_t t = first; t < end; t += W) {
        const Vec x = exp(loaded<Doubles>(scores + t) - largest, loaded<Doubles>(scores + t + W / 2) - largest);
        __builtin_memcpy(e + t, &x, sizeof x);
      }
      S block;
      for (std::int64_t t = first; t < end; t += W) block.add(loaded<Vec>(e + t));
      block.add_to(sums);
    }
    if (whole == count) return;
    double differences[W] = {};  // of the rest, with weights of 0 after its end
    for (std::int64_t t = whole; t < count; ++t) differences[t - whole] = scores[t] - largest;
    const Vec x = exp(loaded<Doubles>(differences), loaded<Doubles>(differences + W / 2));
    float rest[W] = {};
    __builtin_memcpy(rest, &x, sizeof x);
    for (std::int64_t i = 0; i < W; ++i) {
      if (whole + i < count) {
        e[whole + i] = rest[i];
      } else {
        rest[i] = 0;
      }
    }
    S block;
    block.add(loaded<Vec>(rest));
    block.add_to(sums);
  }

  // Weights that equal the weight before them, to 2^-20.
  static std::int64_t repeats(const float* e, std::int64_t count) {
    Bits found = {};
    std::int64_t t = 1;
    for (; t + W <= count; t += W) {
      const Vec x = loaded<Vec>(e + t);
      const Vec distance = (Vec)((Bits)(x - loaded<Vec>(e + t - 1)) & 0x7fffffff);
      found -= distance <= x * 0x1p-20F;
    }
    std::int64_t sum = 0;
    for (int i = 0; i < W; ++i) sum += found[i];
    for (; t < count; ++t) sum += __builtin_fabsf(e[t] - e[t - 1]) <= 0x1p-20F * e[t] ? 1 : 0;
    return sum;
  }
};

}  // namespace
}  // namespace kvscope::attention
