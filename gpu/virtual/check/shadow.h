// The last accesses to each byte of a CTA's shared memory. Every 16-byte chunk has a few marks, each with the bytes that
// it applies to: the last write of each byte, and the reads since that write that are not ordered before one another.
//
//   st.shared.b32 by 32 adjacent lanes   chunk 0: lanes 0-3 of warp 0, bytes 0-15, 4 bytes per lane
//   ldmatrix                             one lane per chunk
//   a tensor load                        one engine per chunk
//
// Accesses of adjacent bytes are therefore never confused, and an access of a whole warp costs one mark per chunk, not
// one per byte.
//
// In addition, each chunk has the number of its last writer (Writer). Chunks with equal numbers are checked once. A chunk
// that an engine wrote as a whole has only this number, until its marks are asked for.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "gpu/virtual/check/clock.h"
#include "gpu/virtual/check/lane_offsets.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

inline constexpr std::int64_t kChunkBytes = 16;
using ChunkBytes = std::uint16_t;  // bit i: byte i of the chunk

struct Mark {
  static constexpr std::uint8_t kEveryLane = 7;  // as `shift`: each lane touches all the bytes

  ActorKey actor = 0;  // an engine, or lane 0 of the warp of `lanes`, or kCopiesOf + lane 0 for their cp.async
  LaneMask lanes = 0;  // 0: an engine
  Step step = 0;
  std::int32_t pc = -1;
  std::uint16_t issuer = 0;  // of an engine's operation: the thread in its CTA
  ChunkBytes bytes = 0;
  std::uint16_t meets = 0;  // of lanes: WarpViews::meets() when they made it
  std::uint8_t first = 0;   // byte where the first lane begins
  std::uint8_t shift = 0;   // 1 << shift bytes per lane, in the order of `lanes`
  bool write = false;
  bool strong = false;  // atomic, volatile, relaxed, acquire, release
  bool generic = true;  // through the generic proxy: a later access by the async proxy needs a fence

  // Bytes of the n-th lane (n counts the bits of `lanes`).
  [[nodiscard]] ChunkBytes bytes_of(int n) const {
    if (shift == kEveryLane) return bytes;
    const unsigned one = (1u << (1u << shift)) - 1;
    return static_cast<ChunkBytes>(one << (first + (n << shift)) & bytes);
  }
  // The same lanes, each at the same bytes.
  [[nodiscard]] bool same_places(const Mark& other) const {
    return actor == other.actor && lanes == other.lanes && first == other.first && shift == other.shift && lanes != 0;
  }
  // The same, and no two lanes access one byte: each thread overlaps only with itself.
  [[nodiscard]] bool meets_itself(const Mark& other) const {
    return same_places(other) && (shift != kEveryLane || std::has_single_bit(lanes));
  }
  // This is a read, and `later` reads at least its bytes by the same lanes or the same engine. A strong read does not
  // replace a weak one: a later strong write races only with the weak one.
  [[nodiscard]] bool is_replaced_by(const Mark& later) const {
    const bool same_engine = lanes == 0 && later.lanes == 0 && actor == later.actor;
    return !write && (same_engine || same_places(later)) && (bytes & ~later.bytes) == 0 && (strong || !later.strong);
  }
};

class Shadow {
 public:
  static constexpr ChunkBytes kWholeChunk = 0xffff;

  // For the addresses [first, first + bytes) of the CTA's window. `first` is a multiple of 16.
  Shadow(std::uint64_t first, std::int64_t bytes);

  [[nodiscard]] bool holds(std::uint64_t address) const { return index(address) < chunks_.size(); }
  // The marks of the chunk that contains the address. Valid until the next write or read.
  [[nodiscard]] std::span<Mark> marks(std::uint64_t address) { return marks_of(index(address)); }
  // At least its marks of writes. Of a long list only these: a read is not checked against thousands of other reads.
  [[nodiscard]] std::span<Mark> writes(std::uint64_t address);
  // The first read of the chunk that this one replaces; null: none. Constant cost, however many reads there are.
  [[nodiscard]] Mark* replaced_read(std::uint64_t address, const Mark& mark);
  // A write replaces all marks of its bytes. `now`: see written_at.
  void write(std::uint64_t address, const Mark& mark, std::uint64_t now) { write_at(index(address), mark, now); }
  // Adds a read to those of the chunk.
  void read(std::uint64_t address, const Mark& mark);
  // The chunk has no room for another mark, or its long list has doubled: reads that are redundant should be dropped.
  [[nodiscard]] bool crowded(std::uint64_t address) {
    const std::size_t i = index(address);
    const Chunk& c = chunks_[i];
    return is_listed(i) && c.count >= kInline && (c.more == 0 || c.count >= more_[c.more - 1].crowded);
  }
  // Removes marks whose `bytes` have become 0. A long list is not crowded again before it has doubled.
  void drop_empty(std::uint64_t address);
  // `now` of the last write of the whole chunk; 0 if there was none.
  [[nodiscard]] std::uint64_t written_at(std::uint64_t address) const {
    const std::size_t i = index(address);
    return is_listed(i) ? chunks_[i].since : writers_[last_[i] >> 1].since;
  }

