// The conversions that occur most often in kernels: between integers of whole registers, integers and f32 or f64, and
// between float formats. The rest of cvt is in convert.cpp.
//
// A float is converted to an integer with the rounding of the instruction and clamped to the integer's range. NaN
// becomes 0, or the lowest signed number if the source is f64 or the integer has 64 bits. Compiled once per instruction
// set (CMakeLists.txt). Tested by tests/gpu/virtual/semantics.
#pragma once

#include "gpu/virtual/semantics/detail/lanes.h"
#include "gpu/virtual/semantics/detail/to_integer.h"

namespace kvscope::ptx::semantics {
namespace {

template <class To, class From>
inline To extended(From x) {
  return static_cast<To>(x);
}

template <class To, class From>
inline To from_integer(From x) {
  return static_cast<To>(x);  // to nearest even, the rounding mode of the host
}

template <class To, Rounding kRounding>
inline To f32_to_integer(float x) {
  return to_integer<To, sizeof(To) == 8, kRounding>(double{x});
}
template <class To, Rounding kRounding>
inline To f32_flushed_to_integer(float x) {
  return to_integer<To, sizeof(To) == 8, kRounding>(double{flush(x)});
}
template <class To, Rounding kRounding>
inline To f64_to_integer(double x) {
  return to_integer<To, true, kRounding>(x);
}

inline float f16_to_float(u16 x) {
  return f16_to_f32(x);
}
// A shift: a NaN keeps its payload.
inline float bf16_to_float(u16 x) {
  return bf16_to_f32(x);
}
// Between f32 and f64, a NaN keeps its sign and the upper bits of its payload, quieted.
inline double widened(float x) {
  return double{x};
}
inline float narrowed(double x) {
  return static_cast<float>(x);
}

// To nearest even in 32-bit arithmetic, which processes twice as many lanes. f16 and bf16 of one float.
inline u16 f32_to_bf16(float x) {
  const u32 bits = bits_as<u32>(x);
  const u32 rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return static_cast<u16>((bits & 0x7fffffffu) > 0x7f800000u ? u32{kNan16} : rounded);
}
//   normal      the exponent bias changes from 127 to 15, 13 bits are rounded away
//   subnormal   adding 0.5 aligns 2^-24 with the last bit of the sum, so the addition rounds
inline u16 f32_to_f16(float x) {
  const u32 bits = bits_as<u32>(x);
  const u32 magnitude = bits & 0x7fffffffu;
  const u32 sign = bits >> 16 & 0x8000u;
  const u32 normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  const u32 tiny = bits_as<u32>(bits_as<float>(magnitude < 0x38800000u ? magnitude : 0u) + 0.5f) - 0x3f000000u;
  const u32 finite = magnitude < 0x38800000u ? tiny : normal < 0x7c00u ? normal : 0x7c00u;
  const u32 all = magnitude >= 0x7f800000u ? 0x7c00u : finite;
  return static_cast<u16>(magnitude > 0x7f800000u ? u32{kNan16} : all | sign);
}
// The first source is packed into the upper half.
template <u16 (*kOne)(float)>
inline u32 pair_of(float upper, float lower) {
  return u32{kOne(upper)} << 16 | kOne(lower);
}

template <class From>
inline OpHandler find_extension(int to_bytes) {
  switch (to_bytes) {
    case 2:
      return lanewise<extended<u16, From>>;
    case 4:
      return lanewise<extended<u32, From>>;
    case 8:
      return lanewise<extended<u64, From>>;
    default:
      return nullptr;
  }
}
// Whole registers on both sides, without clamping; wider numbers are truncated.
inline OpHandler find_integer_conversion(const OpQuery& query, int from_bytes) {
  if (query.sat || !has_widths(query, query.bytes, from_bytes)) return nullptr;
  switch (query.type2) {
    case Type::u16:
      return find_extension<u16>(query.bytes);
    case Type::s16:
      return find_extension<i16>(query.bytes);
    case Type::u32:
      return find_extension<u32>(query.bytes);
    case Type::s32:
      return find_extension<i32>(query.bytes);
    case Type::u64:
      return find_extension<u64>(query.bytes);
    case Type::s64:
      return find_extension<i64>(query.bytes);
    default:
      return nullptr;
  }
}

template <class To>
inline OpHandler find_from_integer(const OpQuery& query, int from_bytes) {
  if (query.rounding != Rounding::nearest || query.sat || !has_widths(query, sizeof(To), from_bytes)) return nullptr;
  switch (query.type2) {
    case Type::u16:
      return lanewise<from_integer<To, u16>>;
    case Type::s16:
      return lanewise<from_integer<To, i16>>;
    case Type::u32:
      return lanewise<from_integer<To, u32>>;
    case Type::s32:
      return lanewise<from_integer<To, i32>>;
    case Type::u64:
      return lanewise<from_integer<To, u64>>;
    case Type::s64:
      return lanewise<from_integer<To, i64>>;
    default:
      return nullptr;
  }
}

template <class To, Rounding kRounding>
inline OpHandler find_to_integer_rounded(const OpQuery& query) {
  if (query.type2 == Type::f64)
    return has_widths(query, sizeof(To), 8) ? lanewise<f64_to_integer<To, kRounding>> : nullptr;
  if (!has_widths(query, sizeof(To), 4)) return nullptr;
  return query.ftz ? lanewise<f32_flushed_to_integer<To, kRounding>> : lanewise<f32_to_integer<To, kRounding>>;
}
template <class To>
inline OpHandler find_to_integer(const OpQuery& query) {
  switch (query.rounding) {
    case Rounding::nearest:
      return find_to_integer_rounded<To, Rounding::nearest>(query);
    case Rounding::zero:
      return find_to_integer_rounded<To, Rounding::zero>(query);
    case Rounding::down:
      return find_to_integer_rounded<To, Rounding::down>(query);
    case Rounding::up:
      return find_to_integer_rounded<To, Rounding::up>(query);
    default:
      return nullptr;
  }
}

inline bool is_integer(Type type, int& bytes) {
  switch (type) {
    case Type::u16:
    case Type::s16:
      bytes = 2;
      return true;
    case Type::u32:
    case Type::s32:
      bytes = 4;
      return true;
    case Type::u64:
    case Type::s64:
      bytes = 8;
      return true;
    default:
      return false;
  }
}

inline OpHandler find_float_conversion(const OpQuery& query) {
  const bool plain = !query.ftz && !query.sat && !query.relu && !query.satfinite;
  if (!plain || query.to_integer || query.rounding != Rounding::nearest) return nullptr;
  const Type to = query.type;
  const Type from = query.type2;
  if (to == Type::f32 && from == Type::f16) return has_widths(query, 4, 2) ? lanewise<f16_to_float> : nullptr;
  if (to == Type::f32 && from == Type::bf16) return has_widths(query, 4, 2) ? lanewise<bf16_to_float> : nullptr;
  if (to == Type::f64 && from == Type::f32) return has_widths(query, 8, 4) ? lanewise<widened> : nullptr;
  if (to == Type::f32 && from == Type::f64) return has_widths(query, 4, 8) ? lanewise<narrowed> : nullptr;
  if (to == Type::f16 && from == Type::f32) return has_widths(query, 2, 4) ? lanewise<f32_to_f16> : nullptr;
  if (to == Type::bf16 && from == Type::f32) return has_widths(query, 2, 4) ? lanewise<f32_to_bf16> : nullptr;
  if (to == Type::f16x2 && from == Type::f32)
    return has_widths(query, 4, 4, 4) ? lanewise<pair_of<f32_to_f16>> : nullptr;
  if (to == Type::bf16x2 && from == Type::f32)
    return has_widths(query, 4, 4, 4) ? lanewise<pair_of<f32_to_bf16>> : nullptr;
  return nullptr;
}

inline OpHandler find_conversion(const OpQuery& query) {
  if (query.opcode != Opcode::cvt || query.stochastic) return nullptr;
  int from_bytes = 0;
  int to_bytes = 0;
  if (is_integer(query.type2, from_bytes)) {
    if (query.type == Type::f32) return find_from_integer<float>(query, from_bytes);
    if (query.type == Type::f64) return find_from_integer<double>(query, from_bytes);
    return is_integer(query.type, to_bytes) ? find_integer_conversion(query, from_bytes) : nullptr;
  }
  if (!is_integer(query.type, to_bytes)) return find_float_conversion(query);
  if (query.type2 != Type::f32 && query.type2 != Type::f64) return nullptr;
  switch (query.type) {
    case Type::u16:
      return find_to_integer<u16>(query);
    case Type::s16:
      return find_to_integer<i16>(query);
    case Type::u32:
      return find_to_integer<u32>(query);
    case Type::s32:
      return find_to_integer<i32>(query);
    case Type::u64:
      return find_to_integer<u64>(query);
    default:
      return find_to_integer<i64>(query);
  }
}

}  // namespace
}  // namespace kvscope::ptx::semantics
