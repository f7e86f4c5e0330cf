// The last accesses to each 4 bytes of global memory in one launch: the last write, and the reads since that write that
// are not ordered before one another. A cell is split into bytes at the first access of fewer than 4 bytes, so that
// accesses of adjacent bytes are never confused.
//
//   st.global.u32 of adjacent words by a warp   32 cells, one lane each
//   ld.global.u32 of one address by a warp      1 cell, 32 lanes
//
// Bounded: beyond `most_cells` or `most_reads` nothing more is recorded, and full() returns true.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gpu/virtual/check/clock.h"
#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

struct GlobalTouch {
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  std::int32_t cta = 0;            // linear, of the thread or of the issuer
  std::uint32_t number = kNobody;  // actor (clock.h): lane 0 of the warp, or cp.async or engine of `thread`
  std::int32_t pc = -1;
  Step step = 0;
  LaneMask lanes = 0;        // 0: cp.async or an engine
  std::uint16_t thread = 0;  // lane 0 of the warp, or the issuer
  AsyncKind kind = AsyncKind::cp_async;
  bool strong : 1 = false;  // atomic, volatile, relaxed, acquire, release
  bool plain_store : 1 = false;

  [[nodiscard]] bool is_by_nobody() const { return number == kNobody; }
  // The same warp or the same engine.
  [[nodiscard]] bool same_actor(const GlobalTouch& o) const { return cta == o.cta && number == o.number; }
  // All actors of this touch are actors of `later` as well.
  [[nodiscard]] bool is_within(const GlobalTouch& later) const {
    return same_actor(later) && (lanes & ~later.lanes) == 0;
  }
};
static_assert(sizeof(GlobalTouch) == 24);

struct GlobalCell {
  GlobalTouch write;
  GlobalTouch read;         // the first one since
  std::uint32_t more = 0;   // 1 + index of the other reads in GlobalCells; 0: none
  std::uint32_t bytes = 0;  // 1 + index of its four bytes in GlobalCells, which replace all other fields; 0: none
};

class GlobalCells {
 public:
  static constexpr std::uint64_t kBytes = 4;

  GlobalCells(std::size_t most_cells, std::size_t most_reads) : most_cells_(most_cells), most_reads_(most_reads) {}

  void clear();
  // Whether an access was not recorded.
  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] std::size_t most_cells() const { return most_cells_; }

  // Calls visit(cell, address, bytes) for each cell of the range. `bytes` is 4, or 1 for a cell that is split.
  template <class Visit>
  void each(std::uint64_t address, std::int64_t count, Visit visit) {
    if (count == static_cast<std::int64_t>(kBytes) && address % kBytes == 0) [[likely]] {  // one cell
      GlobalCell* const cell = find(address / kBytes);
      if (cell == nullptr) return;
      if (cell->bytes == 0) return visit(*cell, address, kBytes);
    }
    const std::uint64_t end = address + static_cast<std::uint64_t>(count);
    for (std::uint64_t at = address; at < end;) {
      const std::uint64_t next = std::min((at / kBytes + 1) * kBytes, end);
      GlobalCell* cell = find(at / kBytes);
      if (cell == nullptr) {
        at = next;
        continue;
      }
      if (cell->bytes == 0 && next - at == kBytes) {
        visit(*cell, at, kBytes);
      } else {
        std::array<GlobalCell, kBytes>& bytes = split(*cell);
        for (std::uint64_t b = at; b < next; ++b) visit(bytes[b % kBytes], b, 1);
      }
      at = next;
    }
  }

  template <class Visit>
  void each_read(const GlobalCell& cell, Visit visit) const {
    if (!cell.read.is_by_nobody()) visit(cell.read);
    if (cell.more == 0) return;
    for (const GlobalTouch& t : more_[cell.more - 1]) visit(t);
  }
  void write(GlobalCell& cell, const GlobalTouch& touch);
  // `older(t)`: whether the read t is ordered before this one, which then replaces it.
  template <class Older>
  void read(GlobalCell& cell, const GlobalTouch& touch, Older older) {
    const auto replaces = [&](const GlobalTouch& t) {
      return (t.strong || !touch.strong) && (t.is_within(touch) || older(t));
    };
    if (cell.read.is_by_nobody() || (cell.more == 0 && replaces(cell.read))) {
      cell.read = touch;
      return;
    }
    read_more(cell, touch, replaces);
  }

 private:
  static constexpr std::uint64_t kPage = 256;  // cells
  using Page = std::array<GlobalCell, kPage>;
  [[nodiscard]] GlobalCell* find(std::uint64_t cell) {
    return cell / kPage == last_page_ ? &(*last_)[cell % kPage] : find_page(cell);
  }
  [[nodiscard]] GlobalCell* find_page(std::uint64_t cell);
  [[nodiscard]] std::array<GlobalCell, kBytes>& split(GlobalCell& cell);
  template <class Replaces>
  void read_more(GlobalCell& cell, const GlobalTouch& touch, Replaces replaces) {
    if (cell.more == 0) cell.more = take();
    std::vector<GlobalTouch>& more = more_[cell.more - 1];
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
  [[nodiscard]] std::uint32_t take();
  void release(GlobalCell& cell);
  // Keeps the last of several reads by one actor.
  static void keep_last_of_each(std::vector<GlobalTouch>& reads);

  std::size_t most_cells_, most_reads_;
  std::size_t cells_ = 0, reads_ = 0;
  bool full_ = false;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_page_ = ~std::uint64_t{0};
  Page* last_ = nullptr;
  std::deque<std::array<GlobalCell, kBytes>> bytes_;
  std::deque<std::vector<GlobalTouch>> more_;
  std::vector<std::uint32_t> free_;  // 1 + indices of unused lists in more_
};

}  // namespace kvscope::ptx
