// Integer operations that vectorize: add sub mul mad min max abs neg sad popc clz brev bfind bfe bfi, packed pairs of
// 16 bits, 24-bit products. All wrap; operations that could overflow a signed C++ type use unsigned types. Compiled
// once per instruction set (CMakeLists.txt). Tested by tests/gpu/virtual/semantics.
#pragma once

#include "gpu/virtual/semantics/detail/lanes.h"

namespace kvscope::ptx::semantics {
namespace {

template <class T>
struct Twice;
template <>
struct Twice<u16> {
  using type = u32;
};
template <>
struct Twice<u32> {
  using type = u64;
};
template <>
struct Twice<u64> {
  using type = u128;
};
template <>
struct Twice<i16> {
  using type = i32;
};
template <>
struct Twice<i32> {
  using type = i64;
};
template <>
struct Twice<i64> {
  using type = i128;
};
template <class T>
using Doubled = typename Twice<T>::type;

// T may be signed or unsigned; add, sub and mul_lo wrap identically for both and are instantiated for unsigned T only.
template <class T>
inline T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <class T>
inline T sub(T a, T b) {
  return static_cast<T>(a - b);
}
template <class T>
inline T mul_lo(T a, T b) {
  return static_cast<T>(Doubled<T>{a} * b);  // not T * T: for u16 that is a signed int, which overflows
}
template <>
inline u64 mul_lo(u64 a, u64 b) {
  return a * b;
}
template <class T>
inline Doubled<T> mul_wide(T a, T b) {
  return static_cast<Doubled<T>>(Doubled<T>{a} * b);
}
template <class T>
inline T mul_hi(T a, T b) {
  return static_cast<T>((Doubled<T>{a} * b) >> (8 * sizeof(T)));
}
template <class T>
inline T mad_lo(T a, T b, T c) {
  return static_cast<T>(mul_lo(a, b) + c);
}
template <class T>
inline T mad_hi(T a, T b, T c) {
  return static_cast<T>(static_cast<Unsigned<T>>(mul_hi(a, b)) + static_cast<Unsigned<T>>(c));
}
template <class T>
inline Doubled<T> mad_wide(T a, T b, Doubled<T> c) {
  using U = Unsigned<Doubled<T>>;
  return static_cast<Doubled<T>>(static_cast<U>(mul_wide(a, b)) + static_cast<U>(c));
}

inline i32 clamp_to_s32(i64 x) {
  return static_cast<i32>(x < -0x80000000LL ? -0x80000000LL : x > 0x7fffffffLL ? 0x7fffffffLL : x);
}
inline i32 add_sat(i32 a, i32 b) {
  return clamp_to_s32(i64{a} + b);
}
inline i32 sub_sat(i32 a, i32 b) {
  return clamp_to_s32(i64{a} - b);
}
inline i32 mad_hi_sat(i32 a, i32 b, i32 c) {
  return clamp_to_s32(i64{mul_hi(a, b)} + c);
}

template <class T>
inline T negate(T a) {
  return static_cast<T>(T{0} - a);  // T unsigned
}
template <class T>
inline T absolute(T a) {
  return static_cast<Signed<T>>(a) < 0 ? negate(a) : a;  // T unsigned, interpreted as signed; the minimum is unchanged
}
template <class T>
inline T minimum(T a, T b) {
  return a < b ? a : b;
}
template <class T>
inline T maximum(T a, T b) {
  return a < b ? b : a;
}
template <class T>
inline T minimum_relu(T a, T b) {
  return maximum(minimum(a, b), T{0});
}
template <class T>
inline T maximum_relu(T a, T b) {
  return maximum(maximum(a, b), T{0});
}
template <class T>
inline T sad(T a, T b, T c) {
  using U = Unsigned<T>;
  const U x = static_cast<U>(a);
  const U y = static_cast<U>(b);
  return static_cast<T>(static_cast<U>((a < b ? y - x : x - y) + static_cast<U>(c)));
}

// Two independent 16-bit numbers in a register.
template <class T, T (*kOne)(T, T)>
inline u32 on_halves(u32 a, u32 b) {
  const u32 lo = static_cast<u16>(kOne(static_cast<T>(a & 0xffff), static_cast<T>(b & 0xffff)));
  const u32 hi = static_cast<u16>(kOne(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
  return hi << 16 | lo;
}

// 24 bits times 24 bits is 48 bits: lo is bits 0..31 of that, hi bits 16..47.
inline i64 low24(i32 a) {
  return static_cast<i32>(static_cast<u32>(a) << 8) >> 8;
}
inline i64 low24(u32 a) {
  return static_cast<i64>(a & 0xffffff);
}
template <class T>
inline T mul24_lo(T a, T b) {
  return static_cast<T>(static_cast<u64>(low24(a) * low24(b)));
}
template <class T>
inline T mul24_hi(T a, T b) {
  return static_cast<T>(static_cast<u64>(low24(a) * low24(b)) >> 16);
}
template <class T>
inline T mad24_lo(T a, T b, T c) {
  return static_cast<T>(static_cast<u32>(mul24_lo(a, b)) + static_cast<u32>(c));
}
template <class T>
inline T mad24_hi(T a, T b, T c) {
  return static_cast<T>(static_cast<u32>(mul24_hi(a, b)) + static_cast<u32>(c));
}
inline i32 mad24_hi_sat(i32 a, i32 b, i32 c) {
  return clamp_to_s32(i64{mul24_hi(a, b)} + c);
}

inline u32 population(u32 a) {
  a = a - ((a >> 1) & 0x55555555u);
  a = (a & 0x33333333u) + ((a >> 2) & 0x33333333u);
  a = (a + (a >> 4)) & 0x0f0f0f0fu;
  return (a * 0x01010101u) >> 24;
}
inline u32 population64(u64 a) {
  return population(static_cast<u32>(a)) + population(static_cast<u32>(a >> 32));
}
inline u32 leading_zeros(u32 a) {
  return a == 0 ? 32u : static_cast<u32>(__builtin_clz(a));
}
inline u32 leading_zeros64(u64 a) {
  return a == 0 ? 64u : static_cast<u32>(__builtin_clzll(a));
}
inline u32 reversed(u32 a) {
  a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
  a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
  a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
  return a << 24 | (a & 0xff00u) << 8 | (a >> 8 & 0xff00u) | a >> 24;
}
inline u64 reversed64(u64 a) {
  return u64{reversed(static_cast<u32>(a))} << 32 | reversed(static_cast<u32>(a >> 32));
}

// The highest bit that differs from the sign; for unsigned numbers, the highest bit that is set. None: all ones.
template <class T, bool kShiftAmount>
inline u32 find_highest(T a) {
  using U = Unsigned<T>;
  const U x = a < 0 ? static_cast<U>(~static_cast<U>(a)) : static_cast<U>(a);
  if (x == 0) return 0xffffffffu;
  const u32 zeros = sizeof(T) == 8 ? leading_zeros64(x) : leading_zeros(static_cast<u32>(x));
  return kShiftAmount ? zeros : static_cast<u32>(8 * sizeof(T) - 1) - zeros;
}

template <class T>
inline u32 at_most_255(u32 x) {
  return sizeof(T) < 8 ? x & 0xff : x < 255 ? x : 255;
}
// bfe: `count` bits beginning at bit `from`. Both are taken modulo 256, except in
// 64 bits, where an H100 takes them in full. Bits past the top are zero or, for signed
// numbers, bit min(from + count - 1, top).
//   89abcdef   from 8, count 8: cd    from 28, count 8: 8    signed: ffffffcd, fffffff8
template <class T>
inline T extract(T a, u32 from, u32 count) {
  constexpr u32 kTop = 8 * sizeof(T) - 1;
  using U = Unsigned<T>;
  from = at_most_255<T>(from);
  count = at_most_255<T>(count);
  if (count == 0) return 0;
  const u32 last = from + count - 1 < kTop ? from + count - 1 : kTop;
  const U fill = T(-1) < T(0) && (static_cast<U>(a) >> last & 1) != 0 ? static_cast<U>(~U{0}) : U{0};
  const U shifted = from > kTop ? fill
                                : static_cast<U>((static_cast<U>(a) >> from) |
                                                 (from == 0 ? U{0} : static_cast<U>(fill << (kTop + 1 - from))));
  if (count > kTop) return static_cast<T>(shifted);
  const U mask = static_cast<U>((U{1} << count) - 1);
  return static_cast<T>((shifted & mask) | (fill & ~mask));
}
// bfi: inserts the low `count` bits of a into b at bit `from`.
template <class T>
inline T insert(T a, T b, u32 from, u32 count) {
  constexpr u32 kBits = 8 * sizeof(T);
  from = at_most_255<T>(from);
  count = at_most_255<T>(count);
  if (count == 0 || from >= kBits) return b;
  const T mask = static_cast<T>((count >= kBits ? ~T{0} : (T{1} << count) - 1) << from);
  return static_cast<T>((b & ~mask) | (static_cast<T>(a << from) & mask));
}

template <class T>
inline OpHandler find_add_sub(const OpQuery& query) {
  if (!has_widths(query, sizeof(T), sizeof(T), sizeof(T))) return nullptr;
  return query.opcode == Opcode::add ? lanewise<add<T>> : lanewise<sub<T>>;
}

template <class T>  // signed or unsigned
inline OpHandler find_product(const OpQuery& query) {
  constexpr int kBytes = sizeof(T);
  using U = Unsigned<T>;
  const bool mad = query.opcode == Opcode::mad;
  switch (query.half) {
    case Half::lo:
      if (!has_widths(query, kBytes, kBytes, kBytes, mad ? kBytes : 0) || query.sat) return nullptr;
      return mad ? lanewise<mad_lo<U>> : lanewise<mul_lo<U>>;
    case Half::hi:
      if (!has_widths(query, kBytes, kBytes, kBytes, mad ? kBytes : 0) || query.sat) return nullptr;
      return mad ? lanewise<mad_hi<T>> : lanewise<mul_hi<T>>;
    case Half::wide:
      if constexpr (kBytes < 8) {
        if (!has_widths(query, 2 * kBytes, kBytes, kBytes, mad ? 2 * kBytes : 0) || query.sat) return nullptr;
        return mad ? lanewise<mad_wide<T>> : lanewise<mul_wide<T>>;
      }
      return nullptr;
    default:
      return nullptr;
  }
}

template <class T>
inline OpHandler find_min_max(const OpQuery& query) {
  if (!has_widths(query, sizeof(T), sizeof(T), sizeof(T)) || query.relu) return nullptr;
  return query.opcode == Opcode::min ? lanewise<minimum<T>> : lanewise<maximum<T>>;
}

template <class T>
inline OpHandler find_24(const OpQuery& query) {
  const bool mad = query.opcode == Opcode::mad24;
  if (!has_widths(query, 4, 4, 4, mad ? 4 : 0)) return nullptr;
  if (query.half == Half::hi) return mad ? lanewise<mad24_hi<T>> : lanewise<mul24_hi<T>>;
  return mad ? lanewise<mad24_lo<T>> : lanewise<mul24_lo<T>>;
}

template <class T>
inline OpHandler find_bit_search(const OpQuery& query) {
  if (!has_widths(query, 4, sizeof(T))) return nullptr;
  return query.shiftamt ? lanewise<find_highest<T, true>> : lanewise<find_highest<T, false>>;
}

inline OpHandler find_packed(const OpQuery& query) {
  if (!has_widths(query, 4, 4, 4)) return nullptr;
  const bool s = query.is_signed;
  switch (query.opcode) {
    case Opcode::add:
      return lanewise<on_halves<u16, add<u16>>>;
    case Opcode::sub:
      return lanewise<on_halves<u16, sub<u16>>>;
    case Opcode::min:
      if (query.relu) return s ? lanewise<on_halves<i16, minimum_relu<i16>>> : nullptr;
      return s ? lanewise<on_halves<i16, minimum<i16>>> : lanewise<on_halves<u16, minimum<u16>>>;
    case Opcode::max:
      if (query.relu) return s ? lanewise<on_halves<i16, maximum_relu<i16>>> : nullptr;
      return s ? lanewise<on_halves<i16, maximum<i16>>> : lanewise<on_halves<u16, maximum<u16>>>;
    default:
      return nullptr;
  }
}

// Only for s32: clamping and .relu.
inline OpHandler find_clamped(const OpQuery& query) {
  if (query.type != Type::s32) return nullptr;
  switch (query.opcode) {
    case Opcode::add:
      return has_widths(query, 4, 4, 4) ? lanewise<add_sat> : nullptr;
    case Opcode::sub:
      return has_widths(query, 4, 4, 4) ? lanewise<sub_sat> : nullptr;
    case Opcode::mad:
      return query.half == Half::hi && has_widths(query, 4, 4, 4, 4) ? lanewise<mad_hi_sat> : nullptr;
    case Opcode::mad24:
      return query.half == Half::hi && has_widths(query, 4, 4, 4, 4) ? lanewise<mad24_hi_sat> : nullptr;
    case Opcode::min:
      return has_widths(query, 4, 4, 4) ? lanewise<minimum_relu<i32>> : nullptr;
    case Opcode::max:
      return has_widths(query, 4, 4, 4) ? lanewise<maximum_relu<i32>> : nullptr;
    default:
      return nullptr;
  }
}

// U is the unsigned type of the instruction's width; the sign is in the query.
template <class U>
inline OpHandler find_by_width(const OpQuery& query) {
  using S = Signed<U>;
  constexpr int kBytes = sizeof(U);
  constexpr bool kLong = kBytes == 8;
  const bool s = query.is_signed;
  switch (query.opcode) {
    case Opcode::add:
    case Opcode::sub:
      return find_add_sub<U>(query);
    case Opcode::mul:
    case Opcode::mad:
      return s ? find_product<S>(query) : find_product<U>(query);
    case Opcode::min:
    case Opcode::max:
      return s ? find_min_max<S>(query) : find_min_max<U>(query);
    case Opcode::abs:
      return s && has_widths(query, kBytes, kBytes) ? lanewise<absolute<U>> : nullptr;
    case Opcode::neg:
      return s && has_widths(query, kBytes, kBytes) ? lanewise<negate<U>> : nullptr;
    case Opcode::sad:
      if (!has_widths(query, kBytes, kBytes, kBytes, kBytes)) return nullptr;
      return s ? lanewise<sad<S>> : lanewise<sad<U>>;
    default:
      break;
  }
  if constexpr (kBytes >= 4) {
    switch (query.opcode) {
      case Opcode::popc:
        if (!has_widths(query, 4, kBytes)) return nullptr;
        if constexpr (kLong) return lanewise<population64>;
        return lanewise<population>;
      case Opcode::clz:
        if (!has_widths(query, 4, kBytes)) return nullptr;
        if constexpr (kLong) return lanewise<leading_zeros64>;
        return lanewise<leading_zeros>;
      case Opcode::brev:
        if (!has_widths(query, kBytes, kBytes)) return nullptr;
        if constexpr (kLong) return lanewise<reversed64>;
        return lanewise<reversed>;
      case Opcode::bfind:
        return s ? find_bit_search<S>(query) : find_bit_search<U>(query);
      case Opcode::bfe:
        if (!has_widths(query, kBytes, kBytes, 4, 4)) return nullptr;
        return s ? lanewise<extract<S>> : lanewise<extract<U>>;
      case Opcode::bfi:
        return has_widths(query, kBytes, kBytes, kBytes, 4, 4) ? lanewise<insert<U>> : nullptr;
      default:
        break;
    }
  }
  return nullptr;
}

inline OpHandler find_integer(const OpQuery& query) {
  if (query.is_float || query.carry || query.vector != 1) return nullptr;
  if (query.type == Type::u16x2 || query.type == Type::s16x2) return query.sat ? nullptr : find_packed(query);
  if (query.sat || query.relu) return find_clamped(query);
  if (query.opcode == Opcode::mul24 || query.opcode == Opcode::mad24) {
    return query.is_signed ? find_24<i32>(query) : find_24<u32>(query);
  }
  switch (query.bytes) {
    case 2:
      return find_by_width<u16>(query);
    case 4:
      return find_by_width<u32>(query);
    case 8:
      return find_by_width<u64>(query);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace kvscope::ptx::semantics
