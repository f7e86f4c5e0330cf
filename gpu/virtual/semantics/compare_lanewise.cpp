// Comparisons of 16-bit numbers and pairs, set, slct, testp: rare, so compiled once.
#include <array>
#include <utility>

#include "gpu/virtual/semantics/detail/compare_loops.h"
#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics {
namespace {

// --- set, and setp of 16-bit numbers ---------------------------------------------------------------------------------
// All use one algorithm: both registers are read as 64-bit integers or doubles, compared, and the mask is written in
// the format of the instruction. The instruction is encoded in one number, and a handler is instantiated for each.
//
//   set.gt.f32.s32 d, a, b      d = a > b ? 1.0f : 0.0f
//   setp.lt.f16x2 p|q, a, b     p compares the lower halves, q the upper ones

enum class Reading : std::uint8_t {
  unsigned16,
  signed16,
  unsigned32,
  signed32,
  unsigned64,
  signed64,
  f32,
  f32_flushed,
  f64,
  f16,
  f16_flushed,
  bf16,
  f16x2,
  f16x2_flushed,
  bf16x2
};
constexpr int kReadings = 15;
enum class Result : std::uint8_t { predicate, ones16, ones32, one };  // one: 1.0 of the type; for pairs in each half
constexpr int kResults = 4;
constexpr int kCombines = 4;
constexpr int kCodes = kReadings * kCompares * kCombines * kResults;

constexpr int code_of(Reading reading, Compare compare, Combine combine, Result result) {
  return ((static_cast<int>(reading) * kCompares + static_cast<int>(compare)) * kCombines + static_cast<int>(combine)) *
             kResults +
         static_cast<int>(result);
}

bool is_pair(Reading reading) {
  return reading >= Reading::f16x2;
}

template <class T, class To>
void widen_register(const std::byte* from, To* to) {
  for (int i = 0; i < kLanes; ++i) {
    T x;
    __builtin_memcpy(&x, from + sizeof(T) * static_cast<u32>(i), sizeof x);
    to[i] = static_cast<To>(x);
  }
}
double float_of(Reading reading, u32 word, int half) {
  const u16 x = static_cast<u16>(word >> (16 * half));
  switch (reading) {
    case Reading::f32:
      return double{bits_as<float>(word)};
    case Reading::f32_flushed:
      return double{flush(bits_as<float>(word))};
    case Reading::f16:
    case Reading::f16x2:
      return double{f16_to_f32(x)};
    case Reading::f16_flushed:
    case Reading::f16x2_flushed:
      return double{f16_to_f32(flush_f16(x))};
    default:
      return double{bf16_to_f32(x)};
  }
}
void read_floats(Reading reading, const std::byte* from, int half, double* to) {
  if (reading == Reading::f64) return widen_register<double>(from, to);
  const int stride = reading == Reading::f16 || reading == Reading::f16_flushed || reading == Reading::bf16 ? 2 : 4;
  for (int i = 0; i < kLanes; ++i) {
    u32 word = 0;
    __builtin_memcpy(&word, from + stride * i, static_cast<u32>(stride));
    to[i] = float_of(reading, word, half);
  }
}
void read_integers(Reading reading, const std::byte* from, i64* to) {
  switch (reading) {
    case Reading::unsigned16:
      return widen_register<u16>(from, to);
    case Reading::signed16:
      return widen_register<i16>(from, to);
    case Reading::unsigned32:
      return widen_register<u32>(from, to);
    case Reading::signed32:
      return widen_register<i32>(from, to);
    default:
      return widen_register<i64>(from, to);
  }
}

template <class T>
bool holds_for(Compare compare, T a, T b) {
  switch (compare) {
    case Compare::eq:
      return holds<Compare::eq>(a, b);
    case Compare::ne:
      return holds<Compare::ne>(a, b);
    case Compare::lt:
      return holds<Compare::lt>(a, b);
    case Compare::le:
      return holds<Compare::le>(a, b);
    case Compare::gt:
      return holds<Compare::gt>(a, b);
    case Compare::ge:
      return holds<Compare::ge>(a, b);
    case Compare::equ:
      return holds<Compare::equ>(a, b);
    case Compare::neu:
      return holds<Compare::neu>(a, b);
    case Compare::ltu:
      return holds<Compare::ltu>(a, b);
    case Compare::leu:
      return holds<Compare::leu>(a, b);
    case Compare::gtu:
      return holds<Compare::gtu>(a, b);
    case Compare::geu:
      return holds<Compare::geu>(a, b);
    case Compare::num:
      return holds<Compare::num>(a, b);
    default:
      return holds<Compare::nan>(a, b);
  }
}
template <class T>
LaneMask mask_of(Compare compare, const T* a, const T* b) {
  LaneMask mask = 0;
  for (int i = 0; i < kLanes; ++i) mask |= static_cast<LaneMask>(holds_for(compare, a[i], b[i])) << i;
  return mask;
}
LaneMask compare_registers(Reading reading, Compare compare, const std::byte* a, const std::byte* b, int half) {
  if (reading >= Reading::f32) {
    double x[kLanes], y[kLanes];
    read_floats(reading, a, half, x);
    read_floats(reading, b, half, y);
    return mask_of(compare, x, y);
  }
  i64 x[kLanes], y[kLanes];
  read_integers(reading, a, x);
  read_integers(reading, b, y);
  if (reading != Reading::unsigned64) return mask_of(compare, x, y);
  // In unsigned order: the lowest signed number maps to 0.
  for (int i = 0; i < kLanes; ++i) {
    x[i] = static_cast<i64>(static_cast<u64>(x[i]) ^ 0x8000000000000000u);
    y[i] = static_cast<i64>(static_cast<u64>(y[i]) ^ 0x8000000000000000u);
  }
  return mask_of(compare, x, y);
}

u32 bits_of_one(Reading reading) {
  switch (reading) {
    case Reading::f16:
    case Reading::f16_flushed:
      return 0x3c00u;
    case Reading::bf16:
      return 0x3f80u;
    case Reading::f16x2:
    case Reading::f16x2_flushed:
      return 0x3c003c00u;
    case Reading::bf16x2:
      return 0x3f803f80u;
    default:
      return 0x3f800000u;
  }
}

void compare_by(int code, std::byte* registers, const Op& op, LaneMask lanes) {
  const auto result = static_cast<Result>(code % kResults);
  const auto combine = static_cast<Combine>(code / kResults % kCombines);
  const auto compare = static_cast<Compare>(code / (kResults * kCombines) % kCompares);
  const auto reading = static_cast<Reading>(code / (kResults * kCombines * kCompares));
  const std::byte* a = registers + at(op, 1);
  const std::byte* b = registers + at(op, 2);
  const LaneMask c = combine == Combine::none ? 0 : read_pred(registers, op, 3);
  const LaneMask lower = compare_registers(reading, compare, a, b, 0);
  const LaneMask upper = is_pair(reading) ? compare_registers(reading, compare, a, b, 1) : lower;
  const LaneMask low = combined(combine, lower, c);
  const LaneMask high = combined(combine, upper, c);
  if (result == Result::predicate) {
    write_pred(registers, at(op, 4), lanes, is_pair(reading) ? high : combined(combine, ~lower, c));
    write_pred(registers, at(op, 0), lanes, low);
    return;
  }
  const bool narrow = result == Result::ones16 || (result == Result::one && bits_of_one(reading) < 0x10000u);
  const u32 yes = result == Result::one ? bits_of_one(reading) : 0xffffffffu;
  if (narrow) {
    store_lanes<u16>(register_of<u16>(registers, at(op, 0)), lanes,
                     [=](int i) { return static_cast<u16>((low >> i & 1) * yes); });
    return;
  }
  store_lanes<u32>(register_of<u32>(registers, at(op, 0)), lanes,
                   [=](int i) { return ((low >> i & 1) * 0xffffu | (high >> i & 1) * 0xffff0000u) & yes; });
}

template <int kCode>
void coded(std::byte* registers, const Op& op, LaneMask lanes) {
  compare_by(kCode, registers, op, lanes);
}
template <int... kCode>
constexpr std::array<OpHandler, kCodes> comparison_handlers(std::integer_sequence<int, kCode...>) {
  return {coded<kCode>...};
}
constexpr std::array<OpHandler, kCodes> kComparisonHandlers =
    comparison_handlers(std::make_integer_sequence<int, kCodes>{});

bool reading_of(Type type, bool flushed, Reading& reading) {
  switch (type) {
    case Type::b16:
    case Type::u16:
      reading = Reading::unsigned16;
      return true;
    case Type::s16:
      reading = Reading::signed16;
      return true;
    case Type::b32:
    case Type::u32:
      reading = Reading::unsigned32;
      return true;
    case Type::s32:
      reading = Reading::signed32;
      return true;
    case Type::b64:
    case Type::u64:
      reading = Reading::unsigned64;
      return true;
    case Type::s64:
      reading = Reading::signed64;
      return true;
    case Type::f32:
      reading = flushed ? Reading::f32_flushed : Reading::f32;
      return true;
    case Type::f64:
      reading = Reading::f64;
      return true;
    case Type::f16:
      reading = flushed ? Reading::f16_flushed : Reading::f16;
      return true;
    case Type::bf16:
      reading = Reading::bf16;
      return true;
    case Type::f16x2:
      reading = flushed ? Reading::f16x2_flushed : Reading::f16x2;
      return true;
    case Type::bf16x2:
      reading = Reading::bf16x2;
      return true;
    default:
      return false;
  }
}

OpHandler find_coded(const OpQuery& query, Type type, Result result) {
  Reading reading{};
  if (!query.compares || !reading_of(type, query.ftz, reading)) return nullptr;
  if (reading < Reading::f32 && query.compare > Compare::ge) return nullptr;
  return kComparisonHandlers[static_cast<std::size_t>(code_of(reading, query.compare, query.combine, result))];
}

OpHandler find_set(const OpQuery& query) {
  switch (query.type) {
    case Type::u16:
    case Type::s16:
      return find_coded(query, query.type2, Result::ones16);
    case Type::u32:
    case Type::s32:
      return find_coded(query, query.type2, Result::ones32);
    case Type::f32:
      return query.type2 == Type::f16 || query.type2 == Type::bf16 ? nullptr
                                                                   : find_coded(query, query.type2, Result::one);
    default:
      return query.type == query.type2 ? find_coded(query, query.type2, Result::one) : nullptr;
  }
}

// d = c >= 0 ? a : b; -0.0 counts as >= 0, NaN does not.
template <class U, class C>
U slct(U a, U b, C c) {
  return c >= 0 ? a : b;
}
template <class U>
U slct_flushed(U a, U b, float c) {
  return flush(c) >= 0 ? a : b;
}
template <class U>
OpHandler find_slct(const OpQuery& query) {
  if (!has_widths(query, sizeof(U), sizeof(U), sizeof(U), 4)) return nullptr;
  if (query.type2 == Type::s32) return lanewise<slct<U, i32>>;
  if (query.type2 != Type::f32) return nullptr;
  return query.ftz ? lanewise<slct_flushed<U>> : lanewise<slct<U, float>>;
}

// testp.normal is true for zero here, as in the assembler's constant folding.
template <Class kClass, class T>
bool is(T x) {
  using U = Unsigned<T>;
  constexpr U kInfinite = sizeof(T) == 4 ? U{0x7f800000} : static_cast<U>(0x7ff0000000000000u);
  const U magnitude = bits_as<U>(absolute_float(x));
  const bool tiny = magnitude != 0 && (magnitude & kInfinite) == 0;
  switch (kClass) {
    case Class::finite:
      return magnitude < kInfinite;
    case Class::infinite:
      return magnitude == kInfinite;
    case Class::number:
      return magnitude <= kInfinite;
    case Class::notanumber:
      return magnitude > kInfinite;
    case Class::normal:
      return magnitude < kInfinite && !tiny;
    default:
      return tiny;
  }
}
template <Class kClass, class T>
void test_class(std::byte* registers, const Op& op, LaneMask lanes) {
  const Cell<T>* a = register_of<T>(registers, at(op, 1));
  write_pred(registers, at(op, 0), lanes, lanes_where<T>([a](int i) { return is<kClass, T>(a[i]); }));
}
template <class T>
OpHandler find_class(const OpQuery& query) {
  switch (query.float_class) {
    case Class::finite:
      return test_class<Class::finite, T>;
    case Class::infinite:
      return test_class<Class::infinite, T>;
    case Class::number:
      return test_class<Class::number, T>;
    case Class::notanumber:
      return test_class<Class::notanumber, T>;
    case Class::normal:
      return test_class<Class::normal, T>;
    case Class::subnormal:
      return test_class<Class::subnormal, T>;
    default:
      return nullptr;
  }
}

// The sign of the first source, the magnitude of the second.
template <class T>
T copy_sign(T a, T b) {
  using U = Unsigned<T>;
  constexpr U kSign = U{1} << (8 * sizeof(T) - 1);
  return bits_as<T>(static_cast<U>((bits_as<U>(a) & kSign) | (bits_as<U>(b) & ~kSign)));
}

}  // namespace

OpHandler compare_lanewise(const OpQuery& query) {
  switch (query.opcode) {
    case Opcode::setp:
      return query.is_float && query.bytes <= 4 ? find_coded(query, query.type, Result::predicate) : nullptr;
    case Opcode::set:
      return find_set(query);
    case Opcode::slct:
      if (query.bytes == 2) return find_slct<u16>(query);
      if (query.bytes == 4) return find_slct<u32>(query);
      return query.bytes == 8 ? find_slct<u64>(query) : nullptr;
    case Opcode::testp:
      return query.type == Type::f64 ? find_class<double>(query) : find_class<float>(query);
    case Opcode::copysign:
      if (query.type == Type::f64) return has_widths(query, 8, 8, 8) ? lanewise<copy_sign<double>> : nullptr;
      return has_widths(query, 4, 4, 4) ? lanewise<copy_sign<float>> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx::semantics
