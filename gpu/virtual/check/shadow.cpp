#include "gpu/virtual/check/shadow.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace kvscope::ptx {

static_assert(std::is_trivially_copyable_v<Mark> && std::is_trivially_destructible_v<Mark>);

Shadow::Shadow(std::uint64_t first, std::int64_t bytes)
    : first_chunk_(first / kChunkBytes),
      chunks_(static_cast<std::size_t>((first + static_cast<std::uint64_t>(bytes) + kChunkBytes - 1) / kChunkBytes -
                                       first_chunk_)),
      last_(std::bit_ceil(std::max<std::size_t>(1, chunks_.size()))),
      writers_(2),
      inline_(static_cast<Mark*>(std::malloc(std::max<std::size_t>(1, chunks_.size() * kInline * sizeof(Mark))))) {
  if (inline_ == nullptr) throw std::bad_alloc();
}

void Shadow::drop_empty_of(std::size_t chunk) {
  Chunk& c = chunks_[chunk];
  const std::span<Mark> all = listed(chunk);
  const auto end = std::remove_if(all.begin(), all.end(), [](const Mark& mark) { return mark.bytes == 0; });
  if (end == all.end()) return;
  c.count = static_cast<std::uint32_t>(end - all.begin());
  if (c.more == 0) return;
  More& more = more_[c.more - 1];
  more.forget_places();
  more.writes = static_cast<std::uint32_t>(
      std::find_if(all.begin(), end, [](const Mark& mark) { return !mark.write; }) - all.begin());
}

void Shadow::drop_empty(std::uint64_t address) {
  const std::size_t chunk = index(address);
  drop_empty_of(chunk);
  const Chunk& c = chunks_[chunk];
  if (c.more != 0) more_[c.more - 1].crowded = c.count > kMany ? 2 * c.count : 0;
}

void Shadow::clear_more(More& more) {
  more.writes = more.crowded = 0;
  more.forget_places();
}

std::span<Mark> Shadow::writes(std::uint64_t address) {
  const std::size_t chunk = index(address);
  const std::span<Mark> all = marks_of(chunk);
  const Chunk& c = chunks_[chunk];
  return c.more != 0 ? all.first(more_[c.more - 1].writes) : all;
}

Mark* Shadow::replaced_read(std::uint64_t address, const Mark& mark) {
  const std::size_t chunk = index(address);
  const std::span<Mark> all = marks_of(chunk);
  if (all.size() <= kMany) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const Mark& read) { return read.is_replaced_by(mark); });
    return at == all.end() ? nullptr : &*at;
  }
  const auto key = [](const Mark& read) { return read.actor ^ std::uint64_t{read.lanes} << 32; };
  More& more = more_[chunks_[chunk].more - 1];
  for (more.placed = std::max(more.placed, more.writes); more.placed < all.size(); ++more.placed) {
    more.places.emplace(key(all[more.placed]), more.placed);
  }
  const auto [begin, end] = more.places.equal_range(key(mark));
  std::size_t first = all.size();  // equal keys have no order
  for (auto at = begin; at != end; ++at) {
    if (at->second < first && all[at->second].is_replaced_by(mark)) first = at->second;
  }
  return first == all.size() ? nullptr : &all[first];
}

void Shadow::add_more(std::size_t chunk, const Mark& mark) {
  Chunk& c = chunks_[chunk];
  if (c.more == 0) {
    const std::span<Mark> all = listed(chunk);
    More more;
    more.marks.assign(all.begin(), all.end());
    const auto reads =
        std::stable_partition(more.marks.begin(), more.marks.end(), [](const Mark& one) { return one.write; });
    more.writes = static_cast<std::uint32_t>(reads - more.marks.begin());
    more_.push_back(std::move(more));
    c.more = static_cast<std::uint32_t>(more_.size());
  }
  More& more = more_[c.more - 1];
  if (c.count < more.marks.size()) {
    more.marks[c.count] = mark;
  } else {
    more.marks.push_back(mark);
  }
  if (mark.write) {
    const auto begin = more.marks.begin();
    std::rotate(begin + more.writes, begin + c.count, begin + c.count + 1);
    ++more.writes;
    more.forget_places();
  }
  ++c.count;
}

void Shadow::list(std::size_t chunk) {
  const Written& written = writers_[last_[chunk] >> 1];
  last_[chunk] |= 1;
  clear(chunk);
  chunks_[chunk].since = written.since;
  if (written.mark.bytes == 0) return;
  const Mark mark = written.mark;
  add(chunk, mark);
}

Shadow::Writer Shadow::new_writer(const Mark& mark, std::uint64_t now) {
  if (writers_.size() >= most_writers_) forget_writers();
  writers_.push_back({mark, now});
  writers_.back().mark.bytes = kWholeChunk;
  return static_cast<Writer>(writers_.size() - 1);
}

