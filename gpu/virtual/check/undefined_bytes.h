// The bytes of a range of memory whose values are undefined: one bit per byte, set where nothing has written the byte or
// an undefined value was stored.
//
//   UndefinedBytes shared(0x400, 4096, true);    4096 bytes from address 0x400, all undefined
//   shared.define(0x400, 16); shared.first(0x40c, 8) == 4; shared.mask(0x40c, 8) == 0xf0
#pragma once

#include <cstdint>
#include <vector>

namespace kvscope::ptx {

class UndefinedBytes {
 public:
  UndefinedBytes() = default;
  UndefinedBytes(std::uint64_t from, std::uint64_t bytes, bool undefined);

  // Bytes outside of the range are ignored by all functions; they count as defined.
  void define(std::uint64_t address, std::int64_t count) { set(address, count, false); }
  void mark(std::uint64_t address, std::int64_t count) { set(address, count, true); }
  // Sets byte address + i to undefined where bit i of `mask` is set, and to defined elsewhere; at most 64 bytes.
  void assign(std::uint64_t address, std::int64_t count, std::uint64_t mask);
  // Offset of the first undefined byte of the range; -1: none is.
  [[nodiscard]] std::int64_t first(std::uint64_t address, std::int64_t count) const;
  // Bit i: byte address + i is undefined; at most 64 bytes.
  [[nodiscard]] std::uint64_t mask(std::uint64_t address, std::int64_t count) const;
  void grow(std::uint64_t bytes);  // the new bytes are defined
  // Whether every byte is defined. Fast: it remembers how far it came.
  [[nodiscard]] bool all_defined() {
    while (defined_words_ < words_.size() && words_[defined_words_] == 0) ++defined_words_;
    return defined_words_ == words_.size();
  }

  // One bit per byte from the range's first address on; the size is a power of two, so that a caller may test an offset
  // against it alone. The caller may define bytes in it.
  [[nodiscard]] std::vector<std::uint64_t>& words() { return words_; }

 private:
  void set(std::uint64_t address, std::int64_t count, bool undefined);

  std::uint64_t from_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::uint64_t> words_;
  std::size_t defined_words_ = 0;  // the first ones, in which no byte is undefined
};

}  // namespace kvscope::ptx
