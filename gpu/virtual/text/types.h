// The types of PTX registers, variables and instructions: name, width, class. The meaning of a type depends on the
// instruction.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvscope::ptx {

enum class Type : std::uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f32,
  f64,
  bf16,
  // Only in instructions: registers and variables cannot be declared with these.
  tf32,
  e4m3,
  e5m2,
  e2m3,
  e3m2,
  e2m1,
  ue8m0,
  ue4m3,
  f16x2,
  bf16x2,
  f32x2,
  u16x2,
  s16x2,
  e4m3x2,
  e5m2x2,
  e2m3x2,
  e3m2x2,
  e2m1x2,
  ue8m0x2,
  e4m3x4,
  e5m2x4,
  e2m3x4,
  e3m2x4,
  e2m1x4,
  u4,
  s4,
  b1,
};

enum class TypeClass : std::uint8_t { none, predicate, bits, unsigned_integer, signed_integer, floating };

[[nodiscard]] std::string_view name(Type type);                      // "bf16x2"; "" for none
[[nodiscard]] std::optional<Type> type_from_name(std::string_view);  // without the dot; std::nullopt: not a type
[[nodiscard]] int bits(Type type);                                   // 1 for pred and b1, 4 for u4 and e2m1; 0 for none
[[nodiscard]] TypeClass class_of(Type type);                         // f16x2 and e4m3x2 are floating
[[nodiscard]] constexpr bool is_declarable(Type type) {
  return type != Type::none && type < Type::tf32;
}

// The state space of a variable. `generic`: the address itself determines the space.
enum class Space : std::uint8_t { generic, reg, param, constant, global, local, shared };
[[nodiscard]] std::string_view name(Space space);  // "const" for constant

}  // namespace kvscope::ptx
