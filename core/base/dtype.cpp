#include "core/base/dtype.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "core/base/errors.h"

namespace kvscope {
namespace {

struct DTypeRow {
  std::string_view name;
  int bits;
};

constexpr std::array<DTypeRow, kDTypeCount> kRows = {{{"f64", 64},
                                                      {"f32", 32},
                                                      {"f16", 16},
                                                      {"bf16", 16},
                                                      {"e4m3", 8},
                                                      {"e5m2", 8},
                                                      {"e8m0", 8},
                                                      {"e2m1", 4},
                                                      {"i8", 8},
                                                      {"u8", 8},
                                                      {"i16", 16},
                                                      {"u16", 16},
                                                      {"i32", 32},
                                                      {"u32", 32},
                                                      {"i64", 64},
                                                      {"u64", 64}}};

struct Alias {
  std::string_view name;
  DType dtype;
};

// Names of the same types in PyTorch, NumPy, CUDA and vLLM.
constexpr auto kAliases = std::to_array<Alias>({
    {"float64", DType::f64},      {"double", DType::f64},         {"float32", DType::f32},
    {"float", DType::f32},        {"float16", DType::f16},        {"half", DType::f16},
    {"fp16", DType::f16},         {"fp32", DType::f32},           {"fp64", DType::f64},
    {"bfloat16", DType::bf16},    {"fp8", DType::e4m3},           {"fp8_e4m3", DType::e4m3},
    {"e4m3fn", DType::e4m3},      {"float8_e4m3fn", DType::e4m3}, {"fp8_e5m2", DType::e5m2},
    {"float8_e5m2", DType::e5m2}, {"fp8_e8m0", DType::e8m0},      {"float8_e8m0fnu", DType::e8m0},
    {"fp4", DType::e2m1},         {"fp4_e2m1", DType::e2m1},      {"float4_e2m1fn", DType::e2m1},
    {"int8", DType::i8},          {"uint8", DType::u8},           {"int16", DType::i16},
    {"uint16", DType::u16},       {"int32", DType::i32},          {"int", DType::i32},
    {"uint32", DType::u32},       {"int64", DType::i64},          {"uint64", DType::u64},
});

const DTypeRow* row(DType dtype) {
  const auto i = static_cast<std::size_t>(dtype);
  return i < kRows.size() ? &kRows[i] : nullptr;
}

}  // namespace

std::string_view name(DType dtype) {
  const DTypeRow* r = row(dtype);
  return r != nullptr ? r->name : "invalid dtype";
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.dtype;
  }
  return std::nullopt;
}

int bits(DType dtype) {
  const DTypeRow* r = row(dtype);
  if (r == nullptr)
    throw UnsupportedError(fmt::format("dtype {} is outside [0, {})", static_cast<int>(dtype), kDTypeCount));
  return r->bits;
}

std::int64_t size_of(DType dtype) {
  const int b = bits(dtype);
  if (b < 8) throw UnsupportedError(fmt::format("{} has {} bits: an element has no address", name(dtype), b));
  return b / 8;
}

}  // namespace kvscope
