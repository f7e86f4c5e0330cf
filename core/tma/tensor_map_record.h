// A tensor map as 128 bytes, and the encoder call that makes them: the arguments, rules and order of the driver's.
//
//   offset  bytes  content (little-endian)
//        0      8  "kvsc-map"
//        8      2  version: 1
//       10      1  data type       11  1  rank           12  1  interleave
//       13      1  swizzle         14  1  L2 promotion   15  1  out-of-bounds fill
//       16      8  base address
//       24   4x 8  strides [bytes], dimension 1 first; 0 past the rank, as in all fields below
//       56   5x 4  dims - 1 [elements]: 2^32 fits
//       76   5x 2  box
//       86   5x 1  element strides; the first is unused without interleave and then stored as 1
//       91     33  0
//      124      4  CRC-32 of bytes 0 .. 123
//
// This is kvscope's format, for files and tests. The driver's 128 bytes are private and different: the first eight
// bytes let a tool reject one when the other is expected.
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

// The arguments of the encoder; the arrays have `rank` entries, `strides` one less. No further entries are read.
struct TensorMapArguments {
  TmaDataType data_type = TmaDataType::u8;
  std::uint32_t rank = 0;
  std::uint64_t base = 0;
  const std::uint64_t* dims = nullptr;
  const std::uint64_t* strides = nullptr;  // [bytes]; rank 1: an array that is not read
  const std::uint32_t* box = nullptr;
  const std::uint32_t* element_strides = nullptr;
  TmaInterleave interleave = TmaInterleave::none;
  TmaSwizzle swizzle = TmaSwizzle::none;
  L2Promotion l2 = L2Promotion::none;
  OobFill fill = OobFill::none;
};

// Checks rules V01 .. V23 (tensor_map_rules.h) and the target. Writes the 128 bytes at `out` only when no rule is
// broken. With a null array it reports V01 alone, because the other rules need the arrays.
TensorMapReport encode_tensor_map(void* out, const TensorMapArguments& arguments, TmaTarget target);

// GeometryError or UnsupportedError when a rule is broken on `target`. `object` is named in the message.
[[nodiscard]] TensorMapRecord encode_tensor_map(std::string_view object, const TensorMap& map, TmaTarget target);

// The record as a kernel's argument, for a device of `target` (90 for sm_90, 100 for sm_100); errors as above.
[[nodiscard]] std::vector<std::byte> map_bytes(const TensorMap& map, int target = 90);

// InputError naming `source` and the offset: not 128 bytes, not a kvscope record, a later version, a wrong checksum,
// nonzero bytes that must be 0, or a map that breaks a rule on every target.
[[nodiscard]] TensorMap decode_tensor_map(std::string_view source, std::span<const std::byte> bytes);

}  // namespace kvscope
