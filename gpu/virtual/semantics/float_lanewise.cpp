// f64 in the directed roundings, quotients and roots in all of them, sin, cos and tanh of f32, and the approximate
// reciprocals of f64: one lane at a time, with integer arithmetic where a rounding must be exact.
#include "core/base/portable_math.h"
#include "gpu/virtual/semantics/detail/exact_fma.h"
#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics {
namespace {

double nan_f64() {
  return bits_as<double>(kNanF64);
}
template <Rounding kRounding>
double rounded_f64(const Exact& x) {
  return bits_as<double>(round_exact<FormatF64>(x, kRounding));
}

// --- sums and products -----------------------------------------------------------------------------------------------

template <Rounding kRounding>
double fma_exact(double a, double b, double c) {
  return fma_rounded(a, b, c, kRounding);
}
template <Rounding kRounding>
double add_exact(double a, double b) {
  return is_finite(a) && is_finite(b) ? rounded_f64<kRounding>(added(exact_of(a), exact_of(b), kRounding))
                                      : with_nan_of(a + b, a, b);
}
template <Rounding kRounding>
double sub_exact(double a, double b) {
  return b == b ? add_exact<kRounding>(a, -b) : quiet(b);
}
template <Rounding kRounding>
double mul_exact(double a, double b) {
  return is_finite(a) && is_finite(b) ? rounded_f64<kRounding>(multiplied(a, b)) : with_nan_of(a * b, a, b);
}

// --- quotients and roots ---------------------------------------------------------------------------------------------

// Finite, not zero: at least 66 bits of a / b, and whether there is a remainder.
Exact divided(double a, double b) {
  Exact x = exact_of(a);
  const Exact y = exact_of(b);
  const int up = 127 - top_bit(x.significand);
  x.significand <<= up;
  const u128 divisor = y.significand;
  return {x.significand / divisor, x.exponent - up - y.exponent, x.significand % divisor != 0,
          x.negative != y.negative};
}
bool is_special(double x) {
  return !is_finite(x) || x == 0;
}
template <class F, Rounding kRounding>
u64 quotient_bits(double a, double b) {
  return round_exact<F>(divided(a, b), kRounding);
}
template <Rounding kRounding>
double quotient_f64(double a, double b) {
  if (is_special(a) || is_special(b)) return with_nan_of(a / b, b, a);
  return bits_as<double>(quotient_bits<FormatF64, kRounding>(a, b));
}
template <Rounding kRounding, bool kFlush>
float quotient_f32(float a, float b) {
  if constexpr (kFlush) {
    a = flush(a);
    b = flush(b);
  }
  if (is_special(double{a}) || is_special(double{b})) return canonical(a / b);
  const float q = bits_as<float>(static_cast<u32>(quotient_bits<FormatF32, kRounding>(double{a}, double{b})));
  return kFlush ? flush(q) : q;
}
template <Rounding kRounding>
double reciprocal_f64(double a) {
  return quotient_f64<kRounding>(1.0, a);
}
template <Rounding kRounding, bool kFlush>
float reciprocal_f32(float a) {
  return quotient_f32<kRounding, kFlush>(1.0f, a);
}

// Positive and finite: 63 bits of the root.
Exact root_of(double a) {
  Exact x = exact_of(a);
  int up = 125 - top_bit(x.significand);
  if ((x.exponent - up) % 2 != 0) --up;
  const u128 radicand = x.significand << up;
  u128 root = 0;
  for (int bit = 62; bit >= 0; --bit) {
    const u128 longer = root | u128{1} << bit;
    if (longer * longer <= radicand) root = longer;
  }
  return {root, (x.exponent - up) / 2, root * root != radicand, false};
}
template <Rounding kRounding>
double root_f64(double a) {
  if (is_special(a) || a < 0) return a < 0 ? nan_f64() : a != a ? quiet(a) : a;
  return rounded_f64<kRounding>(root_of(a));
}
template <Rounding kRounding, bool kFlush>
float root_f32(float a) {
  if constexpr (kFlush) a = flush(a);
  if (is_special(double{a}) || a < 0) return a < 0 || a != a ? bits_as<float>(kNanF32) : a;
  return bits_as<float>(static_cast<u32>(round_exact<FormatF32>(root_of(double{a}), kRounding)));
}

// --- approximate reciprocals of f64 ----------------------------------------------------------------------------------
// rcp and rsqrt.ftz read and write the upper 32 bits only: 20 bits of the fraction, truncated.
template <bool kFlush>
double upper_half(double x) {
  const u64 bits = bits_as<u64>(x) & 0xffffffff00000000u;
  return bits_as<double>(kFlush && (bits & 0x7ff0000000000000u) == 0 ? bits & 0x8000000000000000u : bits);
}
template <bool kFlush>
double coarse(double x) {
  if (x != x) return bits_as<double>(u64{0x7fffffff00000000u});
  const u64 magnitude = round_magnitude<Format<11, 20>, Rounding::zero>(x);
  const u64 bits = (bits_as<u64>(x) & 0x8000000000000000u) | magnitude << 32;
  return upper_half<kFlush>(bits_as<double>(bits));
}
double coarse_reciprocal(double a) {
  return coarse<true>(1.0 / upper_half<true>(a));
}
template <bool kFlush>
double coarse_reciprocal_root(double a) {
  const double x = upper_half<kFlush>(a);
  return coarse<kFlush>(1.0 / __builtin_sqrt(x));
}

// Without .ftz: the coarse root of the upper word, and one step toward the exact one, as the assembler writes it.
double reciprocal_root(double a) {
  const double x = a;
  if (!(x > 0) || !is_finite(x)) return with_nan_of(1.0 / __builtin_sqrt(x), x);
  if (x < 0x1p-1022) return reciprocal_root(x * 0x1p54) * 0x1p27;
  const double y = coarse_reciprocal_root<false>(x);
  const double error = __builtin_fma(x, -(y * y), 1.0);
  return __builtin_fma(__builtin_fma(error, 0.375, 0.5), error * y, y);
}

// --- sin, cos, tanh --------------------------------------------------------------------------------------------------

struct Reduced {
  u32 quadrant = 0;
  double angle = 0;  // |angle| <= pi/4; the argument is quadrant * pi/2 + angle, modulo whole turns
};

// x = m 2^e. Uses the bits of 2/pi that do not form whole turns when multiplied by 2^e: 192 bits from place e - 2.
// Multiplied by m they give two bits of quadrant and 190 of fraction.
Reduced reduced(float x) {
  const u32 bits = bits_as<u32>(x) & 0x7fffffffu;
  if (bits <= 0x3f490fdau) return {0, double{x}};  // pi/4
  // 64 zeros, then 2/pi.
  constexpr u64 kTwoOverPi[7] = {0,
                                 0xa2f9836e4e441529u,
                                 0xfc2757d1f534ddc0u,
                                 0xdb6295993c439041u,
                                 0xfe5163abdebbc561u,
                                 0xb7246e3a424dd2e0u,
                                 0x06492eea09d1921cu};
  const u64 m = (bits & 0x7fffffu) | 0x800000u;
  const int from = static_cast<int>(bits >> 23) - 150 + 62;  // e - 2, counted from the end of the 64 zeros
  u64 window[3];
  for (int i = 0; i < 3; ++i) {
    const int word = from / 64 + i;
    const int shift = from % 64;
    window[i] = kTwoOverPi[word] << shift | (shift == 0 ? 0 : kTwoOverPi[word + 1] >> (64 - shift));
  }
  const u128 low = static_cast<u128>(window[2]) * m;
  const u128 middle = static_cast<u128>(window[1]) * m + static_cast<u64>(low >> 64);
  const u64 high = window[0] * m + static_cast<u64>(middle >> 64);
  const u128 fraction = (static_cast<u128>(high) << 64 | static_cast<u64>(middle)) << 2;
  const bool past_half = static_cast<i128>(fraction) < 0;
  const u128 magnitude = past_half ? u128{0} - fraction : fraction;
  const double part = static_cast<double>(static_cast<u64>(magnitude >> 64)) * 0x1p-64 +
                      static_cast<double>(static_cast<u64>(magnitude)) * 0x1p-128;
  const double angle = part * 0x1.921fb54442d18p+0;
  Reduced r{static_cast<u32>(high >> 62) + (past_half ? 1 : 0), past_half ? -angle : angle};
  if ((bits_as<u32>(x) >> 31) != 0) r = {u32{0} - r.quadrant, -r.angle};
  return r;
}
double sine_of(double r) {
  const double z = r * r;
  const double q =
      -1.0 / 6 +
      z * (1.0 / 120 +
           z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800 + z * (1.0 / 6227020800.0 +
                                                                              z * (-1.0 / 1307674368000.0 +
                                                                                   z * (1.0 / 355687428096000.0)))))));
  return r * (1.0 + z * q);  // -0 stays -0
}
double cosine_of(double r) {
  const double z = r * r;
  const double q =
      1.0 / 24 +
      z * (-1.0 / 720 +
           z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * (1.0 / 479001600.0 +
                                                         z * (-1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0))))));
  return (1.0 - 0.5 * z) + z * z * q;
}
template <bool kFlush, u32 kTurn>  // kTurn 1: cos x = sin(x + pi/2)
float circular(float a) {
  const float x = kFlush ? flush(a) : a;
  if (!is_finite(double{x})) return bits_as<float>(kNanF32);
  const Reduced r = reduced(x);
  const u32 quadrant = r.quadrant + kTurn;
  const double y = (quadrant & 1) != 0 ? cosine_of(r.angle) : sine_of(r.angle);
  const float rounded = static_cast<float>((quadrant & 2) != 0 ? -y : y);
  return kFlush ? flush(rounded) : rounded;
}
float tangent(float a) {
  return a == a ? static_cast<float>(portable_tanh(double{a})) : bits_as<float>(kNanF32);
}

