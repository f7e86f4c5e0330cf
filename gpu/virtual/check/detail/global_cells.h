// The last accesses to global memory in one launch: of each 4 bytes the last write, and the reads since that write that are not ordered
// before one another.
//
// The cells of 4 bytes are in chunks of 16. A chunk keeps two touches as long as these are enough: a write and a read of the same cells, or
// two of different cells. Otherwise it is split into cells, and a cell into bytes at the first access of fewer than 4 bytes, so that
// accesses of adjacent bytes are never confused.
//
//   st.global.u32 of adjacent words by a warp   8 chunks, four lanes each
//   st.global.u32 of every second word          16 chunks, two lanes each, for two of its cells
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
#include <cstring>
#include <memory>
#include <span>
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
  AsyncKind kind : 4;
  std::uint8_t cells : 4;  // of a chunk: bit i: cell i
  bool somebody : 1;
  bool write : 1;
  bool strong : 1;  // atomic, volatile, relaxed, acquire, release
  bool plain_store : 1;
  // Of a chunk: each lane, in order, has touched so many of `cells`; 0: every lane has touched all of them.
  std::uint8_t cells_each : 2;

  void set_cells(unsigned all, unsigned each) {
    cells = all & 0xf;
    cells_each = each & 0x3;
  }
  [[nodiscard]] bool is_by_nobody() const { return !somebody; }
  // The same warp or the same engine.
  [[nodiscard]] bool same_actor(const GlobalTouch& o) const { return cta == o.cta && number == o.number; }
  // All actors of this touch are actors of `later` as well.
  [[nodiscard]] bool is_within(const GlobalTouch& later) const {
    return same_actor(later) && (lanes & ~later.lanes) == 0;
  }
  // Reads of one instruction by one warp in one step: one touch can have the lanes of both. All fields before the lanes are compared at
  // once, because this is asked of each lane of most reads.
  [[nodiscard]] bool is_like(const GlobalTouch& o) const {
    return std::memcmp(this, &o, offsetof(GlobalTouch, lanes)) == 0 && lanes != 0 && o.lanes != 0;
  }
  // Each cell is touched by one actor, the same one in both.
  [[nodiscard]] bool meets_itself(const GlobalTouch& o) const {
    return same_actor(o) && lanes == o.lanes && cells == o.cells && cells_each == o.cells_each &&
           ((lanes & (lanes - 1)) == 0 || cells_each != 0);
  }
  // The touch of cell `i`, one of `cells`, where this is a touch of a chunk.
  [[nodiscard]] GlobalTouch of_cell(int i) const {
    GlobalTouch out = *this;
    out.cells = 0;
    out.cells_each = 0;
    if (cells_each != 0) {
      const int before = std::popcount(cells & ((1U << i) - 1));
      out.lanes = LaneMask{1} << (std::countr_zero(lanes) + before / cells_each);
    }
    return out;
  }
};
static_assert(sizeof(GlobalTouch) == 24 && offsetof(GlobalTouch, lanes) == 16);

struct GlobalCell {
  GlobalTouch write;
  GlobalTouch read;                  // the first one since
  std::vector<GlobalTouch>* more;    // the other reads; null: none
  std::array<GlobalCell, 4>* bytes;  // which replace all other fields; null: none
};

struct GlobalChunk {
  // No two writes, and no two reads, have a cell in common. The first is somebody's if the second is.
  std::array<GlobalTouch, 2> touches;
  std::array<GlobalCell, 4>* cells;  // which replace all other fields; null: none
};
static_assert(std::is_trivial_v<GlobalCell> && std::is_trivial_v<GlobalChunk>);

// Elements that stay where they are. Whoever takes one sets it, unless its type has a constructor: it is as it was when it was given back, or
// was never set.
template <class T>
class Pool {
 public:
  [[nodiscard]] T* take() {
    if (free_.empty()) {
      blocks_.push_back(std::make_unique_for_overwrite<std::array<T, kBlock>>());
      for (T& one : *blocks_.back()) free_.push_back(&one);
    }
    T* const out = free_.back();
    free_.pop_back();
    return out;
  }
  void give_back(T* one) { free_.push_back(one); }