  // --- numbers of last writers ---

  // Chunks with equal numbers: their remaining writes are by one actor in one step. Numbers are valid until writer_of
  // returns a new one.
  using Writer = std::uint32_t;
  static constexpr Writer kNobody = 0, kSeveral = 1;
  // last() is indexed by chunk from the window's first one. Offsets below limit() have an index, even past the window's end.
  [[nodiscard]] std::uint64_t first_address() const { return first_chunk_ * kChunkBytes; }
  [[nodiscard]] std::uint64_t limit() const { return last_.size() * kChunkBytes; }
  [[nodiscard]] std::span<const std::uint32_t> last() const { return last_; }  // Writer * 2, + 1 if the chunk has marks
  [[nodiscard]] const Mark& mark_of(Writer writer) const { return writers_[writer].mark; }
  // The chunk's only mark, a write of the whole chunk by an engine (`bytes` is 0 if the chunk is untouched); null if the
  // chunk has other marks.
  [[nodiscard]] const Mark* alone(std::uint64_t address) const {
    const std::size_t i = index(address);
    return is_listed(i) ? nullptr : &writers_[last_[i] >> 1].mark;
  }
  // The number of a write. Invalidates other numbers, unless the last call was for the same write.
  [[nodiscard]] Writer writer_of(const Mark& mark, std::uint64_t now) {
    const Written& newest = writers_.back();
    // For lanes the number identifies actor and step; for an engine it identifies the whole mark.
    const bool same =
        newest.mark.actor == mark.actor && newest.mark.step == mark.step && newest.mark.bytes != 0 &&
        (mark.lanes != 0 || (newest.mark.pc == mark.pc && newest.mark.issuer == mark.issuer && newest.since == now));
    return same ? static_cast<Writer>(writers_.size() - 1) : new_writer(mark, now);
  }
  // Every write so far, as its actor and its step, each pair once: a reader that all of them are ordered before, or are far from, needs
  // to look at no chunk. A step that a clock covers has ended (warp_views.h), so a pair that was found to be covered stays so.
  struct Past {
    ActorKey actor = 0;
    Step step = 0;
    bool lanes = false;               // of a warp; otherwise of an engine
    std::uint32_t low = 0, high = 0;  // the first and the last chunk written, from the window's first one
    [[nodiscard]] bool is_before(const Clock& clock) const {
      return lanes ? clock.covers_warp(actor, step) : clock.covers(actor, step);
    }
  };
  // Numbers of writes: those from past_begin() to past_end() - 1 are kept.
  [[nodiscard]] std::uint64_t past_begin() const { return past_begin_; }
  [[nodiscard]] std::uint64_t past_end() const { return past_begin_ + past_.size(); }
  [[nodiscard]] const Past& past(std::uint64_t number) const {
    return past_[static_cast<std::size_t>(number - past_begin_)];
  }
  // Too many are kept: forget_past should drop some.
  [[nodiscard]] bool past_is_long() const { return past_.size() >= most_past_; }
  // Drops the first ones, up to the first that is not ordered before all threads. `over`: what all threads have acquired. If too many
  // are left, the last one is replaced by one that no clock covers, and no more are added.
  void forget_past(const Clock& over);

