// Builds the handler of an instruction from a function of one lane: a plain loop over 32 lanes that the compiler
// vectorizes, and for partial masks the same loop with a select between new and old value.
//
//   u32 add(u32 a, u32 b)   ->   lanewise<add>: registers at op.at[1], at[2] -> register at op.at[0]
//
// Included by one source file per instruction set, each compiled with its own flags. All code is in an unnamed
// namespace and calls nothing of the standard library: the linker must not keep an inline function compiled with
// AVX-512 for the whole program.
//
// The operands of one op have the same place or disjoint places. A lane's result therefore never overwrites the input
// of another lane, and a loop may process lanes in any order.
#pragma once

#include "gpu/virtual/semantics/detail/op_query.h"
#include "gpu/virtual/semantics/op.h"

#if defined(__clang__)
#define KVSCOPE_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define KVSCOPE_LANES _Pragma("GCC ivdep")
#endif

namespace kvscope::ptx::semantics {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

// A register contains the result of the last instruction that wrote it, whatever its type was.
template <class T>
struct Aliased {
  typedef T type __attribute__((may_alias));
};
template <class T>
using Cell = typename Aliased<T>::type;

template <class T>
inline Cell<T>* register_of(std::byte* registers, u32 at) {
  return static_cast<Cell<T>*>(__builtin_assume_aligned(static_cast<void*>(registers + at), sizeof(T) < 2 ? 4 : 64));
}

template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

template <int kBytes>
struct OfBytes;
template <>
struct OfBytes<2> {
  using Unsigned = u16;
  using Signed = i16;
};
template <>
struct OfBytes<4> {
  using Unsigned = u32;
  using Signed = i32;
};
template <>
struct OfBytes<8> {
  using Unsigned = u64;
  using Signed = i64;
};
template <class T>
using Unsigned = typename OfBytes<sizeof(T)>::Unsigned;
template <class T>
using Signed = typename OfBytes<sizeof(T)>::Signed;

// The place of operand i. (Not op.at[i], which would call the standard library.)
inline u32 at(const Op& op, int i) {
  return reinterpret_cast<const u32*>(&op.at)[i];
}

// Whether the operands have these widths in bytes per lane; 0 on either side matches any width.
inline bool has_widths(const OpQuery& query, int wanted0, int wanted1, int wanted2 = 0, int wanted3 = 0,
                       int wanted4 = 0) {
  const int wanted[5] = {wanted0, wanted1, wanted2, wanted3, wanted4};
  for (int i = 0; i < 5; ++i) {
    if (wanted[i] != 0 && query.register_bytes[i] != 0 && wanted[i] != query.register_bytes[i]) return false;
  }
  return true;
}

// 1, 2, 4, ... as lanes of a type: lane i of sixteen is selected if (mask & kBit[i]) != 0, which needs no variable
// shift.
template <class T>
struct LaneBit {
  static constexpr T kBit[16] = {0x1,   0x2,   0x4,   0x8,   0x10,   0x20,   0x40,   0x80,
                                 0x100, 0x200, 0x400, 0x800, 0x1000, 0x2000, 0x4000, 0x8000};
};

// to[i] = selected lane ? value[i] : other[i], bit for bit. `value` and `other` are functions of i.
template <class T, class Value, class Other>
[[gnu::always_inline]] inline void choose(Cell<T>* to, LaneMask chosen, Value value, Other other) {
  using U = Unsigned<T>;
  for (int half = 0; half < 2; ++half) {
    const U mask = static_cast<U>(static_cast<u16>(chosen >> (16 * half)));
    KVSCOPE_LANES
    for (int i = 0; i < 16; ++i) {
      const int lane = 16 * half + i;
      const U take = static_cast<U>((mask & LaneBit<U>::kBit[i]) != 0 ? ~U{0} : U{0});
      to[lane] = bits_as<T>(static_cast<U>((bits_as<U>(static_cast<T>(value(lane))) & take) |
                                           (bits_as<U>(static_cast<T>(other(lane))) & static_cast<U>(~take))));
    }
  }
}

// The lanes where `test` holds.
template <class T, class Test>
[[gnu::always_inline]] inline LaneMask lanes_where(Test test) {
  using U = Unsigned<T>;
  LaneMask found = 0;
  for (int half = 0; half < 2; ++half) {
    U bits = 0;
    for (int i = 0; i < 16; ++i) {
      bits = static_cast<U>(bits | (test(16 * half + i) ? LaneBit<U>::kBit[i] : U{0}));
    }
    found |= static_cast<LaneMask>(static_cast<u16>(bits)) << (16 * half);
  }
  return found;
}

template <class D, class Value>
[[gnu::always_inline]] inline void store_lanes(Cell<D>* to, LaneMask lanes, Value value) {
  if (lanes == kAllLanes) [[likely]] {
    KVSCOPE_LANES
    for (int i = 0; i < kLanes; ++i) to[i] = value(i);
  } else {
    choose<D>(to, lanes, value, [to](int i) { return static_cast<D>(to[i]); });
  }
}

// Predicates.
inline LaneMask read_pred(const std::byte* registers, const Op& op, int i) {
  LaneMask word;
  __builtin_memcpy(&word, registers + at(op, i), sizeof word);
  return (op.negated >> i & 1) != 0 ? ~word : word;
}
inline void write_pred(std::byte* registers, u32 at, LaneMask lanes, LaneMask value) {
  if (at == kNoRegister) return;
  LaneMask word;
  __builtin_memcpy(&word, registers + at, sizeof word);
  word = (word & ~lanes) | (value & lanes);
  __builtin_memcpy(registers + at, &word, sizeof word);
}

// The handler of a function of one, two or three values. Operands begin at at[1]; the result is at[0].
template <auto kFunction>
struct Lanewise;
template <class D, class A, D (*kFunction)(A)>
struct Lanewise<kFunction> {
  static void run(std::byte* registers, const Op& op, LaneMask lanes) {
    const Cell<A>* a = register_of<A>(registers, at(op, 1));
    store_lanes<D>(register_of<D>(registers, at(op, 0)), lanes, [a](int i) { return kFunction(a[i]); });
  }
};
template <class D, class A, class B, D (*kFunction)(A, B)>
struct Lanewise<kFunction> {
  static void run(std::byte* registers, const Op& op, LaneMask lanes) {
    const Cell<A>* a = register_of<A>(registers, at(op, 1));
    const Cell<B>* b = register_of<B>(registers, at(op, 2));
    store_lanes<D>(register_of<D>(registers, at(op, 0)), lanes, [a, b](int i) { return kFunction(a[i], b[i]); });
  }
};
template <class D, class A, class B, class C, D (*kFunction)(A, B, C)>
struct Lanewise<kFunction> {
  static void run(std::byte* registers, const Op& op, LaneMask lanes) {
    const Cell<A>* a = register_of<A>(registers, at(op, 1));
    const Cell<B>* b = register_of<B>(registers, at(op, 2));
    const Cell<C>* c = register_of<C>(registers, at(op, 3));
    store_lanes<D>(register_of<D>(registers, at(op, 0)), lanes,
                   [a, b, c](int i) { return kFunction(a[i], b[i], c[i]); });
  }
};
// Five operands are stored in the list.
template <class D, class A, class B, class C, class E, D (*kFunction)(A, B, C, E)>
struct Lanewise<kFunction> {
  static void run(std::byte* registers, const Op& op, LaneMask lanes) {
    const Cell<A>* a = register_of<A>(registers, op.list[1]);
    const Cell<B>* b = register_of<B>(registers, op.list[2]);
    const Cell<C>* c = register_of<C>(registers, op.list[3]);
    const Cell<E>* e = register_of<E>(registers, op.list[4]);
    store_lanes<D>(register_of<D>(registers, op.list[0]), lanes,
                   [a, b, c, e](int i) { return kFunction(a[i], b[i], c[i], e[i]); });
  }
};

template <auto kFunction>
constexpr OpHandler lanewise = &Lanewise<kFunction>::run;

}  // namespace
}  // namespace kvscope::ptx::semantics
