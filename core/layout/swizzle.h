// Swizzle(bits, base, shift): XORs one group of address bits into another, so that rows that would share a bank do not.
//
//   bit:   ... | Y Y Y | . . . | Z Z Z | b b b b |        bits = 3, base = 4, shift = 6 (Y starts `shift` above Z)
//                  |               ^
//                  +---- XOR ------+                      b bits are unchanged: a piece read as one stays contiguous
//
// offset' = offset XOR ((offset & Y) >> shift); a negative shift moves the other way. Applying it twice gives the
// offset back. Example: bf16 with the 128-byte mode is (3,3,3) on element offsets: 64 -> 72, 72 -> 64, 448 -> 504.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/dtype.h"

namespace kvscope {

inline constexpr std::int64_t kChunkBytes = 16;  // a chunk: the unit that a swizzle of shared memory moves

// How a TMA box is spread over shared memory. `bytes()` of `none` is 16, not 0, because every formula works in 16-byte
// chunks.
enum class SwizzleMode : std::uint8_t { none = 0, b32 = 1, b64 = 2, b128 = 3 };

[[nodiscard]] constexpr std::int64_t bytes(SwizzleMode mode) {
  return std::int64_t{16} << static_cast<int>(mode);
}
[[nodiscard]] std::string_view name(SwizzleMode mode);  // "no swizzle", "32B swizzle", ..., else "invalid swizzle"

// Elements in one swizzled row of the mode: bytes(mode) / size. Example: bf16, b128 -> 64.
[[nodiscard]] std::int64_t swizzle_granularity(DType dtype, SwizzleMode mode);

class Swizzle {
 public:
  // GeometryError unless bits >= 0, base >= 0 and |shift| >= bits, and bits + base + |shift| < 63.
  Swizzle(int bits, int base, int shift);

  // Works on byte offsets or on element offsets; `base` must be chosen for the same unit.
  [[nodiscard]] std::int64_t operator()(std::int64_t offset) const {
    const std::uint64_t x = static_cast<std::uint64_t>(offset);
    const std::uint64_t y = x & yyy_;
    return static_cast<std::int64_t>(x ^ (shift_ >= 0 ? y >> shift_ : y << -shift_));
  }

  // Offsets after which the pattern repeats: 1 << (bits + base + |shift|).
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t cosize() const { return size(); }
  [[nodiscard]] int bits() const { return bits_; }
  [[nodiscard]] int base() const { return base_; }
  [[nodiscard]] int shift() const { return shift_; }
  [[nodiscard]] std::string text() const;  // "(3,3,3)"
  friend bool operator==(const Swizzle&, const Swizzle&) = default;

 private:
  int bits_;
  int base_;
  int shift_;
  std::uint64_t yyy_;
};

// The swizzle of a TMA mode on element offsets: (mode, log2(16 / size), 3). `none` gives the identity (0 bits).
[[nodiscard]] Swizzle make_swizzle(DType dtype, SwizzleMode mode);

// (log2 rows, log2 access, log2 row_size - log2 access), logarithms rounded down; GeometryError unless the last is > 0.
[[nodiscard]] Swizzle make_swizzle(std::int64_t num_rows, std::int64_t row_size, std::int64_t access_size);

}  // namespace kvscope
