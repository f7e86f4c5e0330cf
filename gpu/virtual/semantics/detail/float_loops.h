// f32, pairs of f32, and f64: add sub mul fma (f32 in all roundings, f64 to nearest), neg, abs, min, max.
//
// Compiled once per instruction set (CMakeLists.txt). Tested by tests/gpu/virtual/semantics.
#pragma once

#include "gpu/virtual/semantics/detail/extremes.h"
#include "gpu/virtual/semantics/detail/lanes.h"

namespace kvscope::ptx::semantics {
namespace {

// Rounds to nearest first; if the result is on the wrong side of x, moves it by one step. This also applies to
// infinities: an overflow rounded toward zero is the largest number. x is exact, or rounded to odd, so it compares
// correctly with every float.
template <Rounding kRounding>
inline float directed(double x) {
  const float nearest = static_cast<float>(x);
  if constexpr (kRounding == Rounding::nearest) return canonical(nearest);
  const u32 bits = bits_as<u32>(nearest);
  const double back = double{nearest};
  const bool inwards = (bits >> 31 != 0) == (kRounding == Rounding::up);  // stepping down decreases the magnitude
  const bool past = kRounding == Rounding::down ? back > x
                    : kRounding == Rounding::up ? back < x
                                                : absolute_of(back) > absolute_of(x);
  const u32 stepped = kRounding == Rounding::zero || inwards ? bits - 1 : bits + 1;
  return canonical(bits_as<float>(past ? stepped : bits));
}

// For f32. The product of two floats is exact in double, and a sum of doubles rounded to odd can be rounded once more
// without error.
template <Rounding kRounding, bool kFlush, bool kSaturate>
struct F32 {
  static float in(float x) { return kFlush ? flush(x) : x; }
  static float out(float x) {
    if constexpr (kFlush) x = flush(x);
    if constexpr (kSaturate) return saturate(x);
    return x;
  }

