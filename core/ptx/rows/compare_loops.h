// setp and set: 32 comparisons make a mask, which goes to predicates or becomes the numbers of set.
//
//   setp.lt.and.f32 p|q, a, b, c    p = (a < b) and c    q = !(a < b) and c
//   set.gt.f32.s32 d, a, b          d = a > b ? 1.0f : 0.0f
//
// Of floating-point comparisons eq ne lt le gt ge are false when an operand is NaN, ne too; equ neu ... are true then.
// Included by compare_baseline.cpp, compare_avx2.cpp, compare_avx512.cpp. Held by tests/core/ptx/rows.
#pragma once

#include "core/ptx/rows/float_bits.h"
#include "core/ptx/rows/lanes.h"

namespace kvscope::ptx::rows {
namespace {

template <Compare kCompare, class T>
inline bool holds(T a, T b) {
  switch (kCompare) {
    case Compare::eq: return a == b;
    case Compare::ne: return (a < b) | (a > b);
    case Compare::lt: return a < b;
    case Compare::le: return a <= b;
    case Compare::gt: return a > b;
    case Compare::ge: return a >= b;
    case Compare::equ: return !((a < b) | (a > b));
    case Compare::neu: return !(a == b);
    case Compare::ltu: return !(a >= b);
    case Compare::leu: return !(a > b);
    case Compare::gtu: return !(a <= b);
    case Compare::geu: return !(a < b);
    case Compare::num: return (a == a) & (b == b);
    default: return (a != a) | (b != b);
  }
}

// How a lane of a row is read as a number to compare.
template <class T>
struct Plain {
  using Stored = T;
  static T value(T x) { return x; }
};
struct Flushed {
  using Stored = float;
  static float value(float x) { return flush(x); }
};
struct HalfPrecision {
  using Stored = u16;
  static float value(u16 x) { return f16_to_f32(x); }
};
struct Brain {
  using Stored = u16;
  static float value(u16 x) { return bf16_to_f32(x); }
};
struct HalfPrecisionFlushed {
  using Stored = u16;
  static float value(u16 x) { return f16_to_f32(flush_f16(x)); }
};
// The lower or the upper half of a packed pair.
template <class Half, int kHalf>
struct Of {
  using Stored = u32;
  static float value(u32 x) { return Half::value(static_cast<u16>(x >> (16 * kHalf))); }
};

using MaskFunction = LaneMask (*)(const std::byte* a, const std::byte* b);
template <Compare kCompare, class Reading>
LaneMask compared(const std::byte* a_row, const std::byte* b_row) {
  using T = typename Reading::Stored;
  const auto* a = static_cast<const Cell<T>*>(__builtin_assume_aligned(a_row, 64));
  const auto* b = static_cast<const Cell<T>*>(__builtin_assume_aligned(b_row, 64));
  return lanes_where<T>(
      [a, b](int i) { return holds<kCompare>(Reading::value(a[i]), Reading::value(b[i])); });
}

inline LaneMask combined(Combine combine, LaneMask a, LaneMask c) {
  switch (combine) {
    case Combine::and_: return a & c;
    case Combine::or_: return a | c;
    case Combine::xor_: return a ^ c;
    default: return a;
  }
}

template <MaskFunction kLow, MaskFunction kHigh, Combine kCombine>
void set_predicates(std::byte* rows, const Op& op, LaneMask lanes) {
  const std::byte* a = rows + at(op, 1);
  const std::byte* b = rows + at(op, 2);
  const LaneMask c = kCombine == Combine::none ? 0 : read_pred(rows, op, 3);
  const LaneMask low = kLow(a, b);
  if (at(op, 4) != kNoRow) {
    const LaneMask q = kHigh == nullptr ? ~low : kHigh(a, b);
    write_pred(rows, at(op, 4), lanes, combined(kCombine, q, c));
  }
  write_pred(rows, at(op, 0), lanes, combined(kCombine, low, c));
}

// What set writes for true; two halves, or one value.
enum class Truth : std::uint8_t { ones16, ones32, one_f32, one_f16, one_bf16, ones_each, f16_each, bf16_each };
inline u32 truth_bits(Truth truth) {
  switch (truth) {
    case Truth::ones32: return 0xffffffffu;
    case Truth::one_f32: return 0x3f800000u;
    case Truth::one_f16:
    case Truth::f16_each: return 0x3c00u;
    case Truth::one_bf16:
    case Truth::bf16_each: return 0x3f80u;
    default: return 0xffffu;
  }
}
// Shared by all instances below: there are hundreds, and set is rare.
[[gnu::noinline]] void write_truth(std::byte* rows, const Op& op, LaneMask lanes, LaneMask low, LaneMask high,
                                   Combine combine, Truth truth) {
  const LaneMask c = combine == Combine::none ? 0 : read_pred(rows, op, 3);
  low = combined(combine, low, c);
  high = combined(combine, high, c);
  const u32 yes = truth_bits(truth);
  if (truth == Truth::ones16 || truth == Truth::one_f16 || truth == Truth::one_bf16) {
    store_lanes<u16>(row<u16>(rows, at(op, 0)), lanes,
                     [low, yes](int i) { return static_cast<u16>((low >> i & 1) * yes); });
    return;
  }
  if (truth == Truth::ones32 || truth == Truth::one_f32) high = 0;
  store_lanes<u32>(row<u32>(rows, at(op, 0)), lanes,
                   [low, high, yes](int i) { return (low >> i & 1) * yes | (high >> i & 1) * (yes << 16); });
}
template <MaskFunction kLow, MaskFunction kHigh, Combine kCombine, Truth kTruth>
void set_values(std::byte* rows, const Op& op, LaneMask lanes) {
  const std::byte* a = rows + at(op, 1);
  const std::byte* b = rows + at(op, 2);
  const LaneMask low = kLow(a, b);
  write_truth(rows, op, lanes, low, kHigh == nullptr ? 0 : kHigh(a, b), kCombine, kTruth);
}

// The handlers of all comparisons of one way to read, by number.
template <int... kNumbers>
struct Numbers {};
using IntegerCompares = Numbers<0, 1, 2, 3, 4, 5>;
using FloatCompares = Numbers<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13>;

template <class Low, class High, int kCompare>
struct Masks {
  static constexpr MaskFunction low = compared<static_cast<Compare>(kCompare), Low>;
  static constexpr MaskFunction high = compared<static_cast<Compare>(kCompare), High>;
};
template <class Low, int kCompare>
struct Masks<Low, void, kCompare> {
  static constexpr MaskFunction low = compared<static_cast<Compare>(kCompare), Low>;
  static constexpr MaskFunction high = nullptr;
};

template <class Low, class High, Combine kCombine, int... kCompares>
RowHandler find_setp_combined(const Ask& ask, Numbers<kCompares...>) {
  static constexpr RowHandler kTable[] = {
      set_predicates<Masks<Low, High, kCompares>::low, Masks<Low, High, kCompares>::high, kCombine>...};
  const int number = static_cast<int>(ask.compare);
  return number < static_cast<int>(sizeof...(kCompares)) ? kTable[number] : nullptr;
}
template <Truth kTruth, class Low, class High, Combine kCombine, int... kCompares>
RowHandler find_set_combined(const Ask& ask, Numbers<kCompares...>) {
  static constexpr RowHandler kTable[] = {
      set_values<Masks<Low, High, kCompares>::low, Masks<Low, High, kCompares>::high, kCombine, kTruth>...};
  const int number = static_cast<int>(ask.compare);
  return number < static_cast<int>(sizeof...(kCompares)) ? kTable[number] : nullptr;
}

template <class Low, class High, class Compares>
RowHandler find_setp(const Ask& ask, Compares compares) {
  switch (ask.combine) {
    case Combine::none: return find_setp_combined<Low, High, Combine::none>(ask, compares);
    case Combine::and_: return find_setp_combined<Low, High, Combine::and_>(ask, compares);
    case Combine::or_: return find_setp_combined<Low, High, Combine::or_>(ask, compares);
    default: return find_setp_combined<Low, High, Combine::xor_>(ask, compares);
  }
}
template <Truth kTruth, class Low, class High, class Compares>
RowHandler find_set_to(const Ask& ask, Compares compares) {
  switch (ask.combine) {
    case Combine::none: return find_set_combined<kTruth, Low, High, Combine::none>(ask, compares);
    case Combine::and_: return find_set_combined<kTruth, Low, High, Combine::and_>(ask, compares);
    case Combine::or_: return find_set_combined<kTruth, Low, High, Combine::or_>(ask, compares);
    default: return find_set_combined<kTruth, Low, High, Combine::xor_>(ask, compares);
  }
}

// By what the operands are. `Find` is called with the reading of the low half, of the high half or void, and the
// comparisons there are.
template <class Find>
RowHandler with_reading(Type type, const Ask& ask, Find find) {
  switch (type) {
    case Type::b16:
    case Type::u16: return find.template operator()<Plain<u16>, void>(IntegerCompares{});
    case Type::s16: return find.template operator()<Plain<i16>, void>(IntegerCompares{});
    case Type::b32:
    case Type::u32: return find.template operator()<Plain<u32>, void>(IntegerCompares{});
    case Type::s32: return find.template operator()<Plain<i32>, void>(IntegerCompares{});
    case Type::b64:
    case Type::u64: return find.template operator()<Plain<u64>, void>(IntegerCompares{});
    case Type::s64: return find.template operator()<Plain<i64>, void>(IntegerCompares{});
    case Type::f32:
      return ask.ftz ? find.template operator()<Flushed, void>(FloatCompares{})
                     : find.template operator()<Plain<float>, void>(FloatCompares{});
    case Type::f64: return find.template operator()<Plain<double>, void>(FloatCompares{});
    case Type::f16:
      return ask.ftz ? find.template operator()<HalfPrecisionFlushed, void>(FloatCompares{})
                     : find.template operator()<HalfPrecision, void>(FloatCompares{});
    case Type::bf16: return find.template operator()<Brain, void>(FloatCompares{});
    case Type::f16x2:
      return ask.ftz ? find.template operator()<Of<HalfPrecisionFlushed, 0>, Of<HalfPrecisionFlushed, 1>>(FloatCompares{})
                     : find.template operator()<Of<HalfPrecision, 0>, Of<HalfPrecision, 1>>(FloatCompares{});
    case Type::bf16x2: return find.template operator()<Of<Brain, 0>, Of<Brain, 1>>(FloatCompares{});
    default: return nullptr;
  }
}

RowHandler find_comparison(const Ask& ask) {
  if (ask.opcode != Opcode::setp || !ask.compares || !has_rows(ask, 0, ask.bytes, ask.bytes)) return nullptr;
  return with_reading(ask.type, ask, [&ask]<class Low, class High>(auto compares) {
    return find_setp<Low, High>(ask, compares);
  });
}

}  // namespace
}  // namespace kvscope::ptx::rows
