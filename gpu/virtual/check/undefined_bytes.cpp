#include "gpu/virtual/check/undefined_bytes.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace kvscope::ptx {

UndefinedBytes::UndefinedBytes(std::uint64_t from, std::uint64_t bytes, bool undefined) : from_(from) {
  grow(bytes);
  if (undefined) mark(from, static_cast<std::int64_t>(bytes));
}

void UndefinedBytes::grow(std::uint64_t bytes) {
  bytes_ = std::max(bytes_, bytes);
  words_.resize(std::bit_ceil(std::max<std::size_t>(words_.size(), (bytes_ + 63) / 64 + 1)));
}

void UndefinedBytes::set(std::uint64_t address, std::int64_t count, bool undefined) {
  std::uint64_t i = address - from_;
  if (i >= bytes_) return;
  const std::uint64_t end = std::min<std::uint64_t>(bytes_, i + static_cast<std::uint64_t>(count));
  while (i < end) {
    const std::uint64_t in_word = std::min<std::uint64_t>(end - i, 64 - i % 64);
    const std::uint64_t bits = (~std::uint64_t{0} >> (64 - in_word)) << i % 64;
    words_[i / 64] = undefined ? words_[i / 64] | bits : words_[i / 64] & ~bits;
    if (undefined) defined_words_ = std::min<std::size_t>(defined_words_, i / 64);
    i += in_word;
  }
}

void UndefinedBytes::assign(std::uint64_t address, std::int64_t count, std::uint64_t mask) {
  define(address, count);
  for (; mask != 0; mask &= mask - 1) mark(address + static_cast<std::uint64_t>(std::countr_zero(mask)), 1);
}

std::int64_t UndefinedBytes::first(std::uint64_t address, std::int64_t count) const {
  const std::uint64_t begin = address - from_;
  if (begin >= bytes_) return -1;
  const std::uint64_t end = std::min<std::uint64_t>(bytes_, begin + static_cast<std::uint64_t>(count));
  for (std::uint64_t i = begin; i < end;) {
    const std::uint64_t in_word = std::min<std::uint64_t>(end - i, 64 - i % 64);
    const std::uint64_t found = words_[i / 64] & (~std::uint64_t{0} >> (64 - in_word)) << i % 64;
    if (found != 0) return static_cast<std::int64_t>(i / 64 * 64 - begin) + std::countr_zero(found);
    i += in_word;
  }
  return -1;
}

std::uint64_t UndefinedBytes::mask(std::uint64_t address, std::int64_t count) const {
  const std::uint64_t begin = address - from_;
  if (begin >= bytes_) return 0;
  const std::size_t word = begin / 64;
  const std::uint64_t shift = begin % 64;
  std::uint64_t out = words_[word] >> shift;
  if (shift != 0 && word + 1 < words_.size()) out |= words_[word + 1] << (64 - shift);
  return count >= 64 ? out : out & ((std::uint64_t{1} << count) - 1);
}

}  // namespace kvscope::ptx
