#include "core/tma/tensor_map_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"

namespace kvscope {

namespace {

constexpr std::string_view kMagic = "kvsc-map";
constexpr std::size_t kVersionAt = 8, kEnumsAt = 10, kBaseAt = 16, kStridesAt = 24, kDimsAt = 56, kBoxAt = 76,
                      kElementStridesAt = 86, kChecksumAt = 124;

void put(TensorMapRecord& record, std::size_t at, std::size_t bytes, std::uint64_t value) {
  for (std::size_t i = 0; i < bytes; ++i) record[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
}

std::uint64_t get(std::span<const std::byte> record, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(record[at + i]) << (8 * i);
  return value;
}

std::uint32_t checksum(std::span<const std::byte> record) {
  return crc32({reinterpret_cast<const char*>(record.data()), kChecksumAt});
}

TensorMapRecord record_of(const TensorMap& map) {
  TensorMapRecord record{};
  std::memcpy(record.data(), kMagic.data(), kMagic.size());
  put(record, kVersionAt, 2, kTensorMapVersion);
  const std::array<std::uint8_t, 6> enums = {
      static_cast<std::uint8_t>(map.data_type),  static_cast<std::uint8_t>(map.rank),
      static_cast<std::uint8_t>(map.interleave), static_cast<std::uint8_t>(map.swizzle),
      static_cast<std::uint8_t>(map.l2),         static_cast<std::uint8_t>(map.fill)};
  for (std::size_t i = 0; i < enums.size(); ++i) put(record, kEnumsAt + i, 1, enums[i]);
  put(record, kBaseAt, 8, map.base);
  for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
    if (i > 0) put(record, kStridesAt + 8 * (i - 1), 8, map.strides[i - 1]);
    put(record, kDimsAt + 4 * i, 4, map.dims[i] - 1);
    put(record, kBoxAt + 2 * i, 2, map.box[i]);
    // Without interleave the encoder ignores the first element stride, so any value is accepted.
    put(record, kElementStridesAt + i, 1, i == 0 && map.interleave == TmaInterleave::none ? 1 : map.element_strides[i]);
  }
  put(record, kChecksumAt, 4, checksum(record));
  return record;
}

// V01: faults of the call itself.
std::vector<BrokenMapRule> broken_pointers(const void* out, const TensorMapArguments& arguments) {
  std::vector<BrokenMapRule> broken;
  const auto given = [&](const void* pointer, const char* where) {
    if (pointer == nullptr) broken.push_back({TensorMapRule::V01, where, "is null: give an array of rank entries"});
  };
  if (out == nullptr) {
    broken.push_back({TensorMapRule::V01, "output", "is null: give 128 bytes"});
  } else if (const auto past = reinterpret_cast<std::uintptr_t>(out) % 64; past != 0) {
    broken.push_back(
        {TensorMapRule::V01, "output", fmt::format("{} B past a multiple of 64: align the 128 bytes", past)});
  }
  given(arguments.dims, "dims");
  if (arguments.rank != 1) {
    given(arguments.strides, "strides");
  } else if (arguments.strides == nullptr) {
    broken.push_back(
        {TensorMapRule::V01, "strides", "is null: the driver wants an array for rank 1 too, and reads none of it"});
  }
  given(arguments.box, "box");
  given(arguments.element_strides, "elementStrides");
  return broken;
}

TensorMap map_of(const TensorMapArguments& arguments) {
  TensorMap map;
  map.data_type = arguments.data_type;
  // Any rank outside 1 to 5 is reported by V03; a value past int must stay outside.
  map.rank = static_cast<int>(std::min<std::uint32_t>(arguments.rank, 1'000'000'000));
  map.base = arguments.base;
  if (arguments.rank <= kTmaMaxRank) {
    for (std::size_t i = 0; i < arguments.rank; ++i) {
      map.dims[i] = arguments.dims[i];
      map.box[i] = arguments.box[i];
      map.element_strides[i] = arguments.element_strides[i];
      if (i > 0) map.strides[i - 1] = arguments.strides[i - 1];
    }
  }
  map.interleave = arguments.interleave;
  map.swizzle = arguments.swizzle;
  map.l2 = arguments.l2;
  map.fill = arguments.fill;
  return map;
}

}  // namespace

TensorMapReport encode_tensor_map(void* out, const TensorMapArguments& arguments, TmaTarget target) {
  TensorMapReport report;
  report.broken = broken_pointers(out, arguments);
  const bool arrays_given = arguments.dims != nullptr && arguments.box != nullptr &&
                            arguments.element_strides != nullptr && arguments.strides != nullptr;
  if (!arrays_given) return report;
  const TensorMap map = map_of(arguments);
  TensorMapReport rules = check_tensor_map(map, target);
  report.broken.insert(report.broken.end(), rules.broken.begin(), rules.broken.end());
  report.notes = std::move(rules.notes);
  if (report.broken.empty()) {
    const TensorMapRecord record = record_of(map);
    std::memcpy(out, record.data(), record.size());
  }
  return report;
}

TensorMapRecord encode_tensor_map(std::string_view object, const TensorMap& map, TmaTarget target) {
  check_tensor_map(map, target).throw_if_broken(object);
  return record_of(map);
}

std::vector<std::byte> map_bytes(const TensorMap& map, int target) {
  const TensorMapRecord record =
      encode_tensor_map("a kernel's argument", map, target >= 100 ? TmaTarget::sm_100 : TmaTarget::sm_90);
  return {record.begin(), record.end()};
}

TensorMap decode_tensor_map(std::string_view source, std::span<const std::byte> bytes) {
  const auto reject = [&](std::size_t at, std::string message) {
    throw InputError(source, fmt::format("byte {}", at), std::move(message));
  };
  if (bytes.size() != kTensorMapBytes) {
    throw InputError(source, "",
                     fmt::format("{} bytes are not a tensor map, which has {}", bytes.size(), kTensorMapBytes));
  }
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    reject(0, "this is not a tensor map of kvscope; the driver's own 128 bytes are private and cannot be read");
  }
  if (const std::uint64_t version = get(bytes, kVersionAt, 2); version != kTensorMapVersion) {
    reject(kVersionAt, fmt::format("version {} is not {}: use the program that wrote it", version, kTensorMapVersion));
  }
  if (const std::uint64_t kept = get(bytes, kChecksumAt, 4); kept != checksum(bytes)) {
    reject(kChecksumAt,
           fmt::format("checksum {:08x}, but the bytes have {:08x}: the record is damaged", kept, checksum(bytes)));
  }

  TensorMap map;
  map.data_type = static_cast<TmaDataType>(get(bytes, kEnumsAt, 1));
  map.rank = static_cast<int>(get(bytes, kEnumsAt + 1, 1));
  map.interleave = static_cast<TmaInterleave>(get(bytes, kEnumsAt + 2, 1));
  map.swizzle = static_cast<TmaSwizzle>(get(bytes, kEnumsAt + 3, 1));
  map.l2 = static_cast<L2Promotion>(get(bytes, kEnumsAt + 4, 1));
  map.fill = static_cast<OobFill>(get(bytes, kEnumsAt + 5, 1));
  map.base = get(bytes, kBaseAt, 8);
  for (std::size_t i = 0; i < kTmaMaxRank && i < static_cast<std::size_t>(map.rank); ++i) {
    if (i > 0) map.strides[i - 1] = get(bytes, kStridesAt + 8 * (i - 1), 8);
    map.dims[i] = get(bytes, kDimsAt + 4 * i, 4) + 1;
    map.box[i] = static_cast<std::uint32_t>(get(bytes, kBoxAt + 2 * i, 2));
    map.element_strides[i] = static_cast<std::uint32_t>(get(bytes, kElementStridesAt + i, 1));
  }

  // sm_100 supports every mode and type.
  const TensorMapReport report = check_tensor_map(map, TmaTarget::sm_100);
  std::vector<Fault> faults;
  for (const BrokenMapRule& rule : report.broken) {
    faults.push_back({fmt::format("{} ({})", rule.where, name(rule.rule)), rule.message});
  }
  if (!faults.empty()) throw InputError(source, std::move(faults));
  // Unused bytes must be 0, so that a map has exactly one record.
  const TensorMapRecord again = record_of(map);
  const auto differs = std::mismatch(bytes.begin(), bytes.end(), again.begin()).first;
  if (differs != bytes.end()) {
    const auto at = static_cast<std::size_t>(differs - bytes.begin());
    reject(at, fmt::format("{} where this map's record has {}: unused bytes have fixed values",
                           std::to_integer<int>(*differs), std::to_integer<int>(again[at])));
  }
  return map;
}

}  // namespace kvscope
