// .safetensors: a JSON header and the tensors' bytes. The main format of bundles, because it has bf16 and both fp8
// types.
//
//   header length n (u64, little-endian)   n bytes of JSON   data
//   {"__metadata__": {"key": "text"}, "k": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}
//
// Offsets count from the end of the header; the tensors cover the data without a hole and without overlap.
// Types: F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 I8 U8 I16 U16 I32 U32 I64 U64; BOOL is read as u8.
// The format has no strides, and its metadata are strings: a bundle's manifest is stored as JSON text under the key
// "kvscope" (bundle.h).
//
// Written: header members in the order of their names, data in the order of element size, largest first, then name, so
// that every tensor is aligned to its elements; the header is padded with spaces to a multiple of 8 bytes. Equal
// bundles give equal bytes. Read: all faults of the header are listed in one InputError, and no memory is allocated
// before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

struct Safetensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
  friend bool operator==(const Safetensors&, const Safetensors&) = default;
};

// The limit of the format's reference reader. // [bytes]
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

inline constexpr std::size_t kSafetensorsPrefix = 8;  // [bytes] the header's length

// The header's length as the first 8 bytes give it, checked against the limit and the file. // [bytes]
[[nodiscard]] std::size_t safetensors_header_size(std::string_view start, std::uint64_t file_size,
                                                  std::string_view source);

// The checks of parse_safetensors that need only the header: `start` holds the first 8 bytes and the header of a file
// of `file_size` bytes. A header of more than 2,000,000 JSON values is rejected.
void check_safetensors_start(std::string_view start, std::uint64_t file_size, std::string_view source);

// The `count` bytes at `at` of a file.
using ReadBytes = std::function<std::vector<std::byte>(std::int64_t at, std::int64_t count)>;
// `start` as for check_safetensors_start. The data of each tensor is requested from `read`, after all checks.
[[nodiscard]] Safetensors read_safetensors(std::string_view start, std::uint64_t file_size, std::string_view source,
                                           const ReadBytes& read);
// The same from the bytes of the whole file.
[[nodiscard]] Safetensors parse_safetensors(std::string_view bytes, std::string_view source);
// InputError for a tensor named "__metadata__", and for e2m1, whose elements are smaller than a byte.
[[nodiscard]] std::string safetensors_bytes(const Safetensors& file);

}  // namespace kvscope::golden
