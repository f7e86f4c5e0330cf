#include "core/tma/tensor_map.h"

namespace kvscope {

std::string_view name(TmaDataType type) {
  static constexpr std::array<std::string_view, kTmaDataTypes> kNames = {
      "u8",  "u16",  "u32",     "i32",  "u64",      "i64",          "f16",           "f32",
      "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz", "u4x16_align8", "u4x16_align16", "u6x16_align16"};
  const auto index = static_cast<std::size_t>(type);
  return index < kNames.size() ? kNames[index] : "unknown type";
}

std::string_view name(TmaSwizzle swizzle) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "no swizzle",           "32B swizzle",           "64B swizzle",
      "128B swizzle",         "128B_ATOM_32B swizzle", "128B_ATOM_32B_FLIP_8B swizzle",
      "128B_ATOM_64B swizzle"};
  const auto index = static_cast<std::size_t>(swizzle);
  return index < kNames.size() ? kNames[index] : "unknown swizzle";
}

std::string_view name(TmaInterleave layout) {
  static constexpr std::array<std::string_view, 3> kNames = {"no interleave", "16B interleave", "32B interleave"};
  const auto index = static_cast<std::size_t>(layout);
  return index < kNames.size() ? kNames[index] : "unknown interleave";
}

std::string_view name(TmaTarget target) {
  return target == TmaTarget::sm_90 ? "sm_90" : "sm_100";
}

}  // namespace kvscope