// --- selection of the handler ----------------------------------------------------------------------------------------

template <Rounding kRounding>
OpHandler find_f64(const OpQuery& query) {
  switch (query.opcode) {
    case Opcode::add:
      return lanewise<add_exact<kRounding>>;
    case Opcode::sub:
      return lanewise<sub_exact<kRounding>>;
    case Opcode::mul:
      return lanewise<mul_exact<kRounding>>;
    case Opcode::fma:
    case Opcode::mad:
      return lanewise<fma_exact<kRounding>>;
    case Opcode::div:
      return lanewise<quotient_f64<kRounding>>;
    case Opcode::rcp:
      return lanewise<reciprocal_f64<kRounding>>;
    case Opcode::sqrt:
      return lanewise<root_f64<kRounding>>;
    default:
      return nullptr;
  }
}
template <Rounding kRounding, bool kFlush>
OpHandler find_f32(const OpQuery& query) {
  switch (query.opcode) {
    case Opcode::div:
      return lanewise<quotient_f32<kRounding, kFlush>>;
    case Opcode::rcp:
      return lanewise<reciprocal_f32<kRounding, kFlush>>;
    case Opcode::sqrt:
      return lanewise<root_f32<kRounding, kFlush>>;
    default:
      return nullptr;
  }
}
template <Rounding kRounding>
OpHandler find_rounded(const OpQuery& query) {
  if (query.type == Type::f64) return find_f64<kRounding>(query);
  return query.ftz ? find_f32<kRounding, true>(query) : find_f32<kRounding, false>(query);
}

