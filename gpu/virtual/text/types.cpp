#include "gpu/virtual/text/types.h"

#include <array>
#include <cstddef>

namespace kvscope::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
  TypeClass cls;
};

// In the order of Type.
constexpr std::array<TypeRow, 46> kTypes = {{
    {"", 0, TypeClass::none},
    {"pred", 1, TypeClass::predicate},
    {"b8", 8, TypeClass::bits},
    {"b16", 16, TypeClass::bits},
    {"b32", 32, TypeClass::bits},
    {"b64", 64, TypeClass::bits},
    {"b128", 128, TypeClass::bits},
    {"u8", 8, TypeClass::unsigned_integer},
    {"u16", 16, TypeClass::unsigned_integer},
    {"u32", 32, TypeClass::unsigned_integer},
    {"u64", 64, TypeClass::unsigned_integer},
    {"s8", 8, TypeClass::signed_integer},
    {"s16", 16, TypeClass::signed_integer},
    {"s32", 32, TypeClass::signed_integer},
    {"s64", 64, TypeClass::signed_integer},
    {"f16", 16, TypeClass::floating},
    {"f32", 32, TypeClass::floating},
    {"f64", 64, TypeClass::floating},
    {"bf16", 16, TypeClass::floating},
    {"tf32", 32, TypeClass::floating},
    {"e4m3", 8, TypeClass::floating},
    {"e5m2", 8, TypeClass::floating},
    {"e2m3", 6, TypeClass::floating},
    {"e3m2", 6, TypeClass::floating},
    {"e2m1", 4, TypeClass::floating},
    {"ue8m0", 8, TypeClass::floating},
    {"ue4m3", 8, TypeClass::floating},
    {"f16x2", 32, TypeClass::floating},
    {"bf16x2", 32, TypeClass::floating},
    {"f32x2", 64, TypeClass::floating},
    {"u16x2", 32, TypeClass::unsigned_integer},
    {"s16x2", 32, TypeClass::signed_integer},
    {"e4m3x2", 16, TypeClass::floating},
    {"e5m2x2", 16, TypeClass::floating},
    {"e2m3x2", 16, TypeClass::floating},
    {"e3m2x2", 16, TypeClass::floating},
    {"e2m1x2", 8, TypeClass::floating},
    {"ue8m0x2", 16, TypeClass::floating},
    {"e4m3x4", 32, TypeClass::floating},
    {"e5m2x4", 32, TypeClass::floating},
    {"e2m3x4", 32, TypeClass::floating},
    {"e3m2x4", 32, TypeClass::floating},
    {"e2m1x4", 16, TypeClass::floating},
    {"u4", 4, TypeClass::unsigned_integer},
    {"s4", 4, TypeClass::signed_integer},
    {"b1", 1, TypeClass::bits},
}};
static_assert(kTypes.size() == static_cast<std::size_t>(Type::b1) + 1);

constexpr std::array<std::string_view, 7> kSpaces = {"generic", "reg", "param", "const", "global", "local", "shared"};
static_assert(kSpaces.size() == static_cast<std::size_t>(Space::shared) + 1);

const TypeRow& row(Type type) {
  return kTypes[static_cast<std::size_t>(type)];
}

}  // namespace

std::string_view name(Type type) {
  return row(type).name;
}

std::optional<Type> type_from_name(std::string_view name) {
  for (std::size_t i = 1; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<Type>(i);
  }
  return std::nullopt;
}

int bits(Type type) {
  return row(type).bits;
}

TypeClass class_of(Type type) {
  return row(type).cls;
}

std::string_view name(Space space) {
  return kSpaces[static_cast<std::size_t>(space)];
}

}  // namespace kvscope::ptx