  // Adds a write of the chunks from `low` to `high` to the past ones.
  void note(const Mark& mark, std::size_t low, std::size_t high) {
    if (newest_past_ == nullptr || newest_past_->actor != mark.actor || newest_past_->step != mark.step) {
      if (past_is_lost_) return;
      newest_past_ = &past_of(mark, low);
    }
    newest_past_->low = std::min(newest_past_->low, static_cast<std::uint32_t>(low));
    newest_past_->high = std::max(newest_past_->high, static_cast<std::uint32_t>(high));
  }
  // The lanes of one instruction write `bytes` bytes each, fewer than a chunk, at offsets from the window's first chunk; each in another
  // chunk, which the window holds, in ascending order. `like`: their common fields. Writes in the order of the lanes, as write() does, as long as each
  // chunk's earlier accesses of these bytes are by the lane itself or `is_before` is true for them. Returns the lanes that are left.
  template <class IsBefore>
  [[nodiscard]] LaneMask write_lanes(const Mark& like, int bytes, LaneMask lanes, const std::int32_t* offsets,
                                     IsBefore is_before) {
    const std::uint32_t ones = (1u << bytes) - 1;
    Mark mark = like;
    mark.shift = static_cast<std::uint8_t>(std::countr_zero(static_cast<unsigned>(bytes)));
    Writer writer = kNobody;
    note(mark, static_cast<std::size_t>(offsets[std::countr_zero(lanes)]) / kChunkBytes,
         static_cast<std::size_t>(offsets[kLanes - 1 - std::countl_zero(lanes)]) / kChunkBytes);
    for (; lanes != 0; lanes &= lanes - 1) {
      const std::int32_t offset = offsets[std::countr_zero(lanes)];
      const std::size_t chunk = static_cast<std::size_t>(offset) / kChunkBytes;
      if (!is_listed(chunk)) {
        const Mark& only = writers_[last_[chunk] >> 1].mark;
        if (only.bytes != 0 && !is_before(only)) return lanes;
        list(chunk);
      }
      mark.lanes = lanes & (~lanes + 1);
      mark.first = static_cast<std::uint8_t>(offset % kChunkBytes);
      mark.bytes = static_cast<ChunkBytes>(ones << mark.first);
      Chunk& c = chunks_[chunk];
      const std::span<Mark> marks = listed(chunk);
      std::size_t changed = marks.size();  // the first mark that loses bytes
      bool others = false;
      for (std::size_t i = 0; i < marks.size(); ++i) {
        const Mark& before = marks[i];
        if ((before.bytes & mark.bytes) != 0) {
          if ((before.actor != mark.actor || before.lanes != mark.lanes) && !is_before(before)) return lanes;
          changed = std::min(changed, i);
          if ((before.bytes & ~mark.bytes) == 0) continue;
        }
        others |= before.write && (before.actor != mark.actor || before.step != mark.step);
      }
      if (c.more != 0) {
        write_part(chunk, mark);
        continue;
      }
      std::size_t kept = changed;
      for (std::size_t i = changed; i < marks.size(); ++i) {
        const auto rest = static_cast<ChunkBytes>(marks[i].bytes & ~mark.bytes);
        if (rest == 0) continue;
        if (kept != i) marks[kept] = marks[i];
        marks[kept++].bytes = rest;
      }
      c.count = static_cast<std::uint32_t>(kept);
      add(chunk, mark);
      if (!others && writer == kNobody) writer = writer_of(mark, c.since);
      last_[chunk] = (others ? kSeveral : writer) << 1 | 1;
    }
    return 0;
  }

