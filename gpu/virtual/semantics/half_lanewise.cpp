// f16 and bf16, single and in pairs: add sub mul fma, min max, neg abs, and the approximated functions.
//
// A sum or product of two of them is exact in double, or rounded there to odd. Rounding it once more to 16 bits gives
// the correctly rounded exact result (53 bits >= 11 + 2).
//
//   fma.rn.f16x2 (3c01,bc01) (3c01,3c01) (8000,3c00) = 3c02, 9800      .relu 3c02, 0000      .sat 3c00, 0000
#include "core/base/portable_math.h"
#include "gpu/virtual/semantics/detail/approx_loops.h"
#include "gpu/virtual/semantics/detail/extremes.h"
#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics {
namespace {

struct HalfPrecision {
  static constexpr u16 kOne = 0x3c00;
  static float value(u16 x) { return f16_to_f32(x); }
  static u16 bits(double x) { return f64_to_f16(x); }
};
struct Brain {
  static constexpr u16 kOne = 0x3f80;
  static float value(u16 x) { return bf16_to_f32(x); }
  static u16 bits(double x) { return f64_to_bf16(x); }
};

enum class Limit : std::uint8_t { none, saturate, relu };
bool is_nan(float x) {
  return x != x;
}
// Applies the modifiers to the result: flush, then clamp to [+0, 1], or negative numbers to +0.
template <class H, bool kFlush, Limit kLimit>
u16 leave(double exact) {
  u16 x = H::bits(exact);
  // Flushed before rounding: a result that would round up to the least normal number is below it.
  if constexpr (kFlush) x = absolute_of(exact) < 0x1p-14 ? static_cast<u16>(x & 0x8000) : x;
  const bool nan = is_nan(H::value(x));
  const bool negative = (x & 0x8000) != 0;
  if constexpr (kLimit == Limit::saturate) return nan || negative ? u16{0} : x > H::kOne ? H::kOne : x;
  if constexpr (kLimit == Limit::relu) return nan ? kNan16 : negative ? u16{0} : x;
  return x;
}
// With .oob, an operand with these bits counts as zero. Copies use them to fill what is outside the tensor.
constexpr u16 kOutOfBounds = 0x7ff7;
template <class H, bool kFlush, bool kOob = false>
double enter(u16 x) {
  if (kOob && (x & 0x7fff) == kOutOfBounds) return 0;
  return double{H::value(kFlush ? flush_f16(x) : x)};
}

template <class H, bool kFlush, Limit kLimit>
struct Arithmetic {
  static u16 add(u16 a, u16 b) {
    return leave<H, kFlush, kLimit>(add_to_odd(enter<H, kFlush>(a), enter<H, kFlush>(b)));
  }
  static u16 sub(u16 a, u16 b) { return add(a, static_cast<u16>(b ^ 0x8000)); }
  static u16 mul(u16 a, u16 b) { return leave<H, kFlush, kLimit>(enter<H, kFlush>(a) * enter<H, kFlush>(b)); }
  static u16 fma(u16 a, u16 b, u16 c) {
    return leave<H, kFlush, kLimit>(add_to_odd(enter<H, kFlush>(a) * enter<H, kFlush>(b), enter<H, kFlush>(c)));
  }
};
template <class H, Limit kLimit>
u16 fma_oob(u16 a, u16 b, u16 c) {
  const double product = enter<H, false, true>(a) * enter<H, false, true>(b);
  return leave<H, false, kLimit>(add_to_odd(product, enter<H, false, true>(c)));
}

// Exact: the result is one of the operands, or NaN.
template <class H, bool kFlush, bool kMax, bool kNan, bool kXorSign>
u16 extreme_of(u16 a, u16 b) {
  const float x = H::value(kFlush ? flush_f16(a) : a);
  const float y = H::value(kFlush ? flush_f16(b) : b);
  const u16 bits = H::bits(double{extreme<float, kMax, kNan, kXorSign>(x, y)});
  // The sign is that of both operands' bits, also of a NaN, whose sign the conversion drops.
  if constexpr (kXorSign) return bits == kNan16 ? bits : static_cast<u16>((bits & 0x7fff) | ((a ^ b) & 0x8000));
  return bits;
}
template <class H>
u16 negate_16(u16 x) {
  return is_nan(H::value(x)) ? kNan16 : static_cast<u16>(x ^ 0x8000);
}
template <class H>
u16 absolute_16(u16 x) {
  return is_nan(H::value(x)) ? kNan16 : static_cast<u16>(x & 0x7fff);
}
template <class H>
u16 negate_16_flushed(u16 x) {
  return flush_f16(negate_16<H>(x));
}
template <class H>
u16 absolute_16_flushed(u16 x) {
  return flush_f16(absolute_16<H>(x));
}

// The f32 function's result, rounded once more.
template <class H, bool kFlush>
u16 exponential_of(u16 a) {
  const float x = H::value(a);
  return H::bits(double{exponential<kFlush>(x)});
}
template <class H>
u16 tangent_of(u16 a) {
  const double x = double{H::value(a)};
  return H::bits(x == x ? portable_tanh(x) : x);
}

// --- one number, or two in a register --------------------------------------------------------------------------------

template <auto kOne>
struct Pairwise;
template <u16 (*kOne)(u16)>
struct Pairwise<kOne> {
  static u32 of(u32 a) { return u32{kOne(static_cast<u16>(a >> 16))} << 16 | kOne(static_cast<u16>(a)); }
};
template <u16 (*kOne)(u16, u16)>
struct Pairwise<kOne> {
  static u32 of(u32 a, u32 b) {
    const u32 upper = kOne(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16));
    return upper << 16 | kOne(static_cast<u16>(a), static_cast<u16>(b));
  }
};
template <u16 (*kOne)(u16, u16, u16)>
struct Pairwise<kOne> {
  static u32 of(u32 a, u32 b, u32 c) {
    const u32 upper = kOne(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16), static_cast<u16>(c >> 16));
    return upper << 16 | kOne(static_cast<u16>(a), static_cast<u16>(b), static_cast<u16>(c));
  }
};
template <auto kOne>
OpHandler alone_or_paired(const OpQuery& query) {
  return query.bytes == 2 ? lanewise<kOne> : lanewise<Pairwise<kOne>::of>;
}

