// A tensor map as 128 bytes, and the call that makes them: the same arguments, rules and order as the driver's encoder.
//
//   offset  bytes  what (little-endian)
//        0      8  "kvsc-map"
//        8      2  version: 1
//       10      1  data type       11  1  rank           12  1  interleave
//       13      1  swizzle         14  1  L2 promotion   15  1  out-of-bounds fill
//       16      8  base address
//       24   4x 8  strides [bytes], dimension 1 first; 0 past the rank, as all that follows
//       56   5x 4  dims - 1 [elements]: 2^32 fits
//       76   5x 2  box
//       86   5x 1  element strides; the first, which nobody reads without interleave, is then 1
//       91     33  0
//      124      4  CRC-32 of bytes 0 .. 123
//
// This is a format of ours, for files and tests. The driver's 128 bytes are private and look different: no tool may be
// handed one for the other, which is what the first eight bytes are for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/tma/tensor_map.h"
#include "core/tma/tensor_map_rules.h"

namespace kvscope {

inline constexpr std::size_t kTensorMapBytes = 128;
inline constexpr int kTensorMapVersion = 1;
using TensorMapRecord = std::array<std::byte, kTensorMapBytes>;

// What a caller hands to the encoder; the arrays have `rank` entries, `strides` one less. Only those are read.
struct TensorMapArguments {
  TmaDataType data_type = TmaDataType::u8;
  std::uint32_t rank = 0;
  std::uint64_t base = 0;
  const std::uint64_t* dims = nullptr;
  const std::uint64_t* strides = nullptr;  // [bytes]; may be null for rank 1
  const std::uint32_t* box = nullptr;
  const std::uint32_t* element_strides = nullptr;
  TmaInterleave interleave = TmaInterleave::none;
  TmaSwizzle swizzle = TmaSwizzle::none;
  L2Promotion l2 = L2Promotion::none;
  OobFill fill = OobFill::none;
};

// Holds V01 .. V22 and the target against the arguments. When nothing is broken, writes the 128 bytes at `out`;
// otherwise not one of them. With a null array nothing but V01 is told: there is nothing to look at.
TensorMapReport encode_tensor_map(void* out, const TensorMapArguments& arguments, TmaTarget target);

// GeometryError or UnsupportedError when a rule is broken on `target`. `object` is named in the message.
[[nodiscard]] TensorMapRecord encode_tensor_map(std::string_view object, const TensorMap& map, TmaTarget target);

// The record as a kernel's argument, for a device of `target` (90 for sm_90, 100 for sm_100); errors as above.
[[nodiscard]] std::vector<std::byte> map_bytes(const TensorMap& map, int target = 90);

// InputError naming `source` and the offset: not 128 bytes, not ours, a later version, a wrong checksum, bytes that
// must be 0 and are not, or a map that breaks a rule on every target.
[[nodiscard]] TensorMap decode_tensor_map(std::string_view source, std::span<const std::byte> bytes);

}  // namespace kvscope