void Shadow::forget_writers() {
  std::vector<Writer> to(writers_.size(), kNobody);
  to[kSeveral] = kSeveral;
  std::vector<Written> kept(writers_.begin(), writers_.begin() + 2);
  for (std::uint32_t& last : last_) {
    const Writer writer = last >> 1;
    if (writer > kSeveral && to[writer] == kNobody) {
      to[writer] = static_cast<Writer>(kept.size());
      kept.push_back(writers_[writer]);
    }
    last = to[writer] << 1 | (last & 1);
  }
  writers_.swap(kept);
  most_writers_ = 2 * writers_.size() + kFewWriters;
}

void Shadow::write_chunks(std::uint64_t address, std::size_t count, Writer writer) {
  if (count == 0) return;
  note(writers_[writer].mark, index(address), index(address) + count - 1);
  const auto begin = last_.begin() + static_cast<std::ptrdiff_t>(index(address));
  std::fill(begin, begin + static_cast<std::ptrdiff_t>(count), writer << 1);
}

Shadow::Past& Shadow::past_of(const Mark& mark, std::size_t low) {
  std::uint64_t& number = noted_[(mark.actor ^ mark.actor >> 5) % kNoted];
  if (number >= past_begin_ && number < past_end()) {
    Past& last = past_[static_cast<std::size_t>(number - past_begin_)];
    if (last.actor == mark.actor && last.step == mark.step) return last;
  }
  number = past_end();
  const auto chunk = static_cast<std::uint32_t>(low);
  return past_.emplace_back(Past{mark.actor, mark.step, !is_engine(mark.actor), chunk, chunk});
}

void Shadow::forget_past(const Clock& over) {
  newest_past_ = nullptr;
  const auto kept = std::find_if(past_.begin(), past_.end(), [&](const Past& one) { return !one.is_before(over); });
  past_begin_ += static_cast<std::uint64_t>(kept - past_.begin());
  past_.erase(past_.begin(), kept);
  most_past_ = 2 * past_.size() + kFewPast;
  if (past_.size() <= kMostPast) return;
  past_begin_ += past_.size();
  past_.assign(1, {0, ~Step{0}, true, 0, ~std::uint32_t{0}});
  past_is_lost_ = true;
}

void Shadow::write_at(std::size_t chunk, const Mark& mark, std::uint64_t now) {
  note(mark, chunk, chunk);
  if (mark.bytes != kWholeChunk) return write_part(chunk, mark);
  const std::uint32_t last = writer_of(mark, now) << 1;
  last_[chunk] = last;
  if (mark.lanes == 0) return;
  last_[chunk] = last | 1;
  Chunk& c = chunks_[chunk];
  c.since = now;
  clear(chunk);
  add(chunk, mark);
}

void Shadow::write_part(std::size_t chunk, const Mark& mark) {
  if (!is_listed(chunk)) list(chunk);
  Chunk& c = chunks_[chunk];
  More* const more = c.more != 0 ? &more_[c.more - 1] : nullptr;
  Mark* const marks = more != nullptr ? more->marks.data() : inline_.get() + chunk * kInline;
  std::uint32_t kept = 0, writes = 0;
  bool others = false;
  for (std::uint32_t i = 0; i < c.count; ++i) {
    const auto left = static_cast<ChunkBytes>(marks[i].bytes & ~mark.bytes);
    if (left == 0) continue;
    if (kept != i) marks[kept] = marks[i];
    marks[kept].bytes = left;
    if (marks[kept].write) {
      ++writes;
      others = others || marks[kept].actor != mark.actor || marks[kept].step != mark.step;
    }
    ++kept;
  }
  c.count = kept;
  if (more != nullptr) {  // the new write goes behind the other ones
    more->writes = writes;
    if (kept == 0) more->crowded = 0;
    more->forget_places();
  }
  add(chunk, mark);
  last_[chunk] = (others ? kSeveral : writer_of(mark, c.since)) << 1 | 1;
}

void Shadow::read(std::uint64_t address, const Mark& mark) {
  const std::size_t chunk = index(address);
  if (!is_listed(chunk)) list(chunk);
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
        have.meets = std::max(have.meets, one.meets);
        return;
      }
      Mark& older = have.step <= one.step ? have : one;
      const Mark& newer = have.step <= one.step ? one : have;
      older.bytes = static_cast<ChunkBytes>(older.bytes & ~newer.bytes);
    }
    if (one.bytes != 0) out.push_back(one);
  };
  for (const Mark& mark : listed(chunk)) {
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
  clear(chunk);
  for (const Mark& mark : out) add(chunk, mark);
  const Chunk& c = chunks_[chunk];
  more_[c.more - 1].most = 2 * c.count + kMany;
}

}  // namespace kvscope::ptx