template <class H, bool kFlush, Limit kLimit>
OpHandler find_arithmetic(const OpQuery& query) {
  using A = Arithmetic<H, kFlush, kLimit>;
  switch (query.opcode) {
    case Opcode::add:
      return alone_or_paired<A::add>(query);
    case Opcode::sub:
      return alone_or_paired<A::sub>(query);
    case Opcode::mul:
      return alone_or_paired<A::mul>(query);
    default:
      return alone_or_paired<A::fma>(query);
  }
}
template <class H, bool kFlush>
OpHandler find_limited(const OpQuery& query) {
  if (query.sat) return find_arithmetic<H, kFlush, Limit::saturate>(query);
  if (query.relu) return find_arithmetic<H, kFlush, Limit::relu>(query);
  return find_arithmetic<H, kFlush, Limit::none>(query);
}

template <class H, bool kFlush, bool kMax>
OpHandler find_extreme_16(const OpQuery& query) {
  if (query.nan) {
    return query.xorsign ? alone_or_paired<extreme_of<H, kFlush, kMax, true, true>>(query)
                         : alone_or_paired<extreme_of<H, kFlush, kMax, true, false>>(query);
  }
  return query.xorsign ? alone_or_paired<extreme_of<H, kFlush, kMax, false, true>>(query)
                       : alone_or_paired<extreme_of<H, kFlush, kMax, false, false>>(query);
}

template <class H, bool kFlush>
OpHandler find_half(const OpQuery& query) {
  switch (query.opcode) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
      return find_limited<H, kFlush>(query);
    case Opcode::fma:
      if (!query.oob) return find_limited<H, kFlush>(query);
      if (query.ftz || query.sat) return nullptr;
      return query.relu ? alone_or_paired<fma_oob<H, Limit::relu>>(query)
                        : alone_or_paired<fma_oob<H, Limit::none>>(query);
    case Opcode::min:
      return find_extreme_16<H, kFlush, false>(query);
    case Opcode::max:
      return find_extreme_16<H, kFlush, true>(query);
    case Opcode::neg:
      return kFlush ? alone_or_paired<negate_16_flushed<H>>(query) : alone_or_paired<negate_16<H>>(query);
    case Opcode::abs:
      return kFlush ? alone_or_paired<absolute_16_flushed<H>>(query) : alone_or_paired<absolute_16<H>>(query);
    case Opcode::tanh:
      return alone_or_paired<tangent_of<H>>(query);
    default:
      return nullptr;
  }
}

}  // namespace

OpHandler half(const OpQuery& query) {
  if (query.rounding != Rounding::nearest || query.type_count > 1) return nullptr;
  const bool is_f16 = query.type == Type::f16 || query.type == Type::f16x2;
  const bool is_bf16 = query.type == Type::bf16 || query.type == Type::bf16x2;
  if (!is_f16 && !is_bf16) return nullptr;
  if (!has_widths(query, query.bytes, query.bytes)) return nullptr;
  if (query.opcode == Opcode::ex2) {
    if (is_f16) return alone_or_paired<exponential_of<HalfPrecision, false>>(query);
    return alone_or_paired<exponential_of<Brain, true>>(query);
  }
  if (is_f16) return query.ftz ? find_half<HalfPrecision, true>(query) : find_half<HalfPrecision, false>(query);
  return query.ftz ? nullptr : find_half<Brain, false>(query);
}

}  // namespace kvscope::ptx::semantics
