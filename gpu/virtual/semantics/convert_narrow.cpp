// cvt to and from the formats of tensor cores: pairs of 8, 6 and 4 bits, scales, tf32, f16 and bf16 with .relu or
// .satfinite or toward zero, in pairs; the same by random bits (.rs), in pairs and fours; and cvt.pack. The first source
// becomes the upper part.
//
//   cvt.rn.satfinite.e4m3x2.f32 d, 448, 464    7e7e      one rounding, never through f16
//   cvt.pack.sat.s8.s32.b32 d, 300, -300, c    (c << 16) | 7f80
#include "gpu/virtual/semantics/detail/fp8.h"
#include "gpu/virtual/semantics/detail/lanes.h"
#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics {
namespace {

// --- f16 and bf16 ----------------------------------------------------------------------------------------------------
// The largest finite number is one below infinity.
template <class F, Rounding kRounding, bool kRelu, bool kFinite>
u16 to_16(float x) {
  const u32 bits = round_to<F, kRounding>(double{x}, kNan16);
  const u32 magnitude = bits & 0x7fff;
  if (x != x) return kNan16;
  if (kRelu && (bits & 0x8000) != 0) return 0;
  if (kFinite && magnitude >= F::kInfinity) return static_cast<u16>((bits & 0x8000) | (F::kInfinity - 1));
  return static_cast<u16>(bits);
}
template <u16 (*kOne)(float)>
u32 pair_16(float upper, float lower) {
  return u32{kOne(upper)} << 16 | kOne(lower);
}
template <u16 (*kOne)(float)>
OpHandler single_or_paired(const OpQuery& query) {
  if (query.bytes == 2) return has_widths(query, 2, 4) ? lanewise<kOne> : nullptr;
  return has_widths(query, 4, 4, 4) ? lanewise<pair_16<kOne>> : nullptr;
}
template <class F, Rounding kRounding>
OpHandler find_to_16_rounded(const OpQuery& query) {
  if (query.relu) {
    return query.satfinite ? single_or_paired<to_16<F, kRounding, true, true>>(query)
                           : single_or_paired<to_16<F, kRounding, true, false>>(query);
  }
  return query.satfinite ? single_or_paired<to_16<F, kRounding, false, true>>(query)
                         : single_or_paired<to_16<F, kRounding, false, false>>(query);
}
template <class F>
OpHandler find_to_16(const OpQuery& query) {
  if (query.rounding == Rounding::nearest) return find_to_16_rounded<F, Rounding::nearest>(query);
  return query.rounding == Rounding::zero ? find_to_16_rounded<F, Rounding::zero>(query) : nullptr;
}

// --- tf32 ------------------------------------------------------------------------------------------------------------
// f32 with 10 bits of fraction, the lower 13 zero. A NaN becomes 7fffe000; .rna treats it as bits: it drops
// the lower ones, and .satfinite takes one step down, as from infinity. Measured on an H100 (docs/hardware).
using FormatTf32 = Format<8, 10>;
template <Rounding kRounding, bool kRelu, bool kFinite>
u32 to_tf32(float x) {
  if (x != x) {
    const u32 kept = bits_as<u32>(x) & ~0x1fffu;
    return kRounding != Rounding::away ? 0x7fffe000u : kFinite ? kept - 0x2000u : kept;
  }
  const u32 bits = round_to<FormatTf32, kRounding>(double{x}, 0) << 13;
  if (kRelu && (bits >> 31) != 0) return 0;
  if (kFinite && (bits & 0x7fffffffu) == 0x7f800000u) return (bits & 0x80000000u) | 0x7f7fe000u;
  return bits;
}
template <Rounding kRounding>
OpHandler find_tf32_rounded(const OpQuery& query) {
  if (query.relu) {
    return query.satfinite ? lanewise<to_tf32<kRounding, true, true>> : lanewise<to_tf32<kRounding, true, false>>;
  }
  return query.satfinite ? lanewise<to_tf32<kRounding, false, true>> : lanewise<to_tf32<kRounding, false, false>>;
}
OpHandler find_tf32(const OpQuery& query) {
  if (!has_widths(query, 4, 4)) return nullptr;
  switch (query.rounding) {
    case Rounding::nearest:
      return find_tf32_rounded<Rounding::nearest>(query);
    case Rounding::zero:
      return find_tf32_rounded<Rounding::zero>(query);
    case Rounding::away:
      return find_tf32_rounded<Rounding::away>(query);
    default:
      return nullptr;
  }
}

// --- 8 bits ----------------------------------------------------------------------------------------------------------
template <u8 (*kOne)(double), bool kRelu>
u32 to_8(float x) {
  const u32 bits = kOne(double{x});
  return kRelu && (bits & 0x80) != 0 ? 0 : bits;  // NaN is 7f
}
template <u8 (*kOne)(double), bool kRelu>
u16 pair_8(float upper, float lower) {
  return static_cast<u16>(to_8<kOne, kRelu>(upper) << 8 | to_8<kOne, kRelu>(lower));
}
template <u8 (*kOne)(double), bool kRelu>
u16 pair_8_of_f16(u32 pair) {
  return pair_8<kOne, kRelu>(f16_to_f32(static_cast<u16>(pair >> 16)), f16_to_f32(static_cast<u16>(pair)));
}
template <u8 (*kOne)(double)>
OpHandler find_to_8(const OpQuery& query) {
  if (!query.satfinite) return nullptr;
  if (query.type2 == Type::f32) {
    if (!has_widths(query, 2, 4, 4)) return nullptr;
    return query.relu ? lanewise<pair_8<kOne, true>> : lanewise<pair_8<kOne, false>>;
  }
  if (query.type2 != Type::f16x2 || !has_widths(query, 2, 4)) return nullptr;
  return query.relu ? lanewise<pair_8_of_f16<kOne, true>> : lanewise<pair_8_of_f16<kOne, false>>;
}

template <u16 (*kOne)(u8), bool kRelu>
u32 f16_pair_of_8(u16 pair) {
  const auto one = [](u8 x) {
    const u16 bits = kOne(x);
    return kRelu && (bits & 0x8000) != 0 ? u16{0} : bits;  // NaN is 7fff
  };
  return u32{one(static_cast<u8>(pair >> 8))} << 16 | one(static_cast<u8>(pair));
}
template <u16 (*kOne)(u8)>
OpHandler find_of_8(const OpQuery& query) {
  if (!has_widths(query, 4, 2)) return nullptr;
  return query.relu ? lanewise<f16_pair_of_8<kOne, true>> : lanewise<f16_pair_of_8<kOne, false>>;
}

// --- 6 and 4 bits ----------------------------------------------------------------------------------------------------
// Pairs of e2m3 and e3m2 take two bytes, pairs of e2m1 one.
template <int kExponentBits, int kFractionBits>
inline constexpr int kPairShift = kExponentBits + kFractionBits == 3 ? 4 : 8;

template <int kExponentBits, int kFractionBits, bool kRelu>
u16 pair_small(float upper, float lower) {
  const auto one = [](float x) -> u32 {
    const u32 code = to_small<kExponentBits, kFractionBits>(double{x});
    return kRelu && x <= 0 ? 0 : code;
  };
  return static_cast<u16>(one(upper) << kPairShift<kExponentBits, kFractionBits> | one(lower));
}
template <int kExponentBits, int kFractionBits>
OpHandler find_to_small(const OpQuery& query) {
  if (!query.satfinite || query.type2 != Type::f32 || !has_widths(query, 2, 4, 4)) return nullptr;
  return query.relu ? lanewise<pair_small<kExponentBits, kFractionBits, true>>
                    : lanewise<pair_small<kExponentBits, kFractionBits, false>>;
}

template <int kExponentBits, int kFractionBits, bool kRelu>
u32 f16_pair_of_small(u16 pair) {
  const auto one = [](u32 code) -> u32 {
    const u16 bits = f64_to_f16(double{small_to_f32<kExponentBits, kFractionBits>(code)});
    return kRelu && (bits & 0x8000) != 0 ? 0 : bits;
  };
  return one(u32{pair} >> kPairShift<kExponentBits, kFractionBits>) << 16 | one(pair);
}
template <int kExponentBits, int kFractionBits>
OpHandler find_of_small(const OpQuery& query) {
  if (!has_widths(query, 4, 2)) return nullptr;
  return query.relu ? lanewise<f16_pair_of_small<kExponentBits, kFractionBits, true>>
                    : lanewise<f16_pair_of_small<kExponentBits, kFractionBits, false>>;
}

// --- ue8m0: powers of two, 2^(code - 127), NaN ff ------------------------------------------------------------------
// Of the magnitude, rounded down or up to a power of two, at least 2^-127. Past 2^127: ff, with .satfinite fe.
template <Rounding kRounding, bool kFinite>
u32 to_ue8m0(float x) {
  const u32 magnitude = bits_as<u32>(x) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0xff;
  const bool inexact = (magnitude & 0x7fffffu) != 0 && magnitude > 0x00400000u && magnitude < 0x7f800000u;
  const u32 code = (magnitude >> 23) + (kRounding == Rounding::up && inexact ? 1 : 0);
  return kFinite && code == 0xff ? 0xfe : code;
}
template <Rounding kRounding, bool kFinite>
u16 pair_ue8m0(float upper, float lower) {
  return static_cast<u16>(to_ue8m0<kRounding, kFinite>(upper) << 8 | to_ue8m0<kRounding, kFinite>(lower));
}
template <Rounding kRounding, bool kFinite>
u16 pair_ue8m0_of_bf16(u32 pair) {
  return pair_ue8m0<kRounding, kFinite>(bits_as<float>(pair & 0xffff0000u), bits_as<float>(pair << 16));
}
template <Rounding kRounding>
OpHandler find_to_ue8m0(const OpQuery& query) {
  if (query.type2 == Type::f32 && has_widths(query, 2, 4, 4))
    return query.satfinite ? lanewise<pair_ue8m0<kRounding, true>> : lanewise<pair_ue8m0<kRounding, false>>;
  if (query.type2 != Type::bf16x2 || !has_widths(query, 2, 4)) return nullptr;
  return query.satfinite ? lanewise<pair_ue8m0_of_bf16<kRounding, true>>
                         : lanewise<pair_ue8m0_of_bf16<kRounding, false>>;
}
u32 bf16_pair_of_ue8m0(u16 pair) {
  const auto one = [](u32 code) -> u32 { return code == 0xff ? kNan16 : code == 0 ? 0x0040 : code << 7; };
  return one(u32{pair} >> 8) << 16 | one(u32{pair} & 0xff);
}

// --- .rs: stochastic rounding ----------------------------------------------------------------------------------------
// Random bits are added to the first bits that the format drops, as integers. A carry rounds away from zero:
//
//   e4m3 of 1 + 3/16:   fraction 001|1 0000000 ...   001 is kept, 8 bits are dropped: 80
//   rbits below 80: 1.001 (code 39)      rbits from 80 on: 1.010 (code 3a)
//
// So half of all random bits round it away. In the subnormal range, the unit of the last kept bit is fixed. Lower bits
// that are dropped cannot change the carry. f16 takes 13 random bits, bf16 16, all others 8.
struct StochasticFormat {
  int fraction;   // [bits]
  int least;      // exponent of the smallest normal number
  int random;     // [bits]
  u32 highest;    // code of the largest finite number
  bool infinity;  // the next code is infinity
  u32 nan;        // code
  int code_bits;  // with the sign
};
constexpr StochasticFormat kRandomF16{10, -14, 13, 0x7bff, true, kNan16, 16};
constexpr StochasticFormat kRandomBf16{7, -126, 16, 0x7f7f, true, kNan16, 16};
constexpr StochasticFormat kRandomE4m3{3, -6, 8, 0x7e, false, 0x7f, 8};
constexpr StochasticFormat kRandomE5m2{2, -14, 8, 0x7b, false, 0x7f, 8};
constexpr StochasticFormat kRandomE2m3{3, 0, 8, 0x1f, false, 0x1f, 6};
constexpr StochasticFormat kRandomE3m2{2, -2, 8, 0x1f, false, 0x1f, 6};
constexpr StochasticFormat kRandomE2m1{1, 0, 8, 0x7, false, 0x7, 4};

template <const StochasticFormat& kTo, bool kRelu, bool kFinite>
u32 round_stochastic(float x, u32 random) {
  const u32 bits = bits_as<u32>(x);
  const u32 magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return kTo.nan;
  const u32 sign = (bits >> 31) << (kTo.code_bits - 1);
  if (kRelu && sign != 0) return 0;
  const u32 past = kTo.infinity && !kFinite ? kTo.highest + 1 : kTo.highest;
  if (magnitude == 0x7f800000u) return sign | past;
  const int biased = static_cast<int>(magnitude >> 23);
  const u32 significand = (magnitude & 0x7fffffu) | (biased == 0 ? 0 : 0x800000u);
  const int exponent = biased == 0 ? -126 : biased - 127;
  const int unit = (exponent > kTo.least ? exponent : kTo.least) - kTo.fraction;  // of the last kept bit
  const int dropped = unit - (exponent - 23);                                     // [bits] of the significand
  const int below = dropped - kTo.random;
  const u32 kept = dropped < 32 ? significand >> dropped : 0;
  const u32 first = below < 32 ? significand >> below & ((u32{1} << kTo.random) - 1) : 0;
  const u32 rounded = kept + ((first + (random & ((u32{1} << kTo.random) - 1))) >> kTo.random);
  const u32 code = (static_cast<u32>(unit + kTo.fraction - kTo.least) << kTo.fraction) + rounded;
  return sign | (code > kTo.highest ? past : code);
}

template <const StochasticFormat& kTo, bool kRelu, bool kFinite>
u32 pair_stochastic(float upper, float lower, u32 random) {
  return round_stochastic<kTo, kRelu, kFinite>(upper, random >> 16) << 16 |
         round_stochastic<kTo, kRelu, kFinite>(lower, random);
}
template <const StochasticFormat& kTo>
OpHandler find_pair_stochastic(const OpQuery& query) {
  if (!has_widths(query, 4, 4, 4, 4)) return nullptr;
  if (query.relu)
    return query.satfinite ? lanewise<pair_stochastic<kTo, true, true>> : lanewise<pair_stochastic<kTo, true, false>>;
  return query.satfinite ? lanewise<pair_stochastic<kTo, false, true>> : lanewise<pair_stochastic<kTo, false, false>>;
}

// {a, b, e, f}: a is the upper part. 8 and 6 bits: each takes the byte of the random bits at its own place. 4 bits: the
// lower bytes of both halves are for e and f, the upper ones for a and b (docs/FIDELITY.md).
template <const StochasticFormat& kTo, bool kRelu>
u32 four_stochastic(float a, float b, float e, float f, u32 random) {
  const auto one = [random](float x, int byte) -> u32 {
    return round_stochastic<kTo, kRelu, true>(x, random >> (8 * byte));
  };
  if constexpr (kTo.code_bits == 4) return one(a, 1) << 12 | one(b, 3) << 8 | one(e, 0) << 4 | one(f, 2);
  return one(a, 3) << 24 | one(b, 2) << 16 | one(e, 1) << 8 | one(f, 0);
}
template <const StochasticFormat& kTo, bool kRelu>
void convert_four(std::byte* registers, const Op& op, LaneMask lanes) {
  const Cell<float>* from[4];
  for (int i = 0; i < 4; ++i) from[i] = register_of<float>(registers, op.list[1 + i]);
  const Cell<u32>* random = register_of<u32>(registers, op.list[5]);
  const auto value = [&](int i) {
    return four_stochastic<kTo, kRelu>(from[0][i], from[1][i], from[2][i], from[3][i], random[i]);
  };
  if constexpr (kTo.code_bits == 4) {
    store_lanes<u16>(register_of<u16>(registers, op.list[0]), lanes, [&](int i) { return static_cast<u16>(value(i)); });
  } else {
    store_lanes<u32>(register_of<u32>(registers, op.list[0]), lanes, value);
  }
}
template <const StochasticFormat& kTo>
OpHandler find_four_stochastic(const OpQuery& query) {
  if (!query.satfinite || !query.uses_list || !has_widths(query, query.bytes, 4, 4, 4, 4)) return nullptr;
  return query.relu ? convert_four<kTo, true> : convert_four<kTo, false>;
}
OpHandler find_stochastic(const OpQuery& query) {
  if (query.type2 != Type::f32) return nullptr;
  switch (query.type) {
    case Type::f16x2:
      return find_pair_stochastic<kRandomF16>(query);
    case Type::bf16x2:
      return find_pair_stochastic<kRandomBf16>(query);
    case Type::e4m3x4:
      return find_four_stochastic<kRandomE4m3>(query);
    case Type::e5m2x4:
      return find_four_stochastic<kRandomE5m2>(query);
    case Type::e2m3x4:
      return find_four_stochastic<kRandomE2m3>(query);
    case Type::e3m2x4:
      return find_four_stochastic<kRandomE3m2>(query);
    case Type::e2m1x4:
      return find_four_stochastic<kRandomE2m1>(query);
    default:
      return nullptr;
  }
}

OpHandler find_narrow(const OpQuery& query) {
  if (query.stochastic) return find_stochastic(query);
  switch (query.type) {
    case Type::f16:
      return query.type2 == Type::f32 ? find_to_16<FormatF16>(query) : nullptr;
    case Type::bf16:
      return query.type2 == Type::f32 ? find_to_16<FormatBf16>(query) : nullptr;
    case Type::bf16x2:
      if (query.type2 == Type::ue8m0x2) return has_widths(query, 4, 2) ? lanewise<bf16_pair_of_ue8m0> : nullptr;
      return query.type2 == Type::f32 ? find_to_16<FormatBf16>(query) : nullptr;
    case Type::f16x2:
      if (query.type2 == Type::f32) return find_to_16<FormatF16>(query);
      if (query.type2 == Type::e4m3x2) return find_of_8<e4m3_to_f16>(query);
      if (query.type2 == Type::e2m3x2) return find_of_small<2, 3>(query);
      if (query.type2 == Type::e3m2x2) return find_of_small<3, 2>(query);
      if (query.type2 == Type::e2m1x2) return find_of_small<2, 1>(query);
      return query.type2 == Type::e5m2x2 ? find_of_8<e5m2_to_f16>(query) : nullptr;
    case Type::tf32:
      return query.type2 == Type::f32 ? find_tf32(query) : nullptr;
    case Type::e4m3x2:
      return find_to_8<to_e4m3>(query);
    case Type::e5m2x2:
      return find_to_8<to_e5m2>(query);
    case Type::e2m3x2:
      return find_to_small<2, 3>(query);
    case Type::e3m2x2:
      return find_to_small<3, 2>(query);
    case Type::e2m1x2:
      return find_to_small<2, 1>(query);
    case Type::ue8m0x2:
      return query.rounding == Rounding::up ? find_to_ue8m0<Rounding::up>(query) : find_to_ue8m0<Rounding::zero>(query);
    default:
      return nullptr;
  }
}

// --- cvt.pack --------------------------------------------------------------------------------------------------------
template <class T>
u32 clamped(i32 x) {
  constexpr bool kSigned = T(-1) < T(0);
  constexpr i32 kHighest = kSigned ? (1 << (8 * sizeof(T) - 1)) - 1 : (1 << (8 * sizeof(T))) - 1;
  constexpr i32 kLowest = kSigned ? -kHighest - 1 : 0;
  constexpr u32 kMask = (u32{1} << (8 * sizeof(T))) - 1;
  return static_cast<u32>(x < kLowest ? kLowest : x > kHighest ? kHighest : x) & kMask;
}
template <class T>
u32 packed_16(i32 upper, i32 lower) {
  return clamped<T>(upper) << 16 | clamped<T>(lower);
}
template <class T>
u32 packed_8(i32 upper, i32 lower, u32 before) {
  return before << 16 | clamped<T>(upper) << 8 | clamped<T>(lower);
}
OpHandler find_pack(const OpQuery& query) {
  if (query.type2 != Type::s32 || !has_widths(query, 4, 4, 4, 4)) return nullptr;
  switch (query.type) {
    case Type::u8:
      return lanewise<packed_8<u8>>;
    case Type::s8:
      return lanewise<packed_8<i8>>;
    case Type::u16:
      return lanewise<packed_16<u16>>;
    case Type::s16:
      return lanewise<packed_16<i16>>;
    default:
      return nullptr;
  }
}

}  // namespace

OpHandler convert_narrow(const OpQuery& query) {
  if (query.opcode == Opcode::cvt_pack) return find_pack(query);
  return query.opcode == Opcode::cvt && !query.ftz && !query.sat ? find_narrow(query) : nullptr;
}

}  // namespace kvscope::ptx::semantics
