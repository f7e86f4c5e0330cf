// A tensor map, with the arguments of the driver's encoder: the tensor in memory, the box that one instruction copies,
// and how the box is spread over shared memory. Every list has the fastest (innermost, contiguous) dimension first, as
// in the encoder and in the instruction's coordinates.
//
//   dims    {64, 20}   [elements]    box     {64, 8}  [elements]         coordinates {0, 17}
//   strides {128}      [bytes]       rows 17..24 of the tensor; rows 20..24 do not exist and are filled
//
// strides[i - 1] belongs to dimension i; dimension 0 has the implied stride of one element, so a map of rank 1 has
// none. The rules of a map are in tensor_map_rules.h, the addresses of its bytes in box_plan.h. Source: CUDA
// driver API, "Tensor Map Object Management"; the types have the values of its enumerations.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kvscope {

enum class TmaDataType : std::uint8_t {
  u8 = 0,
  u16 = 1,
  u32 = 2,
  i32 = 3,
  u64 = 4,
  i64 = 5,
  f16 = 6,
  f32 = 7,
  f64 = 8,
  bf16 = 9,
  f32_ftz = 10,        // copies do not flush denormals: all bits are unchanged
  tf32 = 11,           // rounds during the copy: not a byte copy, so box_copy.h rejects it
  tf32_ftz = 12,       // as tf32
  u4x16_align8 = 13,   // 16 values in 8 B
  u4x16_align16 = 14,  // 16 values in 8 B, then a gap of 8 B in shared memory
  u6x16_align16 = 15,  // 16 values in 12 B, and a gap of 4 B
};
inline constexpr int kTmaDataTypes = 16;

enum class L2Promotion : std::uint8_t { none = 0, b64 = 1, b128 = 2, b256 = 3 };  // no functional effect
enum class OobFill : std::uint8_t { none = 0, nan_request_zero_fma = 1 };         // none: zeros

enum class TmaInterleave : std::uint8_t { none = 0, b16 = 1, b32 = 2 };

enum class TmaSwizzle : std::uint8_t {
  none = 0,
  b32 = 1,
  b64 = 2,
  b128 = 3,
  b128_atom32 = 4,        // compute capability 10
  b128_atom32_flip8 = 5,  // compute capability 10; loads only
  b128_atom64 = 6,        // compute capability 10
};

// The architecture that the code is compiled for. ATOM swizzles, packed types and gather4 need sm_100.
enum class TmaTarget : std::uint8_t { sm_90 = 90, sm_100 = 100 };

[[nodiscard]] std::string_view name(TmaDataType type);      // "bf16"; "unknown type" outside the table
[[nodiscard]] std::string_view name(TmaSwizzle swizzle);    // "128B swizzle", "128B_ATOM_32B swizzle", "no swizzle"
[[nodiscard]] std::string_view name(TmaInterleave layout);  // "no interleave", "16B interleave", "32B interleave"
[[nodiscard]] std::string_view name(TmaTarget target);      // "sm_90"

// Bits of one element: 4 or 6 for the packed types.
[[nodiscard]] constexpr std::int64_t bits(TmaDataType type) {
  constexpr std::array<std::int64_t, kTmaDataTypes> kBits = {8,  16, 32, 32, 64, 64, 16, 32,
                                                             64, 16, 32, 32, 32, 4,  4,  6};
  return kBits[static_cast<std::size_t>(type)];
}
[[nodiscard]] constexpr bool is_packed(TmaDataType type) {
  return type >= TmaDataType::u4x16_align8;
}
[[nodiscard]] constexpr bool is_tf32(TmaDataType type) {
  return type == TmaDataType::tf32 || type == TmaDataType::tf32_ftz;
}
[[nodiscard]] constexpr bool is_float(TmaDataType type) {
  return (type >= TmaDataType::f16 && type <= TmaDataType::tf32_ftz);
}
// Bytes of one element; only for types of whole bytes.
[[nodiscard]] constexpr std::int64_t size_of(TmaDataType type) {
  return bits(type) / 8;
}

inline constexpr int kTmaMaxRank = 5;

struct TensorMap {
  TmaDataType data_type = TmaDataType::u8;
  int rank = 0;
  std::uint64_t base = 0;                                                 // [byte address]
  std::array<std::uint64_t, kTmaMaxRank> dims{};                          // [elements]
  std::array<std::uint64_t, kTmaMaxRank - 1> strides{};                   // [bytes] of dimensions 1 ..
  std::array<std::uint32_t, kTmaMaxRank> box{};                           // [tensor positions]
  std::array<std::uint32_t, kTmaMaxRank> element_strides{1, 1, 1, 1, 1};  // takes every n-th position; [0] is ignored
  TmaInterleave interleave = TmaInterleave::none;
  TmaSwizzle swizzle = TmaSwizzle::none;
  L2Promotion l2 = L2Promotion::none;  // never changes a delivered byte
  OobFill fill = OobFill::none;
  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};
static_assert(std::is_trivially_copyable_v<TensorMap>);

}  // namespace kvscope
