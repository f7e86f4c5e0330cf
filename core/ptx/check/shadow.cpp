#include "core/ptx/check/shadow.h"

#include <algorithm>
#include <cstddef>

namespace kvscope::ptx {

std::span<Mark> Shadow::marks(std::uint64_t address) {
  Chunk& chunk = at(address);
  if (chunk.more >= 0) return more_[static_cast<std::size_t>(chunk.more)];
  return std::span(chunk.marks).first(chunk.count);
}

void Shadow::erase(std::uint64_t address, ChunkBytes bytes) {
  Chunk& chunk = at(address);
  const auto gone = [bytes](Mark& mark) {
    mark.bytes = static_cast<ChunkBytes>(mark.bytes & ~bytes);
    return mark.bytes == 0;
  };
  if (chunk.more >= 0) {
    std::erase_if(more_[static_cast<std::size_t>(chunk.more)], gone);
    return;
  }
  const auto end = std::remove_if(chunk.marks.begin(), chunk.marks.begin() + chunk.count, gone);
  chunk.count = static_cast<std::uint32_t>(end - chunk.marks.begin());
}

void Shadow::add(std::uint64_t address, const Mark& mark) {
  Chunk& chunk = at(address);
  if (chunk.more < 0 && chunk.count < kInline) {
    chunk.marks[chunk.count++] = mark;
    return;
  }
  if (chunk.more < 0) {
    chunk.more = static_cast<std::int32_t>(more_.size());
    more_.emplace_back(chunk.marks.begin(), chunk.marks.begin() + chunk.count);
  }
  more_[static_cast<std::size_t>(chunk.more)].push_back(mark);
}

}  // namespace kvscope::ptx
