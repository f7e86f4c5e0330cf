// A tensor map as the machine's copy engine uses it, and the parser of its 128-byte record.
//
//   offset  bytes  content, little-endian                offset  bytes  content
//        0      8  "kvsc-map"                                24   4x 8  strides [bytes] of dimensions 1 ..
//        8      2  version 1                                 56   5x 4  dims - 1 [elements]
//       10      6  type, rank, interleave, swizzle,          76   5x 2  box
//                  L2 promotion, fill                        86   5x 1  element strides; [0] is 1 without interleave
//       16      8  base address                              91     33  0
//                                                           124      4  CRC-32 of bytes 0 .. 123
// Entries past the rank are 0. Host and machine share only this record format. The parser and the rules that it applies
// share no code with the model, so that the two can be compared.
// Sources: CUDA driver API, cuTensorMapEncodeTiled (rules, numbers of types and modes); PTX ISA, "Tensors".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/machine/copies/swizzle_bits.h"
#include "gpu/virtual/text/types.h"

namespace kvscope::ptx {

inline constexpr std::size_t kMapRecordBytes = 128;
inline constexpr std::string_view kMapMagic = "kvsc-map";
inline constexpr std::size_t kMaxDimensions = 5;

// Offsets of the fields in a record [bytes].
namespace map_field {
inline constexpr std::size_t kVersion = 8, kType = 10, kRank = 11, kInterleave = 12, kSwizzle = 13, kPromotion = 14,
                             kFill = 15, kBase = 16, kStrides = 24, kDims = 56, kBox = 76, kElementStrides = 86,
                             kChecksum = 124;
}  // namespace map_field
[[nodiscard]] std::uint32_t map_checksum(std::span<const std::byte, kMapRecordBytes> record);

struct ElementFormat {
  std::string_view name;
  int bits = 0;
  bool floating = false;
  bool copied = false;        // byte for byte, or rounded by a load; the packed ones have gaps, which are not modeled
  Type reduced = Type::none;  // as reductions treat it; none: they do not take it
  bool in_16_bytes = false;   // 16 packed values take 16 bytes of shared memory
  enum class Rounds : std::uint8_t { never, to_tf32, to_tf32_flushed } rounds = Rounds::never;  // by a load
  [[nodiscard]] constexpr bool packed() const { return bits < 8; }
};
struct MapSwizzle {
  std::string_view name;
  SwizzleBits bits;
  bool needs_sm_100 = false;
};

struct CopyMap {
  int type = 0;        // the driver API's number
  int interleave = 0;  // 0 none, 1 16B, 2 32B
  int swizzle = 0;     // the driver API's number
  int promotion = 0;   // L2 promotion: no effect on bytes
  int fill = 0;        // 0 zeros, 1 the NaN pattern
  int rank = 0;
  std::uint64_t base = 0;                               // [byte address]
  std::array<std::uint64_t, kMaxDimensions> dims{};     // [elements], fastest dimension first, as all lists
  std::array<std::uint64_t, kMaxDimensions> strides{};  // [bytes]; [0]: of one element, 0 for packed types
  std::array<std::uint32_t, kMaxDimensions> box{};      // [tensor positions]
  std::array<std::uint32_t, kMaxDimensions> every{};    // the box takes every n-th position; [0] is ignored

  // Precondition: the type is in the table, as in every map that read_copy_map returns.
  [[nodiscard]] const ElementFormat& element() const;
  [[nodiscard]] const MapSwizzle& swizzle_mode() const;
  [[nodiscard]] std::int64_t element_bytes() const { return element().bits / 8; }
};

// Throws InputError "tensor map rejected: ..." with the offset: not a record, another version, a wrong checksum, every
// broken rule of map_faults, or a reserved byte with a wrong value.
[[nodiscard]] CopyMap read_copy_map(std::span<const std::byte, kMapRecordBytes> record);

// The encoder's rules that the map breaks on every target, each as "box[0] (V17)" and a message with value, allowed
// range and next step. Empty: the map is valid.
[[nodiscard]] std::vector<Fault> map_faults(const CopyMap& map);

}  // namespace kvscope::ptx
