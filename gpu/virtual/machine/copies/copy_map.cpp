#include "gpu/virtual/machine/copies/copy_map.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

#include "core/base/file.h"

namespace kvscope::ptx {
namespace {

// Indexed by the driver API's number.
constexpr std::array<ElementFormat, 16> kElements = {{
    {"u8", 8, false, true, Type::none},
    {"u16", 16, false, true, Type::none},
    {"u32", 32, false, true, Type::u32},
    {"i32", 32, false, true, Type::s32},
    {"u64", 64, false, true, Type::u64},
    {"i64", 64, false, true, Type::s64},
    {"f16", 16, true, true, Type::f16},
    {"f32", 32, true, true, Type::f32},
    {"f64", 64, true, true, Type::f64},
    {"bf16", 16, true, true, Type::bf16},
    {"f32_ftz", 32, true, true, Type::f32},  // a copy moves the bits and does not flush subnormals
    {"tf32", 32, true, true, Type::none, false, ElementFormat::Rounds::to_tf32},
    {"tf32_ftz", 32, true, true, Type::none, false, ElementFormat::Rounds::to_tf32_flushed},
    {"u4x16_align8", 4, false, false, Type::none},
    {"u4x16_align16", 4, false, false, Type::none, true},
    {"u6x16_align16", 6, false, false, Type::none, true},
}};

constexpr std::array<MapSwizzle, 7> kSwizzles = {{
    {"no swizzle", kNoSwizzle},
    {"32B swizzle", kSwizzle32},
    {"64B swizzle", kSwizzle64},
    {"128B swizzle", kSwizzle128},
    {"128B_ATOM_32B swizzle", kSwizzle128Atom32, true},
    {"128B_ATOM_32B_FLIP_8B swizzle", kSwizzle128Atom32Flip8, true},
    {"128B_ATOM_64B swizzle", kSwizzle128Atom64, true},
}};

using RecordBytes = std::span<const std::byte, kMapRecordBytes>;

template <class Number>
std::uint64_t number_at(RecordBytes record, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = sizeof(Number); i > 0; --i) {
    value = value << 8 | std::to_integer<std::uint64_t>(record[at + i - 1]);
  }
  return value;
}

int byte_at(RecordBytes record, std::size_t at) {
  return std::to_integer<int>(record[at]);
}

[[noreturn]] void reject(std::size_t at, std::string message) {
  throw InputError("tensor map", fmt::format("byte {}", at), std::move(message));
}

// Throws unless the bytes [at, end) are zero.
void require_zero(RecordBytes record, std::size_t at, std::size_t end) {
  for (; at < end; ++at) {
    if (byte_at(record, at) == 0) continue;
    reject(at, fmt::format("{} where this map's record has 0: unused bytes have fixed values", byte_at(record, at)));
  }
}

// Checks the bytes that have fixed values, in the order of the record.
void require_fixed_bytes(RecordBytes record, const CopyMap& map) {
  const auto rank = static_cast<std::size_t>(map.rank);
  require_zero(record, map_field::kStrides + 8 * (rank - 1), map_field::kDims);
  require_zero(record, map_field::kDims + 4 * rank, map_field::kBox);
  require_zero(record, map_field::kBox + 2 * rank, map_field::kElementStrides);
  if (map.interleave == 0 && map.every[0] != 1) {
    reject(map_field::kElementStrides,
           fmt::format("{} where this map's record has 1: unused bytes have fixed values", map.every[0]));
  }
  require_zero(record, map_field::kElementStrides + rank, map_field::kChecksum);
}

}  // namespace

std::uint32_t map_checksum(RecordBytes record) {
  return crc32({reinterpret_cast<const char*>(record.data()), map_field::kChecksum});
}

const ElementFormat& CopyMap::element() const {
  return kElements[static_cast<std::size_t>(type)];
}

const MapSwizzle& CopyMap::swizzle_mode() const {
  return kSwizzles[static_cast<std::size_t>(swizzle)];
}

CopyMap read_copy_map(RecordBytes record) {
  if (std::memcmp(record.data(), kMapMagic.data(), kMapMagic.size()) != 0) {
    reject(0, "this is not a tensor map of kvscope; the driver's own 128 bytes are private and cannot be read");
  }
  if (const auto version = number_at<std::uint16_t>(record, map_field::kVersion); version != 1) {
    reject(map_field::kVersion, fmt::format("version {} is not 1: use the program that wrote it", version));
  }
  const auto kept = number_at<std::uint32_t>(record, map_field::kChecksum);
  if (const std::uint32_t actual = map_checksum(record); kept != actual) {
    reject(map_field::kChecksum,
           fmt::format("checksum {:08x}, but the bytes have {:08x}: the record is damaged", kept, actual));
  }

  CopyMap map;
  map.type = byte_at(record, map_field::kType);
  map.rank = byte_at(record, map_field::kRank);
  map.interleave = byte_at(record, map_field::kInterleave);
  map.swizzle = byte_at(record, map_field::kSwizzle);
  map.promotion = byte_at(record, map_field::kPromotion);
  map.fill = byte_at(record, map_field::kFill);
  map.base = number_at<std::uint64_t>(record, map_field::kBase);
  for (std::size_t i = 0; i < kMaxDimensions && i < static_cast<std::size_t>(map.rank); ++i) {
    map.dims[i] = number_at<std::uint32_t>(record, map_field::kDims + 4 * i) + 1;
    if (i > 0) map.strides[i] = number_at<std::uint64_t>(record, map_field::kStrides + 8 * (i - 1));
    map.box[i] = static_cast<std::uint32_t>(number_at<std::uint16_t>(record, map_field::kBox + 2 * i));
    map.every[i] = static_cast<std::uint32_t>(byte_at(record, map_field::kElementStrides + i));
  }
  if (std::vector<Fault> faults = map_faults(map); !faults.empty()) throw InputError("tensor map", std::move(faults));
  map.strides[0] = static_cast<std::uint64_t>(map.element_bytes());
  require_fixed_bytes(record, map);
  return map;
}

}  // namespace kvscope::ptx
