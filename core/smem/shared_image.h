// One CTA's shared memory, byte by byte: the value of each byte and the copy that wrote it. Every byte starts as poison
// without a writer, so a read of bytes that no copy wrote shows in the value and in the writer.
//
//   SharedImage image(1024);                       1024 bytes of 0xCD at addresses 0..1023, no writer
//   image.write(144, chunk, CopyIdx{3});           bytes 144..159 are now written by copy 3
//   image.writer(150) == CopyIdx{3}                image.writer(160) == SharedImage::kNoCopy
//
// Addresses are absolute offsets in the CTA's shared window, as a swizzle sees them, not offsets of a tile.
// Nearly all copies write whole 16-byte chunks: one number per chunk stores the writer, and the few chunks with several
// writers are in a separate list.
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

using CopyIdx = Index<struct CopyTag>;  // the n-th copy of a kernel's tile, in issue order, as in trace events

class SharedImage {
 public:
  static constexpr CopyIdx kNoCopy{-1};
  static constexpr std::byte kPoison{0xCD};

  // GeometryError unless 0 <= bytes <= 2^31.
  explicit SharedImage(std::int64_t bytes, std::byte poison = kPoison);

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }  // [bytes]

  // IndexError when [address, address + bytes) leaves the image, or a copy below kNoCopy; nothing is written then.
  // OverflowError: a copy past 2^31. kNoCopy as the copy: bytes without a writer, such as a test pattern.
  void write(std::int64_t address, std::span<const std::byte> bytes, CopyIdx copy);
  // The same without the bytes: marks the range as written by `copy`; the caller must fill all of the returned span.
  [[nodiscard]] std::span<std::byte> overwrite(std::int64_t address, std::int64_t count, CopyIdx copy);
  [[nodiscard]] std::span<const std::byte> read(std::int64_t address, std::int64_t count) const;
  // IndexError outside the image. kNoCopy: no copy wrote the byte.
  [[nodiscard]] CopyIdx writer(std::int64_t address) const;
  // Number of bytes of [address, address + count) that no copy wrote. IndexError outside the image.
  [[nodiscard]] std::int64_t unwritten(std::int64_t address, std::int64_t count) const;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }  // [size]
  [[nodiscard]] std::vector<std::int32_t> writers() const;                   // [size] copy, or -1; made by each call

 private:
  static constexpr std::int32_t kSeveral = -2;

  void mark(std::int64_t address, std::int64_t count, std::int32_t writer);
  void mark_part(std::int64_t chunk, std::int64_t from, std::int64_t to, std::int32_t writer);
  [[nodiscard]] std::int32_t writer_of(std::int64_t address) const;

  std::vector<std::byte> bytes_;
  std::vector<std::int32_t> writers_;  // [chunks] the copy that wrote all of it, or kSeveral
  std::unordered_map<std::int64_t, std::array<std::int32_t, kChunkBytes>>
      several_;  // chunk -> [16]; only meaningful for chunks marked kSeveral
};

}  // namespace kvscope