  static float add(float a, float b) {
    a = in(a);
    b = in(b);
    if constexpr (kRounding == Rounding::nearest) return out(canonical(a + b));
    return out(directed<kRounding>(add_for<kRounding>(double{a}, double{b})));
  }
  static float sub(float a, float b) { return add(a, -b); }
  // With .ftz, a result below the least normal number is flushed even if it would round up to it; an H100 does so.
  // `exact` is the sum or the product, or rounded to odd.
  static float out_of(double exact, float x) {
    if constexpr (kFlush) x = absolute_of(exact) < 0x1p-126 ? bits_as<float>(bits_as<u32>(x) & 0x80000000u) : x;
    return out(x);
  }
  static float mul(float a, float b) {
    a = in(a);
    b = in(b);
    const double exact = double{a} * double{b};
    if constexpr (kRounding == Rounding::nearest) return out_of(exact, canonical(a * b));
    return out_of(exact, directed<kRounding>(exact));
  }
  static float fma(float a, float b, float c) {
    a = in(a);
    b = in(b);
    c = in(c);
#if defined(__FMA__)
    // Without .ftz the exact sum is not needed.
    if constexpr (kRounding == Rounding::nearest && !kFlush) return out(canonical(__builtin_fmaf(a, b, c)));
#endif
    const double exact = add_for<kRounding>(double{a} * double{b}, double{c});
    return out_of(exact, directed<kRounding>(exact));
  }
};

inline double add_f64(double a, double b) {
  return with_nan_of(a + b, a, b);
}
inline double sub_f64(double a, double b) {
  return with_nan_of(a - b, a, b);
}
inline double mul_f64(double a, double b) {
  return with_nan_of(a * b, a, b);
}
inline double fma_f64(double a, double b, double c) {
  return with_nan_of(__builtin_fma(a, b, c), a, b, c);
}

template <Rounding kRounding, bool kFlush, bool kSaturate>
inline OpHandler find_f32_arithmetic(const OpQuery& query) {
  using Arithmetic = F32<kRounding, kFlush, kSaturate>;
  const bool three = query.opcode == Opcode::fma || query.opcode == Opcode::mad;
  if (!has_widths(query, 4, 4, 4, three ? 4 : 0)) return nullptr;
  switch (query.opcode) {
    case Opcode::add:
      return lanewise<Arithmetic::add>;
    case Opcode::sub:
      return lanewise<Arithmetic::sub>;
    case Opcode::mul:
      return lanewise<Arithmetic::mul>;
    case Opcode::fma:
    case Opcode::mad:
      return lanewise<Arithmetic::fma>;
    default:
      return nullptr;
  }
}
// .f32x2: two numbers in 64 bits, each as by itself.
//
//   add.f32x2 (3f800000,40000000) (3f800000,3f800000) = (40000000,40400000)      upper half, lower half
inline float lower_of(u64 x) {
  return bits_as<float>(static_cast<u32>(x));
}
inline float upper_of(u64 x) {
  return bits_as<float>(static_cast<u32>(x >> 32));
}
inline u64 pair_of(float upper, float lower) {
  return u64{bits_as<u32>(upper)} << 32 | bits_as<u32>(lower);
}
template <float (*kOne)(float, float)>
inline u64 of_halves(u64 a, u64 b) {
  return pair_of(kOne(upper_of(a), upper_of(b)), kOne(lower_of(a), lower_of(b)));
}
template <float (*kOne)(float, float, float)>
inline u64 of_halves_3(u64 a, u64 b, u64 c) {
  return pair_of(kOne(upper_of(a), upper_of(b), upper_of(c)), kOne(lower_of(a), lower_of(b), lower_of(c)));
}

template <Rounding kRounding, bool kFlush>
inline OpHandler find_f32x2_of(const OpQuery& query) {
  using One = F32<kRounding, kFlush, false>;
  if (!has_widths(query, 8, 8, 8, query.opcode == Opcode::fma ? 8 : 0)) return nullptr;
  switch (query.opcode) {
    case Opcode::add:
      return lanewise<of_halves<One::add>>;
    case Opcode::sub:
      return lanewise<of_halves<One::sub>>;
    case Opcode::mul:
      return lanewise<of_halves<One::mul>>;
    case Opcode::fma:
      return lanewise<of_halves_3<One::fma>>;
    default:
      return nullptr;
  }
}
template <Rounding kRounding>
inline OpHandler find_f32x2_rounded(const OpQuery& query) {
  return query.ftz ? find_f32x2_of<kRounding, true>(query) : find_f32x2_of<kRounding, false>(query);
}
inline OpHandler find_f32x2(const OpQuery& query) {
  if (query.fused != Fused::none) return nullptr;
  switch (query.rounding) {
    case Rounding::nearest:
      return find_f32x2_rounded<Rounding::nearest>(query);
    case Rounding::zero:
      return find_f32x2_rounded<Rounding::zero>(query);
    case Rounding::down:
      return find_f32x2_rounded<Rounding::down>(query);
    case Rounding::up:
      return find_f32x2_rounded<Rounding::up>(query);
    default:
      return nullptr;
  }
}

template <Rounding kRounding>
inline OpHandler find_f32_rounded(const OpQuery& query) {
  if (query.ftz) {
    return query.sat ? find_f32_arithmetic<kRounding, true, true>(query)
                     : find_f32_arithmetic<kRounding, true, false>(query);
  }
  return query.sat ? find_f32_arithmetic<kRounding, false, true>(query)
                   : find_f32_arithmetic<kRounding, false, false>(query);
}

template <bool kMax, bool kNan, bool kXorSign>
inline OpHandler find_extreme_of(const OpQuery& query) {
  if (query.type == Type::f64) return kNan || kXorSign ? nullptr : lanewise<extreme<double, kMax, false, false>>;
  return query.ftz ? lanewise<extreme_flushed<kMax, kNan, kXorSign>> : lanewise<extreme<float, kMax, kNan, kXorSign>>;
}
template <bool kMax>
inline OpHandler find_extreme(const OpQuery& query) {
  if (query.nan)
    return query.xorsign ? find_extreme_of<kMax, true, true>(query) : find_extreme_of<kMax, true, false>(query);
  return query.xorsign ? find_extreme_of<kMax, false, true>(query) : find_extreme_of<kMax, false, false>(query);
}

// A fused product and sum: a b - c and c - a b are fma with one operand negated, which is exact.
template <bool kFlush, bool kTurnProduct, bool kTurnSummand>
inline float fused_sum(float a, float b, float c) {
  return F32<Rounding::nearest, kFlush, false>::fma(kTurnProduct ? -a : a, b, kTurnSummand ? -c : c);
}
template <bool kFlush>
inline OpHandler find_fused(const OpQuery& query) {
  if (!has_widths(query, 4, 4, 4, 4)) return nullptr;
  switch (query.fused) {
    case Fused::plus:
      return lanewise<fused_sum<kFlush, false, false>>;
    case Fused::minus:
      return lanewise<fused_sum<kFlush, false, true>>;
    case Fused::subtracted:
      return lanewise<fused_sum<kFlush, true, false>>;
    default:
      return nullptr;
  }
}

inline OpHandler find_f32(const OpQuery& query) {
  if (query.fused != Fused::none) return query.ftz ? find_fused<true>(query) : find_fused<false>(query);
  switch (query.opcode) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
    case Opcode::fma:
    case Opcode::mad:
      switch (query.rounding) {
        case Rounding::nearest:
          return find_f32_rounded<Rounding::nearest>(query);
        case Rounding::zero:
          return find_f32_rounded<Rounding::zero>(query);
        case Rounding::down:
          return find_f32_rounded<Rounding::down>(query);
        case Rounding::up:
          return find_f32_rounded<Rounding::up>(query);
        default:
          return nullptr;
      }
    case Opcode::neg:
      if (!has_widths(query, 4, 4)) return nullptr;
      return query.ftz ? lanewise<negate_flushed> : lanewise<negate_number<float>>;
    case Opcode::abs:
      if (!has_widths(query, 4, 4)) return nullptr;
      return query.ftz ? lanewise<absolute_flushed> : lanewise<absolute_number<float>>;
    case Opcode::min:
      return has_widths(query, 4, 4, 4) ? find_extreme<false>(query) : nullptr;
    case Opcode::max:
      return has_widths(query, 4, 4, 4) ? find_extreme<true>(query) : nullptr;
    default:
      return nullptr;
  }
}

inline OpHandler find_f64(const OpQuery& query) {
  const bool nearest = query.rounding == Rounding::nearest && !query.sat && !query.ftz;
  switch (query.opcode) {
    case Opcode::add:
      return nearest && has_widths(query, 8, 8, 8) ? lanewise<add_f64> : nullptr;
    case Opcode::sub:
      return nearest && has_widths(query, 8, 8, 8) ? lanewise<sub_f64> : nullptr;
    case Opcode::mul:
      return nearest && has_widths(query, 8, 8, 8) ? lanewise<mul_f64> : nullptr;
    case Opcode::fma:
    case Opcode::mad:
      return nearest && has_widths(query, 8, 8, 8, 8) ? lanewise<fma_f64> : nullptr;
    case Opcode::neg:
      return has_widths(query, 8, 8) ? lanewise<negate_number<double>> : nullptr;
    case Opcode::abs:
      return has_widths(query, 8, 8) ? lanewise<absolute_number<double>> : nullptr;
    case Opcode::min:
      return has_widths(query, 8, 8, 8) ? find_extreme<false>(query) : nullptr;
    case Opcode::max:
      return has_widths(query, 8, 8, 8) ? find_extreme<true>(query) : nullptr;
    default:
      return nullptr;
  }
}

inline OpHandler find_float(const OpQuery& query) {
  // Sums of mixed types (add.f32.f16) require newer architectures.
  if (query.type_count > 1) return nullptr;
  if (query.type == Type::f32) return find_f32(query);
  if (query.type == Type::f64) return find_f64(query);
  if (query.type == Type::f32x2) return find_f32x2(query);
  return nullptr;
}

}  // namespace
}  // namespace kvscope::ptx::semantics
