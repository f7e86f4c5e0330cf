// One CTA's shared memory, byte by byte: what stands there and which copy put it there. Every byte begins as poison
// written by nobody, so a read of what was never brought shows as a value and as a name.
//
//   SharedImage image(1024);                       1024 bytes of 0xCD at addresses 0..1023, written by nobody
//   image.write(144, chunk, CopyIdx{3});           16 bytes at 144..159 are copy 3's
//   image.writer(150) == CopyIdx{3}                image.writer(160) == SharedImage::kNobody
//
// Addresses are absolute offsets in the CTA's shared window, as a swizzle sees them, not offsets of a tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index.h"

namespace kvscope {

using CopyIdx = Index<struct CopyTag>;  // the n-th copy of a kernel's tile, in issue order: what an event is about

class SharedImage {
 public:
  static constexpr CopyIdx kNobody{-1};
  static constexpr std::byte kPoison{0xCD};

  // GeometryError unless 0 <= bytes <= 2^31.
  explicit SharedImage(std::int64_t bytes, std::byte poison = kPoison);

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }  // [bytes]

  // IndexError when [address, address + bytes) leaves the image; nothing is written then. OverflowError: a copy past
  // 2^31. kNobody as the copy: bytes that no copy brought, say a test's own pattern.
  void write(std::int64_t address, std::span<const std::byte> bytes, CopyIdx copy);
  [[nodiscard]] std::span<const std::byte> read(std::int64_t address, std::int64_t count) const;
  // IndexError outside the image. kNobody: still poison.
  [[nodiscard]] CopyIdx writer(std::int64_t address) const;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }         // [size]
  [[nodiscard]] std::span<const std::int32_t> writers() const { return writers_; }  // [size] copy, or -1

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::int32_t> writers_;
};

}  // namespace kvscope