  // All 32 lanes of one instruction write a chunk each, at `offsets` from the window's first chunk, no two of them the same one. As
  // write_lanes otherwise. `now`: as in write().
  template <class IsBefore>
  [[nodiscard]] LaneMask write_lane_chunks(const Mark& like, const std::int32_t* offsets, LaneExtent extent,
                                           std::uint64_t now, IsBefore is_before) {
    Mark mark = like;
    mark.bytes = kWholeChunk;
    mark.shift = std::countr_zero(static_cast<unsigned>(kChunkBytes));
    note(mark, static_cast<std::size_t>(extent.low) / kChunkBytes, static_cast<std::size_t>(extent.high) / kChunkBytes);
    mark.lanes = 1;
    const std::uint32_t last = writer_of(mark, now) << 1 | 1;
    const auto is_harmless = [&](const Mark& before) {
      return before.bytes == 0 || (before.actor == mark.actor && before.lanes == mark.lanes) || is_before(before);
    };
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::size_t chunk = static_cast<std::size_t>(offsets[lane]) / kChunkBytes;
      mark.lanes = LaneMask{1} << lane;
      if (is_listed(chunk)) {
        for (const Mark& before : listed(chunk)) {
          if (!is_harmless(before)) return kAllLanes << lane;
        }
      } else if (!is_harmless(writers_[last_[chunk] >> 1].mark)) {
        return kAllLanes << lane;
      }
      last_[chunk] = last;
      chunks_[chunk].since = now;
      clear(chunk);
      add(chunk, mark);
    }
    return 0;
  }

  // 32 lanes, lane i at `first` + i * `stride` from the window's first chunk: whether the earlier accesses to these `bytes` bytes, which are
  // in one chunk, are each by the lane itself, or `is_before` is true for them. `like`: the fields that the lanes have in common.
  template <class IsBefore>
  [[nodiscard]] bool is_clear_of(const Mark& like, int bytes, std::int32_t first, std::int32_t stride,
                                 IsBefore is_before) {
    const std::uint32_t ones = (1u << bytes) - 1;
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::int32_t offset = first + lane * stride;
      const std::size_t chunk = static_cast<std::size_t>(offset) / kChunkBytes;
      if (!is_listed(chunk)) {
        const Mark& only = writers_[last_[chunk] >> 1].mark;
        if (only.bytes != 0 && !is_before(only)) return false;
        continue;
      }
      const auto here = static_cast<ChunkBytes>(ones << offset % kChunkBytes);
      for (const Mark& before : listed(chunk)) {
        const bool own = before.actor == like.actor && before.lanes == LaneMask{1} << lane;
        if ((before.bytes & here) != 0 && !own && !is_before(before)) return false;
      }
    }
    return true;
  }
  // A write of a part of a chunk that note() has been called for.
  void write_noted(std::uint64_t address, const Mark& mark) { write_part(index(address), mark); }

  // An engine writes `count` whole chunks from `address` on.
  void write_chunks(std::uint64_t address, std::size_t count, Writer writer);

 private:
  static constexpr std::uint32_t kInline = 4;
  static constexpr std::uint32_t kMany = 24;
  static constexpr std::size_t kFewWriters = 1024;
  struct Chunk {
    std::uint32_t count = 0;
    std::uint32_t more = 0;  // not 0: more_[more - 1] has all its marks, which became too many
    std::uint64_t since = 0;
  };
  struct More {
    std::vector<Mark> marks;     // [at least count], writes first
    std::uint32_t writes = 0;    // of the marks
    std::uint32_t most = kMany;  // with more marks than this, reads are merged
    std::uint32_t crowded = 0;   // with this many marks or more, redundant reads are dropped
    std::uint32_t placed = 0;    // of the marks: those whose reads are in `places`
    std::unordered_multimap<std::uint64_t, std::uint32_t> places;  // of reads, by actor and lanes

    void forget_places() {
      placed = 0;
      if (!places.empty()) places.clear();
    }
  };
  struct Written {
    Mark mark;
    std::uint64_t since = 0;
  };
  [[nodiscard]] std::size_t index(std::uint64_t address) const {
    return static_cast<std::size_t>(address / kChunkBytes - first_chunk_);
  }
  [[nodiscard]] bool is_listed(std::size_t chunk) const { return (last_[chunk] & 1) != 0; }
  // Creates the marks of a chunk that has only a number.
  void list(std::size_t chunk);
  [[nodiscard]] std::span<Mark> marks_of(std::size_t chunk) {
    if (!is_listed(chunk)) list(chunk);
    return listed(chunk);
  }
  [[nodiscard]] std::span<Mark> listed(std::size_t chunk) {
    const Chunk& c = chunks_[chunk];
    return c.more != 0 ? std::span(more_[c.more - 1].marks).first(c.count)
                       : std::span(inline_.get() + chunk * kInline, c.count);
  }
  void write_at(std::size_t chunk, const Mark& mark, std::uint64_t now);
  void write_part(std::size_t chunk, const Mark& mark);
  void drop_empty_of(std::size_t chunk);
  // Removes all marks.
  void clear(std::size_t chunk) {
    chunks_[chunk].count = 0;
    if (chunks_[chunk].more != 0) clear_more(more_[chunks_[chunk].more - 1]);
  }
  static void clear_more(More& more);
  void add(std::size_t chunk, const Mark& mark) {
    Chunk& c = chunks_[chunk];
    if (c.more == 0 && c.count < kInline) {
      inline_[chunk * kInline + c.count++] = mark;
    } else {
      add_more(chunk, mark);
    }
  }
  void add_more(std::size_t chunk, const Mark& mark);
  // Splits reads by lane and keeps the last one of each byte, so that random reads of a table stay bounded.
  void put_reads_together(std::size_t chunk);
  [[nodiscard]] Writer new_writer(const Mark& mark, std::uint64_t now);
  // The past write of this actor in this step; a new one, of chunk `low`, if it is not among the last ones.
  [[nodiscard]] Past& past_of(const Mark& mark, std::size_t low);
  // Frees numbers that no chunk has any more.
  void forget_writers();
  struct Release {
    void operator()(Mark* marks) const { std::free(marks); }
  };
  std::uint64_t first_chunk_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> last_;         // [chunks, rounded up to a power of two]
  std::vector<Written> writers_;            // by Writer
  std::size_t most_writers_ = kFewWriters;  // at this size, unused ones are freed
  static constexpr std::size_t kFewPast = 1024, kMostPast = 65536, kNoted = 64;
  std::vector<Past> past_;
  std::uint64_t past_begin_ = 0;
  std::size_t most_past_ = kFewPast;
  bool past_is_lost_ = false;
  Past* newest_past_ = nullptr;                // the last one that note() changed; null: it may be gone
  std::array<std::uint64_t, kNoted> noted_{};  // by a hash of the actor: the number of the last one that was added
  std::unique_ptr<Mark[], Release> inline_;    // [chunks][kInline], not cleared: most are never used
  std::vector<More> more_;
};

}  // namespace kvscope::ptx