OpHandler find_function(const OpQuery& query) {
  if (query.type == Type::f64) {
    if (query.opcode == Opcode::rcp) return query.ftz ? lanewise<coarse_reciprocal> : nullptr;
    if (query.opcode != Opcode::rsqrt) return nullptr;
    return query.ftz ? lanewise<coarse_reciprocal_root<true>> : lanewise<reciprocal_root>;
  }
  switch (query.opcode) {
    case Opcode::sin:
      return query.ftz ? lanewise<circular<true, 0>> : lanewise<circular<false, 0>>;
    case Opcode::cos:
      return query.ftz ? lanewise<circular<true, 1>> : lanewise<circular<false, 1>>;
    case Opcode::tanh:
      return query.ftz ? nullptr : lanewise<tangent>;
    default:
      return nullptr;
  }
}

}  // namespace

OpHandler float_lanewise(const OpQuery& query) {
  if ((query.type != Type::f32 && query.type != Type::f64) || query.type_count > 1 || query.sat) return nullptr;
  if (!has_widths(query, query.bytes, query.bytes)) return nullptr;
  if (query.approx) return find_function(query);
  switch (query.rounding) {
    case Rounding::zero:
      return find_rounded<Rounding::zero>(query);
    case Rounding::down:
      return find_rounded<Rounding::down>(query);
    case Rounding::up:
      return find_rounded<Rounding::up>(query);
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx::semantics
