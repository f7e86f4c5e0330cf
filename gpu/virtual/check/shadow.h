// Who touched each byte of a CTA's shared memory last: for every 16-byte chunk a few marks, each with the bytes that it
// is about. Writes since the beginning; reads since the last write. A byte has one write at most, and of reads only
// those that are not ordered before one another.
//
//   st.shared.b32 by 32 lanes side by side   chunk 0: lanes 0-3 of warp 0, bytes 0-15, 4 bytes a lane
//   ldmatrix                                 a chunk a lane
//   a tensor load                            the chunk is the engine's
//
// So bytes of neighbours are never mixed up, and what a whole warp does costs a mark a chunk, not one a byte.
//
// Beside the marks stands one number a chunk: who wrote it last (Writer). Chunks with one number are checked once, and
// chunks that an engine wrote whole have nothing but the number until somebody asks for their marks.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "gpu/virtual/check/clock.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

inline constexpr std::int64_t kChunkBytes = 16;
using ChunkBytes = std::uint16_t;  // bit i: byte i of the chunk

struct Mark {
  static constexpr std::uint8_t kEveryLane = 7;  // as `shift`: each lane touches all the bytes

  ActorKey actor = 0;  // an engine; of lanes: lane 0 of their warp, kCopiesOf + it for their cp.async
  LaneMask lanes = 0;  // 0: an engine
  Step step = 0;
  std::int32_t pc = -1;
  std::uint16_t issuer = 0;  // of an engine's access: the thread in its CTA
  ChunkBytes bytes = 0;
  std::uint8_t first = 0;  // byte where the first lane begins
  std::uint8_t shift = 0;  // 1 << shift bytes a lane, in the order of `lanes`
  bool write = false;
  bool strong = false;  // atomic, volatile, relaxed, acquire, release
  bool generic = true;  // by the ordinary proxy: the asynchronous one needs a fence behind it

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
  // The same, and no two lanes at one byte: each thread meets itself alone.
  [[nodiscard]] bool meets_itself(const Mark& other) const {
    return same_places(other) && (shift != kEveryLane || std::has_single_bit(lanes));
  }
};

class Shadow {
 public:
  static constexpr ChunkBytes kWholeChunk = 0xffff;

  // [first, first + bytes): addresses of the CTA's window. `first` begins a chunk.
  Shadow(std::uint64_t first, std::int64_t bytes);

  [[nodiscard]] bool holds(std::uint64_t address) const { return index(address) < chunks_.size(); }
  // Of the chunk that the address is in. Valid until the next write or read.
  [[nodiscard]] std::span<Mark> marks(std::uint64_t address) { return marks_of(index(address)); }
  // A write: nothing that was before at its bytes matters any more. `now`: see written_at.
  void write(std::uint64_t address, const Mark& mark, std::uint64_t now) { write_at(index(address), mark, now); }
  // A read beside those before.
  void read(std::uint64_t address, const Mark& mark);
  // One mark more would not find its place in the chunk: worth looking for reads that do not matter any more.
  [[nodiscard]] bool crowded(std::uint64_t address) {
    const std::size_t i = index(address);
    return is_listed(i) && chunks_[i].count >= kInline;
  }
  // Marks whose bytes have all been taken off.
  void drop_empty(std::uint64_t address) { drop_empty_of(index(address)); }
  // `now` of the last write of the whole chunk; 0: there was none.
  [[nodiscard]] std::uint64_t written_at(std::uint64_t address) const {
    const std::size_t i = index(address);
    return is_listed(i) ? chunks_[i].since : writers_[last_[i] >> 1].since;
  }

  // --- by the number of who wrote last ---

  // Equal numbers: the writes that the chunk still has are of one actor in one step. Holds until writer_of gives
  // another.
  using Writer = std::uint32_t;
  static constexpr Writer kNobody = 0, kSeveral = 1;
  // Chunks are counted from the window's first; offsets below limit() have one, the window's end or not.
  [[nodiscard]] std::uint64_t first_address() const { return first_chunk_ * kChunkBytes; }
  [[nodiscard]] std::uint64_t limit() const { return last_.size() * kChunkBytes; }
  [[nodiscard]] std::span<const std::uint32_t> last() const { return last_; }  // Writer * 2, + 1: it has marks
  [[nodiscard]] const Mark& mark_of(Writer writer) const { return writers_[writer].mark; }
  // The chunk's only mark, of a whole write by an engine (no bytes: nobody has touched it); null: it has others.
  [[nodiscard]] const Mark* alone(std::uint64_t address) const {
    const std::size_t i = index(address);
    return is_listed(i) ? nullptr : &writers_[last_[i] >> 1].mark;
  }
  // Of a write. Other numbers may not hold any more, except when the last one given was for the same write.
  [[nodiscard]] Writer writer_of(const Mark& mark, std::uint64_t now);
  // Whole chunks from `address` on, by an engine.
  void write_chunks(std::uint64_t address, std::size_t count, Writer writer);

 private:
  static constexpr std::uint32_t kInline = 4;
  static constexpr std::uint32_t kMany = 24;
  static constexpr std::size_t kFewWriters = 1024;
  struct Chunk {
    std::uint32_t count = 0;
    std::uint32_t more = 0;  // more_[more - 1]: all its marks, from when they were too many on
    std::uint64_t since = 0;
  };
  struct More {
    std::vector<Mark> marks;     // [at least count]
    std::uint32_t most = kMany;  // from which on reads are put together
  };
  struct Written {
    Mark mark;
    std::uint64_t since = 0;
  };
  [[nodiscard]] std::size_t index(std::uint64_t address) const {
    return static_cast<std::size_t>(address / kChunkBytes - first_chunk_);
  }
  [[nodiscard]] bool is_listed(std::size_t chunk) const { return (last_[chunk] & 1) != 0; }
  // Gives the chunk marks where it has the number alone.
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
  void add(std::size_t chunk, const Mark& mark);
  // Reads by lane: of each byte the last one. Keeps random reads of a table bounded.
  void put_reads_together(std::size_t chunk);
  // Numbers that no chunk has any more are given away again.
  void forget_writers();

  struct Release {
    void operator()(Mark* marks) const { std::free(marks); }
  };
  std::uint64_t first_chunk_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> last_;          // [chunks, up to a power of two]
  std::vector<Written> writers_;             // by Writer
  std::size_t most_writers_ = kFewWriters;   // from which on they are looked through
  std::unique_ptr<Mark[], Release> inline_;  // [chunks][kInline], not cleared: most are never looked at
  std::vector<More> more_;
};

}  // namespace kvscope::ptx
