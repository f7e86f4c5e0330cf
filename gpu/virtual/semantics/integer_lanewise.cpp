// Less frequent integer instructions: carries, division, dot products of bytes, masks, fns, vabsdiff4. One lane at a
// time.
#include "gpu/virtual/semantics/detail/lanes.h"
#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics {
namespace {

// --- carries ---------------------------------------------------------------------------------------------------------
// One predicate, at[4], carries from one instruction to the next; for subtraction it is the borrow.
//
//   sub.cc 0 - 1 = ffffffff, borrow 1      subc 5 - 2 = 5 - (2 + 1) = 2

template <class U, Half kHalf>
U product_half(U a, U b) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(U));
  if constexpr (kHalf == Half::lo) return static_cast<U>(a * b);
  return static_cast<U>((static_cast<u128>(a) * b) >> kBits);
}
template <class U>
U signed_product_hi(U a, U b) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(U));
  return static_cast<U>(
      static_cast<u128>((static_cast<i128>(static_cast<Signed<U>>(a)) * static_cast<Signed<U>>(b)) >> kBits));
}

// The common form: d = x + y + carry, or x - y - borrow.
template <class U>
struct Terms {
  U x, y;
};
enum class Carrying : std::uint8_t { add, sub, mad_lo, mad_hi, mad_hi_signed };
template <class U, Carrying kWhat>
Terms<U> terms_of(const std::byte* registers, const Op& op, int i) {
  const auto value = [registers, &op, i](int operand) {
    U x;
    __builtin_memcpy(&x, registers + at(op, operand) + sizeof(U) * static_cast<u32>(i), sizeof x);
    return x;
  };
  const U a = value(1);
  const U b = value(2);
  switch (kWhat) {
    case Carrying::mad_lo:
      return {product_half<U, Half::lo>(a, b), value(3)};
    case Carrying::mad_hi:
      return {product_half<U, Half::hi>(a, b), value(3)};
    case Carrying::mad_hi_signed:
      return {signed_product_hi(a, b), value(3)};
    default:
      return {a, b};
  }
}

template <class U, Carrying kWhat, bool kIn, bool kOut>
void with_carry(std::byte* registers, const Op& op, LaneMask lanes) {
  LaneMask carry_in = 0;
  if constexpr (kIn) __builtin_memcpy(&carry_in, registers + at(op, 4), sizeof carry_in);
  LaneMask carry_out = 0;
  U d[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const Terms<U> t = terms_of<U, kWhat>(registers, op, i);
    const u128 in = carry_in >> i & 1;
    const u128 wide = kWhat == Carrying::sub ? static_cast<u128>(t.x) - t.y - in : static_cast<u128>(t.x) + t.y + in;
    d[i] = static_cast<U>(wide);
    carry_out |= static_cast<LaneMask>(wide >> (8 * sizeof(U)) & 1) << i;
  }
  store_lanes<U>(register_of<U>(registers, at(op, 0)), lanes, [&d](int i) { return d[i]; });
  if constexpr (kOut) write_pred(registers, at(op, 4), lanes, carry_out);
}

template <class U, Carrying kWhat>
OpHandler find_carrying(bool in, bool out) {
  if (in) return out ? with_carry<U, kWhat, true, true> : with_carry<U, kWhat, true, false>;
  return out ? with_carry<U, kWhat, false, true> : nullptr;
}

template <class U>
OpHandler find_carry(const OpQuery& query) {
  constexpr int kBytes = sizeof(U);
  if (!has_widths(query, kBytes, kBytes, kBytes)) return nullptr;
  switch (query.opcode) {
    case Opcode::add:
      return find_carrying<U, Carrying::add>(false, query.carry);
    case Opcode::addc:
      return find_carrying<U, Carrying::add>(true, query.carry);
    case Opcode::sub:
      return find_carrying<U, Carrying::sub>(false, query.carry);
    case Opcode::subc:
      return find_carrying<U, Carrying::sub>(true, query.carry);
    case Opcode::mad:
    case Opcode::madc: {
      if (query.register_bytes[3] != 0 && query.register_bytes[3] != kBytes) return nullptr;
      const bool in = query.opcode == Opcode::madc;
      if (query.half == Half::lo) return find_carrying<U, Carrying::mad_lo>(in, query.carry);
      if (query.half != Half::hi) return nullptr;
      return query.is_signed ? find_carrying<U, Carrying::mad_hi_signed>(in, query.carry)
                             : find_carrying<U, Carrying::mad_hi>(in, query.carry);
    }
    default:
      return nullptr;
  }
}

