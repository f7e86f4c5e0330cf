// The last accesses to global memory in one launch: of each 4 bytes the last write, and the reads since that write that are not ordered
// before one another.
//
// The cells of 4 bytes are in chunks of 16. A chunk whose cells have all been touched by the same operations, each by one lane or each by
// all, keeps these once. It is split into cells at the first access of a part of it, and a cell into bytes at the first access of fewer
// than 4 bytes, so that accesses of adjacent bytes are never confused.
//
//   st.global.u32 of adjacent words by a warp   8 chunks, four lanes each
//   a tensor load of 256 bytes                  16 chunks, one engine
//   ld.global.u32 of one address by a warp      1 cell of a chunk, 32 lanes
//
// Bounded: beyond `most_cells` or `most_reads` nothing more is recorded, and full() returns true.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "gpu/virtual/check/clock.h"
#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

// All zeros: by nobody. No member has another initial value, so that a page of chunks is cleared at once.
struct GlobalTouch {
  std::int32_t cta;      // linear, of the thread or of the issuer
  std::uint32_t number;  // actor (clock.h): lane 0 of the warp, or cp.async or engine of `thread`
  std::int32_t pc;
  Step step;
  LaneMask lanes;        // 0: cp.async or an engine
  std::uint16_t thread;  // lane 0 of the warp, or the issuer
  AsyncKind kind;
  bool somebody : 1;
  bool strong : 1;  // atomic, volatile, relaxed, acquire, release
  bool plain_store : 1;
  // Of a chunk: each lane, in order, has touched so many of its cells; 0: every lane has touched all of them.
  std::uint8_t cells_each : 2;

  [[nodiscard]] bool is_by_nobody() const { return !somebody; }
  // The same warp or the same engine.
  [[nodiscard]] bool same_actor(const GlobalTouch& o) const { return cta == o.cta && number == o.number; }
  // All actors of this touch are actors of `later` as well.
  [[nodiscard]] bool is_within(const GlobalTouch& later) const {
    return same_actor(later) && (lanes & ~later.lanes) == 0;
  }
  // Reads of one instruction by one warp in one step: one touch can have the lanes of both.
  [[nodiscard]] bool is_like(const GlobalTouch& o) const {
    return same_actor(o) && step == o.step && pc == o.pc && lanes != 0 && o.lanes != 0;
  }
  // Each cell is touched by one actor, the same one in both.
  [[nodiscard]] bool meets_itself(const GlobalTouch& o) const {
    return same_actor(o) && lanes == o.lanes && cells_each == o.cells_each &&
           ((lanes & (lanes - 1)) == 0 || cells_each != 0);
  }
  // The touch of cell `i`, where this is the touch of the whole chunk.
  [[nodiscard]] GlobalTouch of_cell(int i) const {
    GlobalTouch out = *this;
    out.cells_each = 0;
    if (cells_each != 0) out.lanes = LaneMask{1} << (std::countr_zero(lanes) + i / cells_each);
    return out;
  }
};
static_assert(sizeof(GlobalTouch) == 24);

struct GlobalCell {
  GlobalTouch write;
  GlobalTouch read;     // the first one since
  std::uint32_t more;   // number of the other reads in GlobalCells; 0: none
  std::uint32_t bytes;  // number of its four bytes in GlobalCells, which replace all other fields; 0: none
};

struct GlobalChunk {
  GlobalTouch write, read;  // of all cells
  std::uint32_t cells;      // number of its four cells in GlobalCells, which replace all other fields; 0: none
};
static_assert(std::is_trivial_v<GlobalCell> && std::is_trivial_v<GlobalChunk>);

// Elements by number, from 1 on, that stay where they are. Those that were given back are used again, as they were left.
template <class T>
class Pool {
 public:
  [[nodiscard]] T& operator[](std::uint32_t number) { return (*blocks_[(number - 1) / kBlock])[(number - 1) % kBlock]; }
  [[nodiscard]] const T& operator[](std::uint32_t number) const {
    return (*blocks_[(number - 1) / kBlock])[(number - 1) % kBlock];
  }
  [[nodiscard]] std::uint32_t take() {
    if (!free_.empty()) {
      const std::uint32_t number = free_.back();
      free_.pop_back();
      return number;
    }
    if (count_ == blocks_.size() * kBlock) blocks_.push_back(std::make_unique<std::array<T, kBlock>>());
    return static_cast<std::uint32_t>(++count_);
  }
  void give_back(std::uint32_t number) { free_.push_back(number); }

 private:
  static constexpr std::size_t kBlock = 64;
  std::vector<std::unique_ptr<std::array<T, kBlock>>> blocks_;
  std::size_t count_ = 0;
  std::vector<std::uint32_t> free_;
};

class GlobalCells {
 public:
  static constexpr std::uint64_t kBytes = 4, kChunk = 16;
  using Cells = std::array<GlobalCell, kChunk / kBytes>;

  GlobalCells(std::size_t most_cells, std::size_t most_reads) : most_cells_(most_cells), most_reads_(most_reads) {}

