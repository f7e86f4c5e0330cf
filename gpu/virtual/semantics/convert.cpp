// The conversions of cvt that are not in convert_loops.h: narrow integers in wider registers, clamped integers, all
// roundings, f16 and bf16, rounding to integral values, .ftz and .sat. The conversion is encoded in one number, and a
// handler is instantiated for each; the op has the widths of the registers (width_of).
//
//   cvt.s8.s32 d, -300      d of 16 bits: ffd4      the lowest byte, its sign extended to the register
//   cvt.rpi.u8.f32 d, 300.5 d of 16 bits: 00ff      clamped
#include <algorithm>
#include <array>
#include <utility>

#include "gpu/virtual/semantics/detail/exact.h"
#include "gpu/virtual/semantics/detail/op_families.h"
#include "gpu/virtual/semantics/detail/to_integer.h"

namespace kvscope::ptx::semantics {
namespace {

enum class Kind : std::uint8_t {
  unsigned8,
  signed8,
  unsigned16,
  signed16,
  unsigned32,
  signed32,
  unsigned64,
  signed64,
  f16,
  bf16,
  f32,
  f64
};
constexpr int kKinds = 12;
constexpr int kRoundings = 4;

struct Conversion {
  Kind to{}, from{};
  Rounding rounding{};
  bool whole = false;  // to an integral value in a float type
  bool flushes = false;
  bool saturates = false;
  friend bool operator==(const Conversion&, const Conversion&) = default;
};
constexpr bool is_integer(Kind kind) {
  return kind < Kind::f16;
}
constexpr bool is_signed(Kind kind) {
  return is_integer(kind) && static_cast<int>(kind) % 2 == 1;
}
constexpr int bytes_of(Kind kind) {
  switch (kind) {
    case Kind::f16:
    case Kind::bf16:
      return 2;
    case Kind::f32:
      return 4;
    case Kind::f64:
      return 8;
    default:
      return 1 << (static_cast<int>(kind) / 2);
  }
}

// Whether the combination is valid: conversions between integers have no rounding, integral values are between floats,
// only floats are flushed, and a float that becomes an integer is always clamped.
constexpr bool is_sensible(const Conversion& c) {
  if (is_integer(c.to) && is_integer(c.from)) return c.rounding == Rounding::nearest && !c.whole && !c.flushes;
  if (is_integer(c.to)) return !c.whole && !c.saturates;
  return !(is_integer(c.from) && c.whole);
}
constexpr int kAll = kKinds * kKinds * kRoundings * 8;
constexpr Conversion conversion_of(int number) {
  const int kinds = number / (8 * kRoundings);
  return {static_cast<Kind>(kinds / kKinds),
          static_cast<Kind>(kinds % kKinds),
          static_cast<Rounding>(number / 8 % kRoundings),
          (number & 4) != 0,
          (number & 2) != 0,
          (number & 1) != 0};
}
constexpr int count_sensible() {
  int count = 0;
  for (int i = 0; i < kAll; ++i) count += is_sensible(conversion_of(i)) ? 1 : 0;
  return count;
}
constexpr int kConversionCount = count_sensible();
constexpr std::array<Conversion, kConversionCount> sensible() {
  std::array<Conversion, kConversionCount> list;
  std::size_t count = 0;
  for (int i = 0; i < kAll; ++i) {
    if (is_sensible(conversion_of(i))) list[count++] = conversion_of(i);
  }
  return list;
}
constexpr std::array<Conversion, kConversionCount> kConversions = sensible();

// The low bits of the register, extended to 64.
u64 read_integer(Kind kind, u64 bits) {
  const int unused = 64 - 8 * bytes_of(kind);
  return is_signed(kind) ? static_cast<u64>(static_cast<i64>(bits << unused) >> unused) : bits << unused >> unused;
}
double read_float(Kind kind, u64 bits, bool flushes) {
  switch (kind) {
    case Kind::f16:
      return double{f16_to_f32(static_cast<u16>(bits))};
    case Kind::bf16:
      return double{bf16_to_f32(static_cast<u16>(bits))};
    case Kind::f32: {
      const float x = bits_as<float>(static_cast<u32>(bits));
      return double{flushes ? flush(x) : x};
    }
    default:
      return bits_as<double>(bits);
  }
}

// x clamped to the range of the kind; `is_negative` gives the sign of the 64 bits.
u64 clamp(Kind to, u64 x, bool is_negative) {
  const int width = 8 * bytes_of(to);
  const u64 highest = is_signed(to) ? (u64{1} << (width - 1)) - 1 : ~u64{0} >> (64 - width);
  if (!is_negative) return x < highest ? x : highest;
  if (!is_signed(to)) return 0;
  const i64 lowest = -static_cast<i64>(highest) - 1;
  return static_cast<i64>(x) < lowest ? static_cast<u64>(lowest) : x;
}

u64 float_to_integer(const Conversion& c, double x) {
  if (x != x) {
    const bool lowest = c.from == Kind::f64 || bytes_of(c.to) == 8;
    return lowest ? u64{1} << (8 * bytes_of(c.to) - 1) : 0;
  }
  double whole = 0;
  switch (c.rounding) {
    case Rounding::nearest:
      whole = to_integral<Rounding::nearest>(x);
      break;
    case Rounding::zero:
      whole = to_integral<Rounding::zero>(x);
      break;
    case Rounding::down:
      whole = to_integral<Rounding::down>(x);
      break;
    default:
      whole = to_integral<Rounding::up>(x);
      break;
  }
  if (whole >= 0x1p64) return clamp(c.to, ~u64{0}, false);
  if (whole < -0x1p63) return clamp(c.to, u64{1} << 63, true);
  return whole < 0 ? clamp(c.to, static_cast<u64>(static_cast<i64>(whole)), true)
                   : clamp(c.to, static_cast<u64>(whole), false);
}

// Rounds an exact number once to a float type.
u64 encode(Kind to, const Exact& x, Rounding rounding) {
  switch (to) {
    case Kind::f16:
      return round_exact<FormatF16>(x, rounding);
    case Kind::bf16:
      return round_exact<FormatBf16>(x, rounding);
    case Kind::f32:
      return round_exact<FormatF32>(x, rounding);
    default:
      return round_exact<FormatF64>(x, rounding);
  }
}
u64 infinity_of(Kind to) {
  switch (to) {
    case Kind::f16:
      return FormatF16::kInfinity;
    case Kind::bf16:
      return FormatBf16::kInfinity;
    case Kind::f32:
      return FormatF32::kInfinity;
    default:
      return FormatF64::kInfinity;
  }
}
u64 sign_of(Kind to) {
  return u64{1} << (8 * bytes_of(to) - 1);
}
u64 nan_of(Kind to) {
  return to == Kind::f64 ? kNanF64 : to == Kind::f32 ? u64{kNanF32} : u64{kNan16};
}
// A NaN of f64, or one that becomes f64, keeps its sign and the upper bits of its payload, quieted; a copy keeps all bits.
// All other NaN become the canonical one. Measured on an H100 (docs/hardware).
u64 converted_nan(const Conversion& c, u64 bits) {
  if (c.to != Kind::f64 && c.from != Kind::f64) {
    return c.to == Kind::f32 && c.from == Kind::f32 && !c.whole && !c.flushes ? bits : nan_of(c.to);
  }
  if (c.to == c.from) return c.whole ? bits | u64{1} << 51 : bits;
  if (c.from == Kind::f32 && c.flushes) bits = kNanF32;
  const int from_bits = 8 * bytes_of(c.from), to_bits = 8 * bytes_of(c.to);
  const auto fraction_of = [](Kind kind) {
    return kind == Kind::f16 ? 10 : kind == Kind::bf16 ? 7 : kind == Kind::f32 ? 23 : 52;
  };
  const int fraction = fraction_of(c.from), wanted = fraction_of(c.to);
  const u64 payload = bits & ((u64{1} << fraction) - 1);
  const u64 moved = wanted > fraction ? payload << (wanted - fraction) : payload >> (fraction - wanted);
  const u64 sign = bits >> (from_bits - 1) & 1;
  return sign << (to_bits - 1) | infinity_of(c.to) | u64{1} << (wanted - 1) | moved;
}
u64 encode_float(const Conversion& c, double x) {
  const bool negative = (bits_as<u64>(x) >> 63) != 0;
  if (!is_finite(x)) return infinity_of(c.to) | (negative ? sign_of(c.to) : 0);
  return encode(c.to, exact_of(x), c.whole ? Rounding::nearest : c.rounding);
}
double to_whole(Rounding rounding, double x) {
  switch (rounding) {
    case Rounding::nearest:
      return to_integral<Rounding::nearest>(x);
    case Rounding::zero:
      return to_integral<Rounding::zero>(x);
    case Rounding::down:
      return to_integral<Rounding::down>(x);
    default:
      return to_integral<Rounding::up>(x);
  }
}

// Clamps to [+0, 1], NaN and -0 to +0; the bits of positive numbers are in the order of their values.
u64 saturated(Kind to, u64 bits) {
  const u64 one = encode(to, Exact{1, 0, false, false}, Rounding::zero);
  if ((bits & sign_of(to)) != 0 || bits > infinity_of(to)) return 0;
  return bits < one ? bits : one;
}

u64 convert(const Conversion& c, u64 bits) {
  if (is_integer(c.from)) {
    const u64 x = read_integer(c.from, bits);
    const bool negative = is_signed(c.from) && (x >> 63) != 0;
    if (is_integer(c.to)) return c.saturates ? clamp(c.to, x, negative) : x;
    const u64 number = encode(c.to, Exact{negative ? u64{0} - x : x, 0, false, negative}, c.rounding);
    return c.saturates ? saturated(c.to, number) : number;
  }
  // An H100 does not flush the source of a conversion to f16.
  const double x = read_float(c.from, bits, c.flushes && c.to != Kind::f16);
  if (is_integer(c.to)) return float_to_integer(c, x);
  if (x != x) return c.saturates ? 0 : converted_nan(c, bits);
  u64 number = encode_float(c, c.whole ? to_whole(c.rounding, x) : x);
  if (c.flushes && c.to == Kind::f32 && (number & 0x7f800000u) == 0) number &= 0x80000000u;
  return c.saturates ? saturated(c.to, number) : number;
}

void convert_register(const Conversion& c, std::byte* registers, const Op& op, LaneMask lanes) {
  const int from_bytes = width_of(op, 1) != 0 ? width_of(op, 1) : bytes_of(c.from) < 2 ? 2 : bytes_of(c.from);
  const int to_bytes = width_of(op, 0) != 0 ? width_of(op, 0) : bytes_of(c.to) < 2 ? 2 : bytes_of(c.to);
  const std::byte* a = registers + at(op, 1);
  std::byte* d = registers + at(op, 0);
  for (int i = 0; i < kLanes; ++i) {
    if ((lanes >> i & 1) == 0) continue;
    u64 bits = 0;
    __builtin_memcpy(&bits, a + from_bytes * i, static_cast<u32>(from_bytes));
    u64 result = convert(c, bits);
    if (is_integer(c.to)) result = read_integer(c.to, result);  // extended by the sign of its type
    __builtin_memcpy(d + to_bytes * i, &result, static_cast<u32>(to_bytes));
  }
}
template <std::size_t kNumber>
void numbered(std::byte* registers, const Op& op, LaneMask lanes) {
  convert_register(kConversions[kNumber], registers, op, lanes);
}
template <std::size_t... kNumber>
constexpr std::array<OpHandler, kConversionCount> handlers(std::index_sequence<kNumber...>) {
  return {numbered<kNumber>...};
}
constexpr std::array<OpHandler, kConversionCount> kHandlers = handlers(std::make_index_sequence<kConversionCount>{});

bool kind_of(Type type, Kind& kind) {
  switch (type) {
    case Type::u8:
      kind = Kind::unsigned8;
      return true;
    case Type::s8:
      kind = Kind::signed8;
      return true;
    case Type::u16:
      kind = Kind::unsigned16;
      return true;
    case Type::s16:
      kind = Kind::signed16;
      return true;
    case Type::u32:
      kind = Kind::unsigned32;
      return true;
    case Type::s32:
      kind = Kind::signed32;
      return true;
    case Type::u64:
      kind = Kind::unsigned64;
      return true;
    case Type::s64:
      kind = Kind::signed64;
      return true;
    case Type::f16:
      kind = Kind::f16;
      return true;
    case Type::bf16:
      kind = Kind::bf16;
      return true;
    case Type::f32:
      kind = Kind::f32;
      return true;
    case Type::f64:
      kind = Kind::f64;
      return true;
    default:
      return false;
  }
}

}  // namespace

OpHandler convert_any(const OpQuery& query) {
  Conversion c;
  if (query.opcode != Opcode::cvt || query.stochastic || query.relu || query.satfinite || query.uses_list)
    return nullptr;
  if (!kind_of(query.type, c.to) || !kind_of(query.type2, c.from) || query.rounding == Rounding::away) return nullptr;
  c.rounding = query.rounding;
  c.whole = query.to_integer && !is_integer(c.to);
  c.flushes = query.ftz;
  c.saturates = query.sat;
  // Floats are in registers of their own width.
  if (!is_integer(c.to) && !has_widths(query, bytes_of(c.to), 0)) return nullptr;
  if (!is_integer(c.from) && !has_widths(query, 0, bytes_of(c.from))) return nullptr;
  if (is_integer(c.to) && !is_integer(c.from)) c.saturates = false;
  const auto* found = std::find(kConversions.begin(), kConversions.end(), c);
  return found != kConversions.end() ? kHandlers[static_cast<std::size_t>(found - kConversions.begin())] : nullptr;
}

}  // namespace kvscope::ptx::semantics