// --- division --------------------------------------------------------------------------------------------------------
// Division by zero gives all ones for quotient and remainder, as on hardware. The lowest number / -1 is itself,
// remainder 0.
template <class T>
T quotient(T a, T b) {
  using U = Unsigned<T>;
  if (b == 0) return static_cast<T>(~U{0});
  if (T(-1) < T(0) && b == static_cast<T>(-1)) return static_cast<T>(static_cast<U>(U{0} - static_cast<U>(a)));
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  using U = Unsigned<T>;
  if (b == 0) return static_cast<T>(~U{0});
  if (T(-1) < T(0) && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}
template <class T>
OpHandler find_division(const OpQuery& query) {
  if (!has_widths(query, sizeof(T), sizeof(T), sizeof(T))) return nullptr;
  return query.opcode == Opcode::div ? lanewise<quotient<T>> : lanewise<remainder<T>>;
}
OpHandler find_division_by_type(const OpQuery& query) {
  switch (query.type) {
    case Type::u16:
      return find_division<u16>(query);
    case Type::u32:
      return find_division<u32>(query);
    case Type::u64:
      return find_division<u64>(query);
    case Type::s16:
      return find_division<i16>(query);
    case Type::s32:
      return find_division<i32>(query);
    case Type::s64:
      return find_division<i64>(query);
    default:
      return nullptr;
  }
}

// --- dot products ----------------------------------------------------------------------------------------------------
// A product of two bytes, or of a byte and a half word, fits in 32 bits; the sum wraps.
template <bool kSigned>
u32 byte_of(u32 x, int i) {
  const u32 byte = x >> (8 * i) & 0xff;
  return kSigned ? static_cast<u32>(static_cast<i8>(byte)) : byte;
}
template <bool kSigned>
u32 half_of(u32 x, int i) {
  const u32 half = x >> (16 * i) & 0xffff;
  return kSigned ? static_cast<u32>(static_cast<i16>(half)) : half;
}
template <bool kSignedA, bool kSignedB>
u32 dot4(u32 a, u32 b, u32 c) {
  for (int i = 0; i < 4; ++i) c += byte_of<kSignedA>(a, i) * byte_of<kSignedB>(b, i);
  return c;
}
template <bool kSignedA, bool kSignedB, int kFrom>  // kFrom: bytes 0 and 1 of b, or 2 and 3
u32 dot2(u32 a, u32 b, u32 c) {
  for (int i = 0; i < 2; ++i) c += half_of<kSignedA>(a, i) * byte_of<kSignedB>(b, kFrom + i);
  return c;
}
template <bool kSignedA, bool kSignedB>
OpHandler find_dot(const OpQuery& query) {
  if (query.opcode == Opcode::dp4a) return lanewise<dot4<kSignedA, kSignedB>>;
  return query.half == Half::hi ? lanewise<dot2<kSignedA, kSignedB, 2>> : lanewise<dot2<kSignedA, kSignedB, 0>>;
}
OpHandler find_dot_by_signs(const OpQuery& query) {
  if (!has_widths(query, 4, 4, 4, 4)) return nullptr;
  const bool signed_b = query.type2 == Type::s32;
  if (query.is_signed) return signed_b ? find_dot<true, true>(query) : find_dot<true, false>(query);
  return signed_b ? find_dot<false, true>(query) : find_dot<false, false>(query);
}

u32 byte_differences(u32 a, u32 b, u32) {
  u32 d = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 x = byte_of<false>(a, i);
    const u32 y = byte_of<false>(b, i);
    d |= (x < y ? y - x : x - y) << (8 * i);
  }
  return d;
}
u32 sum_of_byte_differences(u32 a, u32 b, u32 c) {
  const u32 d = byte_differences(a, b, c);
  return c + byte_of<false>(d, 0) + byte_of<false>(d, 1) + byte_of<false>(d, 2) + byte_of<false>(d, 3);
}

