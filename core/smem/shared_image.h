// One CTA's shared memory, byte by byte: what stands there and which copy put it there. Every byte begins as poison
// written by nobody, so a read of what was never brought shows as a value and as a name.
//
//   SharedImage image(1024);                       1024 bytes of 0xCD at addresses 0..1023, written by nobody
//   image.write(144, chunk, CopyIdx{3});           16 bytes at 144..159 are copy 3's
//   image.writer(150) == CopyIdx{3}                image.writer(160) == SharedImage::kNobody
//
// Addresses are absolute offsets in the CTA's shared window, as a swizzle sees them, not offsets of a tile.
// Copies write whole 16-byte chunks, nearly always: one number a chunk says who did, and the few chunks of several
// writers have a list of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/base/index.h"
#include "core/layout/swizzle.h"

namespace kvscope {

using CopyIdx = Index<struct CopyTag>;  // the n-th copy of a kernel's tile, in issue order: what an event is about

class SharedImage {
 public:
  static constexpr CopyIdx kNobody{-1};
  static constexpr std::byte kPoison{0xCD};

  // GeometryError unless 0 <= bytes <= 2^31.
  explicit SharedImage(std::int64_t bytes, std::byte poison = kPoison);

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }  // [bytes]

  // IndexError when [address, address + bytes) leaves the image, or a copy below kNobody; nothing is written then.
  // OverflowError: a copy past 2^31. kNobody as the copy: bytes that no copy brought, say a test's own pattern.
  void write(std::int64_t address, std::span<const std::byte> bytes, CopyIdx copy);
  // The same for many bytes at once: they are the copy's from here on, and the caller fills them, all of them.
  [[nodiscard]] std::span<std::byte> overwrite(std::int64_t address, std::int64_t count, CopyIdx copy);
  [[nodiscard]] std::span<const std::byte> read(std::int64_t address, std::int64_t count) const;
  // IndexError outside the image. kNobody: still poison.
  [[nodiscard]] CopyIdx writer(std::int64_t address) const;
  // How many bytes of [address, address + count) are kNobody's. IndexError outside the image.
  [[nodiscard]] std::int64_t unwritten(std::int64_t address, std::int64_t count) const;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }  // [size]
  [[nodiscard]] std::vector<std::int32_t> writers() const;                   // [size] copy, or -1; made by each call

 private:
  static constexpr std::int32_t kSeveral = -2;

  void mark(std::int64_t address, std::int64_t count, std::int32_t writer);
  void mark_part(std::int64_t chunk, std::int64_t from, std::int64_t to, std::int32_t writer);
  [[nodiscard]] std::int32_t writer_of(std::int64_t address) const;

  std::vector<std::byte> bytes_;
  std::vector<std::int32_t> writers_;  // [chunks] who wrote all of it, or kSeveral
  std::unordered_map<std::int64_t, std::array<std::int32_t, kChunkBytes>>
      several_;  // chunk -> [16]; of a chunk that is not kSeveral, nothing of meaning
};

}  // namespace kvscope