 private:
  static constexpr std::size_t kBlock = 64;
  std::vector<std::unique_ptr<std::array<T, kBlock>>> blocks_;
  std::vector<T*> free_;
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
  // At most `count` chunks from the one that contains the address on, and at least one; empty: they are not recorded.
  [[nodiscard]] std::span<GlobalChunk> chunks(std::uint64_t address, std::uint64_t count) {
    GlobalChunk* const first = chunk(address);
    if (first == nullptr) return {};
    return {first, static_cast<std::size_t>(std::min(count, kPage - address / kChunk % kPage))};
  }
  // Calls visit(cell, its number in the chunk, address, bytes) for these cells of a chunk, which begins at `begin`. `bytes` is 4, or 1 for each
  // byte of a cell that is split.
  template <class Visit>
  void each_of(GlobalChunk& chunk, unsigned cells, std::uint64_t begin, Visit visit) {
    Cells& all = chunk.cells != nullptr ? *chunk.cells : split(chunk);
    for (; cells != 0; cells &= cells - 1) {
      const int i = std::countr_zero(cells);
      const std::uint64_t at = begin + static_cast<std::uint64_t>(i) * kBytes;
      GlobalCell& cell = all[static_cast<std::size_t>(i)];
      if (cell.bytes == nullptr) {
        visit(cell, i, at, kBytes);
        continue;
      }
      for (std::uint64_t b = 0; b < kBytes; ++b) visit((*cell.bytes)[b], i, at + b, 1);
    }
  }
  // The same for each cell of a range, without the number. Cells that it has in part are split.
  template <class Visit>
  void each(std::uint64_t address, std::int64_t count, Visit visit) {
    const std::uint64_t end = address + static_cast<std::uint64_t>(count);
    for (std::uint64_t at = address, next = 0; at < end; at = next) {
      next = std::min((at / kChunk + 1) * kChunk, end);
      GlobalChunk* const here = chunk(at);
      if (here == nullptr) continue;
      if (const unsigned cells = cells_of(at, next - at); cells != 0) {
        each_of(*here, cells, at / kChunk * kChunk,
                [&](GlobalCell& cell, int, std::uint64_t where, std::uint64_t bytes) { visit(cell, where, bytes); });
        continue;
      }
      for (std::uint64_t b = at; b < next; ++b) {
        Cells& all = here->cells != nullptr ? *here->cells : split(*here);
        visit(split(all[b % kChunk / kBytes])[b % kBytes], b, 1);
      }
    }
  }

  template <class Visit>
  void each_read(const GlobalCell& cell, Visit visit) const {
    if (!cell.read.is_by_nobody()) visit(cell.read);
    if (cell.more == nullptr) return;
    for (const GlobalTouch& t : *cell.more) visit(t);
  }
  static constexpr unsigned kAllCells = (1U << kChunk / kBytes) - 1;
  void write(GlobalCell& cell, const GlobalTouch& touch) {
    cell.write = touch;
    cell.read = GlobalTouch{};
    if (cell.more != nullptr) release(cell);
  }
  // A write of all cells of the chunk.
  void write(GlobalChunk& chunk, const GlobalTouch& touch) {
    if (chunk.cells != nullptr) release(chunk);
    chunk.touches = {touch, GlobalTouch{}};
  }
  // The cells that consist of these bytes, as in GlobalTouch::cells; 0: they are not whole cells of one chunk. Example: 8 bytes at 0x104 are
  // cells 1 and 2, 0b0110.
  [[nodiscard]] static unsigned cells_of(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t first = address % kChunk;
    if ((address | bytes) % kBytes != 0 || first + bytes > kChunk) return 0;
    return ((1U << bytes / kBytes) - 1) << first / kBytes;
  }
  // `older(t)`: whether the read t is ordered before this one, which then replaces it.
  template <class Older>
  void read(GlobalCell& cell, const GlobalTouch& touch, Older older) {
    const auto replaces = [&](const GlobalTouch& t) {
      return (t.strong || !touch.strong) && (t.is_within(touch) || older(t));
    };
    if (joins(cell, touch)) return;
    if (cell.read.is_by_nobody() || (cell.more == nullptr && replaces(cell.read))) {
      cell.read = touch;
      return;
    }
    read_more(cell, touch, replaces);
  }
  // Whether a read of whole cells of one chunk adds only lanes to reads that these cells have, so that no more has to be recorded. Lanes of
  // a warp that read scattered words in a loop mostly do. False for cells with a write, against which it has to be checked.
  [[nodiscard]] bool reads_again(std::uint64_t address, std::int64_t bytes, const GlobalTouch& touch) {
    unsigned left = cells_of(address, static_cast<std::uint64_t>(bytes));
    const GlobalChunk* const here = left != 0 ? chunk(address) : nullptr;
    if (here == nullptr || here->cells == nullptr) return false;
    for (; left != 0; left &= left - 1) {
      GlobalCell& cell = (*here->cells)[static_cast<std::size_t>(std::countr_zero(left))];
      if (cell.bytes != nullptr || !cell.write.is_by_nobody() || !joins(cell, touch)) return false;
    }
    return true;
  }

 private:
  static constexpr std::uint64_t kPage = 64;  // chunks
  using Page = std::array<GlobalChunk, kPage>;
  [[nodiscard]] GlobalChunk* find_page(std::uint64_t chunk);
  [[nodiscard]] Cells& split(GlobalChunk& chunk);
  [[nodiscard]] std::array<GlobalCell, kBytes>& split(GlobalCell& cell);
  // Whether the cell has a read like this one, which then has the lanes of both. The last few of many are compared.
  [[nodiscard]] bool joins(GlobalCell& cell, const GlobalTouch& touch) {
    if (cell.read.is_like(touch)) {
      cell.read.lanes |= touch.lanes;
      return true;
    }
    if (cell.more == nullptr) return false;
    const std::span more(*cell.more);
    const std::span last = more.last(std::min(more.size(), kFew));
    for (auto read = last.rbegin(); read != last.rend(); ++read) {
      if (!read->is_like(touch)) continue;
      read->lanes |= touch.lanes;
      return true;
    }
    return false;
  }
  template <class Replaces>
  void read_more(GlobalCell& cell, const GlobalTouch& touch, Replaces replaces) {
    if (cell.more == nullptr) cell.more = more_.take();
    std::vector<GlobalTouch>& more = *cell.more;
    const std::size_t before = more.size();
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