// --- masks -----------------------------------------------------------------------------------------------------------
// `count` ones beginning at bit `from`.
template <bool kClamp>
u32 bit_mask(u32 from, u32 count) {
  if (kClamp ? from >= 32 : false) return 0;
  const u32 first = from & 31;
  const u32 wanted = kClamp ? (count < 32 ? count : 32) : count & 31;
  const u64 ones = (u64{1} << wanted) - 1;
  return static_cast<u32>(ones << first);
}
// The low `width` bits of a, the rest zero or copies of their highest.
template <bool kSigned, bool kClamp>
u32 extend_from(u32 a, u32 width) {
  if (kClamp && width >= 32) return a;
  width &= 31;
  if (width == 0) return 0;
  const u32 low = a & ((u32{1} << width) - 1);
  const u32 sign = u32{1} << (width - 1);
  return kSigned ? (low ^ sign) - sign : low;
}
// The offset-th set bit from `base`, upward or downward; offset 0 tests `base` itself.
u32 nth_set_bit(u32 mask, u32 base, i32 offset) {
  if (static_cast<u32>(offset) == 0x80000000u) return 0;  // as on an H100, whatever the mask
  if (base > 31) return 0xffffffffu;
  if (offset == 0) return (mask >> base & 1) != 0 ? base : 0xffffffffu;
  u32 left = offset < 0 ? u32{0} - static_cast<u32>(offset) : static_cast<u32>(offset);
  for (i32 at_bit = static_cast<i32>(base); at_bit >= 0 && at_bit < 32; at_bit += offset < 0 ? -1 : 1) {
    if ((mask >> at_bit & 1) != 0 && --left == 0) return static_cast<u32>(at_bit);
  }
  return 0xffffffffu;
}

OpHandler find_mask(const OpQuery& query) {
  if (!has_widths(query, 4, 4, 4)) return nullptr;
  switch (query.opcode) {
    case Opcode::bmsk:
      return query.clamp ? lanewise<bit_mask<true>> : lanewise<bit_mask<false>>;
    case Opcode::szext:
      if (query.is_signed) return query.clamp ? lanewise<extend_from<true, true>> : lanewise<extend_from<true, false>>;
      return query.clamp ? lanewise<extend_from<false, true>> : lanewise<extend_from<false, false>>;
    default:
      return has_widths(query, 4, 4, 4, 4) ? lanewise<nth_set_bit> : nullptr;
  }
}

}  // namespace

OpHandler integer_lanewise(const OpQuery& query) {
  if (query.is_float) return nullptr;
  switch (query.opcode) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mad:
    case Opcode::addc:
    case Opcode::subc:
    case Opcode::madc:
      if (query.bytes == 4) return find_carry<u32>(query);
      return query.bytes == 8 ? find_carry<u64>(query) : nullptr;
    case Opcode::div:
    case Opcode::rem:
      return find_division_by_type(query);
    case Opcode::dp4a:
    case Opcode::dp2a:
      return find_dot_by_signs(query);
    case Opcode::vabsdiff4:
      if (query.type != Type::u32 || query.type2 != Type::u32 || query.type3 != Type::u32) return nullptr;
      if (!has_widths(query, 4, 4, 4, 4)) return nullptr;
      return query.add ? lanewise<sum_of_byte_differences> : lanewise<byte_differences>;
    case Opcode::bmsk:
    case Opcode::szext:
    case Opcode::fns:
      return find_mask(query);
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx::semantics
