// Bytes in memory pages of 2 MiB, where Linux gives them on request, as NumPy allocates large arrays. Rows of a paged
// cache are far apart: with pages of 4 KiB, a decode step over a cache of 256 MiB takes about a tenth more time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace kvscope {

// Makes room for `count` bytes. Memory that was written before keeps its pages.
inline void reserve_large_pages(std::vector<std::byte>& bytes, std::size_t count) {
  bytes.reserve(count);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kLargePage = 2 << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  const std::uintptr_t last = (begin + bytes.capacity()) / kLargePage * kLargePage;
  if (first < last) static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE));
#endif
}

[[nodiscard]] inline std::vector<std::byte> zero_bytes(std::size_t count) {
  std::vector<std::byte> bytes;
  reserve_large_pages(bytes, count);
  bytes.resize(count);
  return bytes;
}

}  // namespace kvscope
