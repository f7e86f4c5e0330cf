#include "core/ptx/check/shadow.h"

#include <algorithm>
#include <cstddef>

namespace kvscope::ptx {

void Shadow::drop_empty(Chunk& chunk) {
  const std::span<Mark> all = marks(chunk);
  const auto end = std::remove_if(all.begin(), all.end(), [](const Mark& mark) { return mark.bytes == 0; });
  chunk.count = static_cast<std::uint32_t>(end - all.begin());
}

void Shadow::drop_empty(std::uint64_t address) {
  drop_empty(at(address));
}

void Shadow::add(Chunk& chunk, const Mark& mark) {
  if (chunk.more < 0 && chunk.count < kInline) {
    chunk.marks[chunk.count++] = mark;
    return;
  }
  if (chunk.more < 0) {
    chunk.more = static_cast<std::int32_t>(more_.size());
    more_.emplace_back(chunk.marks.begin(), chunk.marks.begin() + chunk.count);
  }
  auto& all = more_[static_cast<std::size_t>(chunk.more)];
  if (chunk.count < all.size()) {
    all[chunk.count] = mark;
  } else {
    all.push_back(mark);
  }
  ++chunk.count;
}

void Shadow::write_part(Chunk& chunk, const Mark& mark) {
  bool some = false;
  for (Mark& before : marks(chunk)) {
    before.bytes = static_cast<ChunkBytes>(before.bytes & ~mark.bytes);
    some = some || before.bytes != 0;
  }
  if (some) {
    drop_empty(chunk);
  } else {
    chunk.count = 0;
  }
  add(chunk, mark);
}

void Shadow::read_beside(Chunk& chunk, const Mark& mark) {
  add(chunk, mark);
  if (chunk.count > chunk.most) put_reads_together(chunk);
}

void Shadow::put_reads_together(Chunk& chunk) {
  std::vector<Mark> out;
  const auto put = [&out](Mark one) {
    for (Mark& have : out) {
      if (have.write || have.actor != one.actor || have.lanes != one.lanes || have.strong != one.strong) continue;
      if (have.step == one.step && have.pc == one.pc) {
        have.bytes = static_cast<ChunkBytes>(have.bytes | one.bytes);
        return;
      }
      Mark& older = have.step <= one.step ? have : one;
      const Mark& newer = have.step <= one.step ? one : have;
      older.bytes = static_cast<ChunkBytes>(older.bytes & ~newer.bytes);
    }
    if (one.bytes != 0) out.push_back(one);
  };
  for (const Mark& mark : marks(chunk)) {
    if (mark.write || mark.lanes == 0) {
      out.push_back(mark);
      continue;
    }
    int n = 0;
    for (LaneMask left = mark.lanes; left != 0; left &= left - 1, ++n) {
      Mark one = mark;
      one.lanes = left & (~left + 1);
      one.bytes = mark.bytes_of(n);
      one.shift = Mark::kEveryLane;
      if (one.bytes != 0) put(one);
    }
  }
  std::erase_if(out, [](const Mark& mark) { return mark.bytes == 0; });
  chunk.count = 0;
  for (const Mark& mark : out) add(chunk, mark);
  chunk.most = 2 * chunk.count + kMany;
}

}  // namespace kvscope::ptx
