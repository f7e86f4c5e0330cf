// FNV-1a, 64 bits: a checksum of bytes, short enough to compare by eye.
// Example: no bytes -> cbf29ce484222325, "a" -> af63dc4c8601ec8c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvscope {

[[nodiscard]] constexpr std::uint64_t fnv1a(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
  return hash;
}

}  // namespace kvscope
