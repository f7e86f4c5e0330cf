// setp of whole registers: 32 comparisons make a mask, which is written to predicates. The rest: compare_lanewise.cpp.
//
//   setp.lt.and.f32 p|q, a, b, c    p = (a < b) and c    q = !(a < b) and c
//
// In floating-point comparisons with a NaN operand, eq ne lt le gt ge are false, and equ neu ltu leu gtu geu are true.
// Compiled once per instruction set (CMakeLists.txt). Tested by tests/gpu/virtual/semantics.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "gpu/virtual/semantics/detail/extremes.h"
#include "gpu/virtual/semantics/detail/lanes.h"

namespace kvscope::ptx::semantics {
namespace {

template <Compare kCompare, class T>
inline bool holds(T a, T b) {
  switch (kCompare) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return (a < b) | (a > b);
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
    case Compare::equ:
      return !((a < b) | (a > b));
    case Compare::neu:
      return !(a == b);
    case Compare::ltu:
      return !(a >= b);
    case Compare::leu:
      return !(a > b);
    case Compare::gtu:
      return !(a <= b);
    case Compare::geu:
      return !(a < b);
    case Compare::num:
      return (a == a) & (b == b);
    default:
      return (a != a) | (b != b);
  }
}

// How a lane of a register is interpreted as a number.
template <class T>
struct Plain {
  using Stored = T;
  static T value(T x) { return x; }
};
struct Flushed {
  using Stored = float;
  static float value(float x) { return flush(x); }
};
// The lanes whose word is all ones.
#if defined(__AVX2__)
inline LaneMask mask_of_words(const u32* words) {
  LaneMask mask = 0;
  for (int i = 0; i < 4; ++i) {
    const __m256 eight = _mm256_load_ps(reinterpret_cast<const float*>(words + 8 * i));
    mask |= static_cast<LaneMask>(_mm256_movemask_ps(eight)) << (8 * i);
  }
  return mask;
}
inline LaneMask mask_of_words(const u64* words) {
  LaneMask mask = 0;
  for (int i = 0; i < 8; ++i) {
    const __m256d four = _mm256_load_pd(reinterpret_cast<const double*>(words + 4 * i));
    mask |= static_cast<LaneMask>(_mm256_movemask_pd(four)) << (4 * i);
  }
  return mask;
}
inline LaneMask mask_of_words(const u16* words) {
  const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(words));
  const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i*>(words + 16));
  // Packed within 128 bits, so the second and third quarter are exchanged.
  const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
  return static_cast<LaneMask>(_mm256_movemask_epi8(bytes));
}
#endif

using MaskFunction = LaneMask (*)(const std::byte* a, const std::byte* b);
template <Compare kCompare, class Reading>
LaneMask compared(const std::byte* a_register, const std::byte* b_register) {
  using T = typename Reading::Stored;
  const auto* a = static_cast<const Cell<T>*>(__builtin_assume_aligned(a_register, 64));
  const auto* b = static_cast<const Cell<T>*>(__builtin_assume_aligned(b_register, 64));
#if defined(__AVX2__)
  using U = Unsigned<T>;
  alignas(64) U words[kLanes];
  KVSCOPE_LANES
  for (int i = 0; i < kLanes; ++i) {
    words[i] = holds<kCompare>(Reading::value(a[i]), Reading::value(b[i])) ? static_cast<U>(~U{0}) : U{0};
  }
  return mask_of_words(words);
#else
  return lanes_where<T>([a, b](int i) { return holds<kCompare>(Reading::value(a[i]), Reading::value(b[i])); });
#endif
}

inline LaneMask combined(Combine combine, LaneMask a, LaneMask c) {
  switch (combine) {
    case Combine::and_:
      return a & c;
    case Combine::or_:
      return a | c;
    case Combine::xor_:
      return a ^ c;
    default:
      return a;
  }
}

template <MaskFunction kMask, Combine kCombine>
void set_predicates(std::byte* registers, const Op& op, LaneMask lanes) {
  const LaneMask c = kCombine == Combine::none ? 0 : read_pred(registers, op, 3);
  const LaneMask holding = kMask(registers + at(op, 1), registers + at(op, 2));
  write_pred(registers, at(op, 4), lanes, combined(kCombine, ~holding, c));
  write_pred(registers, at(op, 0), lanes, combined(kCombine, holding, c));
}

// The handlers of all comparisons of one number format, by comparison number.
template <int... kNumbers>
struct Numbers {};
using IntegerCompares = Numbers<0, 1, 2, 3, 4, 5>;
using FloatCompares = Numbers<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13>;

template <class Reading, Combine kCombine, int... kCompares>
OpHandler find_setp_combined(const OpQuery& query, Numbers<kCompares...>) {
  static constexpr OpHandler kTable[] = {
      set_predicates<compared<static_cast<Compare>(kCompares), Reading>, kCombine>...};
  const int number = static_cast<int>(query.compare);
  return number < static_cast<int>(sizeof...(kCompares)) ? kTable[number] : nullptr;
}
template <class Reading, class Compares>
OpHandler find_setp(const OpQuery& query, Compares compares) {
  switch (query.combine) {
    case Combine::none:
      return find_setp_combined<Reading, Combine::none>(query, compares);
    case Combine::and_:
      return find_setp_combined<Reading, Combine::and_>(query, compares);
    case Combine::or_:
      return find_setp_combined<Reading, Combine::or_>(query, compares);
    default:
      return find_setp_combined<Reading, Combine::xor_>(query, compares);
  }
}

inline OpHandler find_comparison(const OpQuery& query) {
  if (query.opcode != Opcode::setp || !query.compares || !has_widths(query, 0, query.bytes, query.bytes))
    return nullptr;
  switch (query.type) {
    case Type::b16:
    case Type::u16:
      return find_setp<Plain<u16>>(query, IntegerCompares{});
    case Type::s16:
      return find_setp<Plain<i16>>(query, IntegerCompares{});
    case Type::b32:
    case Type::u32:
      return find_setp<Plain<u32>>(query, IntegerCompares{});
    case Type::s32:
      return find_setp<Plain<i32>>(query, IntegerCompares{});
    case Type::b64:
    case Type::u64:
      return find_setp<Plain<u64>>(query, IntegerCompares{});
    case Type::s64:
      return find_setp<Plain<i64>>(query, IntegerCompares{});
    case Type::f32:
      return query.ftz ? find_setp<Flushed>(query, FloatCompares{}) : find_setp<Plain<float>>(query, FloatCompares{});
    case Type::f64:
      return find_setp<Plain<double>>(query, FloatCompares{});
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace kvscope::ptx::semantics
