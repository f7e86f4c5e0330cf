#include "core/ptx/check/shadow.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <type_traits>

namespace kvscope::ptx {

static_assert(std::is_trivially_copyable_v<Mark> && std::is_trivially_destructible_v<Mark>);

Shadow::Shadow(std::uint64_t first, std::int64_t bytes)
    : first_chunk_(first / kChunkBytes),
      chunks_(static_cast<std::size_t>((first + static_cast<std::uint64_t>(bytes) + kChunkBytes - 1) / kChunkBytes -
                                       first_chunk_)),
      inline_(static_cast<Mark*>(std::malloc(std::max<std::size_t>(1, chunks_.size() * kInline * sizeof(Mark))))) {
  if (inline_ == nullptr) throw std::bad_alloc();
}

void Shadow::drop_empty_of(std::size_t chunk) {
  const std::span<Mark> all = marks_of(chunk);
  const auto end = std::remove_if(all.begin(), all.end(), [](const Mark& mark) { return mark.bytes == 0; });
  chunks_[chunk].count = static_cast<std::uint32_t>(end - all.begin());
}

void Shadow::add(std::size_t chunk, const Mark& mark) {
  Chunk& c = chunks_[chunk];
  if (c.more == 0 && c.count < kInline) {
    inline_[chunk * kInline + c.count++] = mark;
    return;
  }
  if (c.more == 0) {
    const std::span<Mark> all = marks_of(chunk);
    more_.push_back({{all.begin(), all.end()}, kMany});
    c.more = static_cast<std::uint32_t>(more_.size());
  }
  auto& all = more_[c.more - 1].marks;
  if (c.count < all.size()) {
    all[c.count] = mark;
  } else {
    all.push_back(mark);
  }
  ++c.count;
}

void Shadow::write_part(std::size_t chunk, const Mark& mark) {
  bool some = false;
  for (Mark& before : marks_of(chunk)) {
    before.bytes = static_cast<ChunkBytes>(before.bytes & ~mark.bytes);
    some = some || before.bytes != 0;
  }
  if (some) {
    drop_empty_of(chunk);
  } else {
    chunks_[chunk].count = 0;
  }
  add(chunk, mark);
}

void Shadow::read_beside(std::size_t chunk, const Mark& mark) {
  add(chunk, mark);
  const Chunk& c = chunks_[chunk];
  if (c.more != 0 && c.count > more_[c.more - 1].most) put_reads_together(chunk);
}

void Shadow::put_reads_together(std::size_t chunk) {
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
  for (const Mark& mark : marks_of(chunk)) {
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
  Chunk& c = chunks_[chunk];
  c.count = 0;
  for (const Mark& mark : out) add(chunk, mark);
  more_[c.more - 1].most = 2 * c.count + kMany;
}

}  // namespace kvscope::ptx
