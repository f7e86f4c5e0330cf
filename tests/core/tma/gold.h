// Helpers of the copy tests: source bytes that identify their position, a checksum, and a second computation of a copy
// that shares no formula with the model. The model iterates over the box and scatters; `inverse_walk` iterates over the
// bytes of shared memory and finds the source of each with bit operations in CuTe's notation.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/smem/shared_image.h"
#include "core/tma/global_memory.h"
#include "core/tma/tensor_map.h"
#include "tests/core/cache/fixtures.h"  // message_of

namespace kvscope::test {

constexpr std::uint64_t kBase = 0x20000;

// The byte at offset p from the tensor's base.
inline int source_byte(std::uint64_t p) {
  return static_cast<int>((31 * p + 17 * (p >> 7) + 5 * (p >> 15) + 5) % 256);
}

inline std::uint64_t fnv1a(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
  return hash;
}

// "24e1..", the first bytes from `offset` on, two digits each.
inline std::string hex(std::span<const std::byte> bytes, std::int64_t offset, std::int64_t count) {
  static constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (std::int64_t i = offset; i < offset + count; ++i) {
    const int byte = std::to_integer<int>(bytes[static_cast<std::size_t>(i)]);
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

// A tensor at kBase whose allocation has exactly its extents, so that a copy that reads one byte more throws.
struct Tensor {
  std::vector<std::byte> bytes;
  GlobalMemory memory;

  explicit Tensor(const TensorMap& map) {
    std::uint64_t end = map.dims[0] * static_cast<std::uint64_t>(size_of(map.data_type));
    for (std::size_t i = 1; i < static_cast<std::size_t>(map.rank); ++i) end += (map.dims[i] - 1) * map.strides[i - 1];
    bytes.resize(end);
    for (std::uint64_t p = 0; p < end; ++p) bytes[p] = static_cast<std::byte>(source_byte(p));
    memory.add("tensor", kBase, bytes);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
};

// A map over kBase, all lists fastest first; `strides` [bytes].
inline TensorMap map_of(TmaDataType type, const std::vector<std::uint64_t>& dims,
                        const std::vector<std::uint64_t>& strides, const std::vector<std::uint32_t>& box,
                        TmaSwizzle swizzle, const std::vector<std::uint32_t>& element_strides = {}) {
  TensorMap map;
  map.data_type = type;
  map.rank = static_cast<int>(dims.size());
  map.base = kBase;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    map.dims.at(i) = dims[i];
    map.box.at(i) = box.at(i);
    if (i > 0) map.strides.at(i - 1) = strides.at(i - 1);
    if (!element_strides.empty()) map.element_strides.at(i) = element_strides.at(i);
  }
  map.swizzle = swizzle;
  return map;
}

// CuTe's Swizzle<B, M, S> of a byte address, with the mode's numbers, and FLIP_8B's exchange of halves.
inline std::uint64_t cute_swizzle(TmaSwizzle mode, std::uint64_t a) {
  struct Numbers {
    unsigned B, M, S;
  };
  static constexpr std::array<Numbers, 7> kNumbers = {
      {{0, 4, 3}, {1, 4, 3}, {2, 4, 3}, {3, 4, 3}, {2, 5, 2}, {2, 5, 2}, {1, 6, 1}}};
  const auto [B, M, S] = kNumbers.at(static_cast<std::size_t>(mode));
  std::uint64_t result = a ^ ((a >> (M + S) & ((1U << B) - 1U)) << M);
  if (mode == TmaSwizzle::b128_atom32_flip8) result ^= (a >> 7 & 1U) << 3;
  return result;
}

// The expected `bytes` bytes of shared memory from `dst` on after a load: poison, data or fill.
inline std::vector<std::byte> inverse_walk(const TensorMap& map, const std::vector<std::int64_t>& at, std::uint64_t dst,
                                           std::int64_t bytes) {
  const auto size = static_cast<std::int64_t>(bits(map.data_type) / 8);
  std::array<std::int64_t, 5> tile{1, 1, 1, 1, 1};
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::int64_t step = i == 0 ? 1 : map.element_strides[i];
    while (tile[i] * step < map.box[i]) ++tile[i];  // positions 0, step, 2 * step .. below the box
  }
  static constexpr std::array<std::int64_t, 7> kRow = {0, 32, 64, 128, 128, 128, 128};
  const std::int64_t pitch =
      map.swizzle == TmaSwizzle::none ? tile[0] * size : kRow.at(static_cast<std::size_t>(map.swizzle));

  std::vector<std::byte> result(static_cast<std::size_t>(bytes), std::byte{0xCD});
  for (std::int64_t b = 0; b < bytes; ++b) {
    std::int64_t rest = static_cast<std::int64_t>(cute_swizzle(map.swizzle, dst + static_cast<std::uint64_t>(b))) -
                        static_cast<std::int64_t>(dst);
    const std::int64_t in_row = rest % pitch;
    rest /= pitch;
    bool inside = in_row / size < tile[0];
    if (!inside) continue;
    std::uint64_t offset = static_cast<std::uint64_t>(in_row % size);
    std::int64_t j = in_row / size;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (i > 0) j = rest % tile[i], rest /= tile[i];
      const std::int64_t x = at[i] + j * (i == 0 ? 1 : static_cast<std::int64_t>(map.element_strides[i]));
      if (x < 0 || x >= static_cast<std::int64_t>(map.dims[i])) {
        inside = false;
      } else {
        offset += static_cast<std::uint64_t>(x) * (i == 0 ? static_cast<std::uint64_t>(size) : map.strides[i - 1]);
      }
    }
    if (rest > 0) continue;                                                     // past the last row
    const int fill = map.fill == OobFill::none ? 0 : b % 2 == 0 ? 0xF7 : 0x7F;  // halves are never split
    result[static_cast<std::size_t>(b)] = static_cast<std::byte>(inside ? source_byte(offset) : fill);
  }
  return result;
}

}  // namespace kvscope::test
