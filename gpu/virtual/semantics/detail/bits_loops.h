// Bits: and or xor not cnot lop3, shifts, funnel shifts, prmt, selp, and mov of one value.
// Compiled once per instruction set (CMakeLists.txt). Tested by tests/gpu/virtual/semantics.
#pragma once

#include "gpu/virtual/semantics/detail/lanes.h"

namespace kvscope::ptx::semantics {
namespace {

template <class T>
inline T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
inline T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
inline T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <class T>
inline T bit_not(T a) {
  return static_cast<T>(~a);
}
template <class T>
inline T is_zero(T a) {
  return a == 0 ? T{1} : T{0};
}

// A predicate register is one word, so the handlers process all lanes of it at once.
template <Opcode kOpcode>
void logic_of_predicates(std::byte* registers, const Op& op, LaneMask lanes) {
  const LaneMask a = read_pred(registers, op, 1);
  LaneMask result = a;
  if constexpr (kOpcode == Opcode::and_) result = a & read_pred(registers, op, 2);
  if constexpr (kOpcode == Opcode::or_) result = a | read_pred(registers, op, 2);
  if constexpr (kOpcode == Opcode::xor_) result = a ^ read_pred(registers, op, 2);
  if constexpr (kOpcode == Opcode::not_) result = ~a;
  write_pred(registers, at(op, 0), lanes, result);
}

// Bit i of the result is bit 4 a_i + 2 b_i + c_i of the table: the OR of those of the 8 products that the table
// selects.
inline u32 lookup3(u32 a, u32 b, u32 c, u32 table) {
  u32 d = 0;
  for (u32 i = 0; i < 8; ++i) {
    const u32 in_table = u32{0} - (table >> i & 1);
    d |= in_table & ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
  }
  return d;
}
// lop3.and d|p, a, b, c, table, q: p = (d != 0) and q. List: d p a b c table q; q is operand 5 in the source, where d|p
// counts as one operand.
template <Combine kCombine>
void lookup3_with_test(std::byte* registers, const Op& op, LaneMask lanes) {
  const Cell<u32>* a = register_of<u32>(registers, op.list[2]);
  const Cell<u32>* b = register_of<u32>(registers, op.list[3]);
  const Cell<u32>* c = register_of<u32>(registers, op.list[4]);
  const Cell<u32>* table = register_of<u32>(registers, op.list[5]);
  u32 d[kLanes];
  for (int i = 0; i < kLanes; ++i) d[i] = lookup3(a[i], b[i], c[i], table[i]);
  LaneMask q;
  __builtin_memcpy(&q, registers + op.list[6], sizeof q);
  if ((op.negated >> 5 & 1) != 0) q = ~q;
  const LaneMask any = lanes_where<u32>([&d](int i) { return d[i] != 0; });
  if (op.list[0] != kNoRegister)
    store_lanes<u32>(register_of<u32>(registers, op.list[0]), lanes, [&d](int i) { return d[i]; });
  write_pred(registers, op.list[1], lanes, kCombine == Combine::and_ ? any & q : any | q);
}

// Amounts are unsigned and clamp: a shift by the width or more gives zeros, or copies of the sign.
template <class T>
inline T shift_left(T a, u32 amount) {
  constexpr u32 kBits = 8 * sizeof(T);
  const T shifted = static_cast<T>(a << (amount & (kBits - 1)));
  return amount < kBits ? shifted : T{0};
}
template <class T>
inline T shift_right(T a, u32 amount) {
  constexpr u32 kBits = 8 * sizeof(T);
  if constexpr (T(-1) < T(0)) {
    return static_cast<T>(a >> (amount < kBits ? amount : kBits - 1));
  } else {
    const T shifted = static_cast<T>(a >> (amount & (kBits - 1)));
    return amount < kBits ? shifted : T{0};
  }
}

// The 64-bit pair b:a, shifted; returns the upper word of a left shift, the lower word of a right shift.
template <bool kLeft, bool kClamp>
inline u32 funnel(u32 a, u32 b, u32 amount) {
  const u32 n = kClamp ? (amount < 32 ? amount : 32) : amount & 31;
  const u64 both = u64{b} << 32 | a;
  return kLeft ? static_cast<u32>((both << n) >> 32) : static_cast<u32>(both >> n);
}

// Selects a byte of b:a for each nibble of the selector; bit 3 of the nibble replicates that byte's sign instead.
inline u32 permute(u32 a, u32 b, u32 selector) {
  const u64 both = u64{b} << 32 | a;
  u32 d = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 nibble = selector >> (4 * i) & 0xf;
    const u32 byte = static_cast<u32>(both >> (8 * (nibble & 7))) & 0xff;
    const u32 sign = (byte >> 7) * 0xff;
    d |= ((nibble & 8) != 0 ? sign : byte) << (8 * i);
  }
  return d;
}
// The named modes: the selector for each of the four values of c.
template <PrmtMode kMode>
inline u32 permute_by_mode(u32 a, u32 b, u32 c) {
  constexpr u32 kSelectors[7][4] = {{0, 0, 0, 0},
                                    {0x3210, 0x4321, 0x5432, 0x6543},   // f4e
                                    {0x5670, 0x6701, 0x7012, 0x0123},   // b4e
                                    {0x0000, 0x1111, 0x2222, 0x3333},   // rc8
                                    {0x3210, 0x3211, 0x3222, 0x3333},   // ecl
                                    {0x0000, 0x1110, 0x2210, 0x3210},   // ecr
                                    {0x1010, 0x3232, 0x1010, 0x3232}};  // rc16
  return permute(a, b, kSelectors[static_cast<int>(kMode)][c & 3]);
}

// d = p ? a : b; the predicate is operand 3.
template <class T>
void select(std::byte* registers, const Op& op, LaneMask lanes) {
  const LaneMask p = read_pred(registers, op, 3);
  const Cell<T>* a = register_of<T>(registers, at(op, 1));
  const Cell<T>* b = register_of<T>(registers, at(op, 2));
  Cell<T>* d = register_of<T>(registers, at(op, 0));
  if (lanes == kAllLanes) [[likely]] {
    choose<T>(
        d, p, [a](int i) { return static_cast<T>(a[i]); }, [b](int i) { return static_cast<T>(b[i]); });
    return;
  }
  choose<T>(
      d, lanes & p, [a](int i) { return static_cast<T>(a[i]); }, [d](int i) { return static_cast<T>(d[i]); });
  choose<T>(
      d, lanes & ~p, [b](int i) { return static_cast<T>(b[i]); }, [d](int i) { return static_cast<T>(d[i]); });
}

template <class To, class From>
inline To moved(From a) {
  return static_cast<To>(a);
}
template <class To>
inline OpHandler find_move_to(int from_bytes) {
  switch (from_bytes) {
    case 2:
      return lanewise<moved<To, u16>>;
    case 4:
      return lanewise<moved<To, u32>>;
    case 8:
      return lanewise<moved<To, u64>>;
    default:
      return nullptr;
  }
}
struct Quad {
  u64 lo, hi;
};
inline void move_quad(std::byte* registers, const Op& op, LaneMask lanes) {
  const std::byte* a = registers + at(op, 1);
  std::byte* d = registers + at(op, 0);
  for (int i = 0; i < kLanes; ++i) {
    if ((lanes >> i & 1) != 0) __builtin_memmove(d + 16 * i, a + 16 * i, 16);
  }
}

// A special register may be read with a narrower or wider type than its own; the low bits are moved.
inline OpHandler find_move(const OpQuery& query) {
  if (query.type == Type::pred) return logic_of_predicates<Opcode::mov>;
  const int to = query.register_bytes[0] != 0 ? query.register_bytes[0] : query.bytes;
  const int from = query.register_bytes[1] != 0 ? query.register_bytes[1] : query.bytes;
  switch (to) {
    case 2:
      return find_move_to<u16>(from);
    case 4:
      return find_move_to<u32>(from);
    case 8:
      return find_move_to<u64>(from);
    case 16:
      return from == 16 ? move_quad : nullptr;
    default:
      return nullptr;
  }
}

inline OpHandler find_predicate_logic(const OpQuery& query) {
  switch (query.opcode) {
    case Opcode::and_:
      return logic_of_predicates<Opcode::and_>;
    case Opcode::or_:
      return logic_of_predicates<Opcode::or_>;
    case Opcode::xor_:
      return logic_of_predicates<Opcode::xor_>;
    case Opcode::not_:
      return logic_of_predicates<Opcode::not_>;
    default:
      return nullptr;
  }
}

template <class U>
inline OpHandler find_bits_by_width(const OpQuery& query) {
  constexpr int kBytes = sizeof(U);
  switch (query.opcode) {
    case Opcode::and_:
      return has_widths(query, kBytes, kBytes, kBytes) ? lanewise<bit_and<U>> : nullptr;
    case Opcode::or_:
      return has_widths(query, kBytes, kBytes, kBytes) ? lanewise<bit_or<U>> : nullptr;
    case Opcode::xor_:
      return has_widths(query, kBytes, kBytes, kBytes) ? lanewise<bit_xor<U>> : nullptr;
    case Opcode::not_:
      return has_widths(query, kBytes, kBytes) ? lanewise<bit_not<U>> : nullptr;
    case Opcode::cnot:
      return has_widths(query, kBytes, kBytes) ? lanewise<is_zero<U>> : nullptr;
    case Opcode::shl:
      return has_widths(query, kBytes, kBytes, 4) ? lanewise<shift_left<U>> : nullptr;
    case Opcode::shr:
      if (!has_widths(query, kBytes, kBytes, 4)) return nullptr;
      return query.is_signed ? lanewise<shift_right<Signed<U>>> : lanewise<shift_right<U>>;
    case Opcode::selp:
      return has_widths(query, kBytes, kBytes, kBytes) ? select<U> : nullptr;
    default:
      return nullptr;
  }
}

inline OpHandler find_permute(const OpQuery& query) {
  switch (query.prmt) {
    case PrmtMode::f4e:
      return lanewise<permute_by_mode<PrmtMode::f4e>>;
    case PrmtMode::b4e:
      return lanewise<permute_by_mode<PrmtMode::b4e>>;
    case PrmtMode::rc8:
      return lanewise<permute_by_mode<PrmtMode::rc8>>;
    case PrmtMode::ecl:
      return lanewise<permute_by_mode<PrmtMode::ecl>>;
    case PrmtMode::ecr:
      return lanewise<permute_by_mode<PrmtMode::ecr>>;
    case PrmtMode::rc16:
      return lanewise<permute_by_mode<PrmtMode::rc16>>;
    default:
      return lanewise<permute>;
  }
}

inline OpHandler find_bits(const OpQuery& query) {
  switch (query.opcode) {
    case Opcode::mov:
      return query.vector == 1 && !query.uses_list ? find_move(query) : nullptr;
    case Opcode::lop3:
      if (query.combine == Combine::and_) return lookup3_with_test<Combine::and_>;
      if (query.combine == Combine::or_) return lookup3_with_test<Combine::or_>;
      return has_widths(query, 4, 4, 4, 4, 4) ? lanewise<lookup3> : nullptr;
    case Opcode::shf:
      if (!has_widths(query, 4, 4, 4, 4)) return nullptr;
      if (query.left) return query.clamp ? lanewise<funnel<true, true>> : lanewise<funnel<true, false>>;
      return query.clamp ? lanewise<funnel<false, true>> : lanewise<funnel<false, false>>;
    case Opcode::prmt:
      return has_widths(query, 4, 4, 4, 4) ? find_permute(query) : nullptr;
    default:
      break;
  }
  if (query.type == Type::pred) return find_predicate_logic(query);
  switch (query.bytes) {
    case 2:
      return find_bits_by_width<u16>(query);
    case 4:
      return find_bits_by_width<u32>(query);
    case 8:
      return find_bits_by_width<u64>(query);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace kvscope::ptx::semantics