  // Whether an access was not recorded.
  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] std::size_t most_cells() const { return most_cells_; }

  // The chunk that contains the address; null: it is not recorded.
  [[nodiscard]] GlobalChunk* chunk(std::uint64_t address) {
    const std::uint64_t i = address / kChunk;
    return i / kPage == last_page_ ? &(*last_)[i % kPage] : find_page(i);
  }
  // Calls visit(cell, address, bytes) for each cell of the range. `bytes` is 4, or 1 for a cell that is split.
  template <class Visit>
  void each(std::uint64_t address, std::int64_t count, Visit visit) {
    if (count == static_cast<std::int64_t>(kBytes) && address % kBytes == 0) [[likely]] {  // one cell
      GlobalChunk* const here = chunk(address);
      if (here == nullptr) return;
      GlobalCell& cell = cells_of(*here)[address % kChunk / kBytes];
      if (cell.bytes == 0) return visit(cell, address, kBytes);
    }
    const std::uint64_t end = address + static_cast<std::uint64_t>(count);
    for (std::uint64_t at = address; at < end;) {
      const std::uint64_t next = std::min((at / kBytes + 1) * kBytes, end);
      GlobalChunk* const here = chunk(at);
      if (here == nullptr) {
        at = next;
        continue;
      }
      GlobalCell& cell = cells_of(*here)[at % kChunk / kBytes];
      if (cell.bytes == 0 && next - at == kBytes) {
        visit(cell, at, kBytes);
      } else {
        std::array<GlobalCell, kBytes>& bytes = split(cell);
        for (std::uint64_t b = at; b < next; ++b) visit(bytes[b % kBytes], b, 1);
      }
      at = next;
    }
  }

  template <class Visit>
  void each_read(const GlobalCell& cell, Visit visit) const {
    if (!cell.read.is_by_nobody()) visit(cell.read);
    if (cell.more == 0) return;
    for (const GlobalTouch& t : more_[cell.more]) visit(t);
  }
  void write(GlobalCell& cell, const GlobalTouch& touch);
  // All cells of the chunk.
  void write(GlobalChunk& chunk, const GlobalTouch& touch) {
    if (chunk.cells != 0) release(chunk);
    chunk.write = touch;
    chunk.read = GlobalTouch{};
  }
  // `older(t)`: whether the read t is ordered before this one, which then replaces it.
  template <class Older>
  void read(GlobalCell& cell, const GlobalTouch& touch, Older older) {
    const auto replaces = [&](const GlobalTouch& t) {
      return (t.strong || !touch.strong) && (t.is_within(touch) || older(t));
    };
    if (cell.read.is_like(touch)) {
      cell.read.lanes |= touch.lanes;
      return;
    }
    if (cell.read.is_by_nobody() || (cell.more == 0 && replaces(cell.read))) {
      cell.read = touch;
      return;
    }
    read_more(cell, touch, replaces);
  }

 private:
  static constexpr std::uint64_t kPage = 64;  // chunks
  using Page = std::array<GlobalChunk, kPage>;
  [[nodiscard]] GlobalChunk* find_page(std::uint64_t chunk);
  [[nodiscard]] Cells& cells_of(GlobalChunk& chunk) { return chunk.cells != 0 ? lists_[chunk.cells] : split(chunk); }
  [[nodiscard]] Cells& split(GlobalChunk& chunk);
  [[nodiscard]] std::array<GlobalCell, kBytes>& split(GlobalCell& cell);
  template <class Replaces>
  void read_more(GlobalCell& cell, const GlobalTouch& touch, Replaces replaces) {
    if (cell.more == 0) cell.more = more_.take();
    std::vector<GlobalTouch>& more = more_[cell.more];
    const std::size_t before = more.size();
    for (std::size_t i = before; i > 0 && i + kFew > before; --i) {
      if (!more[i - 1].is_like(touch)) continue;
      more[i - 1].lanes |= touch.lanes;
      return;
    }
    if (before >= 4 && before == more.capacity()) {
      // A list of reads is cleaned whenever it has doubled: constant cost per read, even if every warp reads the cell.
      std::erase_if(more, replaces);
      keep_last_of_each(more);
      if (2 * more.size() > before) more.reserve(2 * before);
    } else if (!more.empty() && replaces(more.back())) {
      more.pop_back();
    }
    reads_ -= before - more.size();
    if (reads_ >= most_reads_) {
      full_ = true;
      return;
    }
    more.push_back(touch);
    ++reads_;
  }
  static constexpr std::size_t kFew = 8;
  void release(GlobalCell& cell);
  void release(GlobalChunk& chunk);
  // Keeps the last of several reads by one actor.
  static void keep_last_of_each(std::vector<GlobalTouch>& reads);

  std::size_t most_cells_, most_reads_;
  std::size_t cells_ = 0, reads_ = 0;
  bool full_ = false;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_page_ = ~std::uint64_t{0};
  Page* last_ = nullptr;
  Pool<Cells> lists_;
  Pool<std::array<GlobalCell, kBytes>> bytes_;
  Pool<std::vector<GlobalTouch>> more_;
};

}  // namespace kvscope::ptx
