// Accesses of a CTA's shared memory in which each lane of a warp stays in one row, and no two lanes in the same. Such lanes never race with
// one another, so these accesses get no marks until another access comes to the same bytes.
//
//   tile[lane * 64 + i] = x[i]     64 stores, each of 4 bytes in 32 rows: 64 cells, where marks would be in 32 * 16 chunks
//   y += tile[lane * 64 + i]       the cells of the same rows
//   __syncthreads(); tile[i] ...   ordered after all of them: no marks
//
// Of every 4 bytes of a row, the last write and the last read since are kept, once for all lanes. Rows that are kept do not overlap, so
// there are few.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/virtual/check/clock.h"
#include "gpu/virtual/check/detail/race_reads.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

class LaneRows {
 public:
  static constexpr std::int32_t kCellBytes = 4;

  // One access of all lanes of a warp: `bytes` bytes (4 or 8) at first + lane * stride, from the window's first chunk on.
  struct Touch {
    std::int32_t first = 0;
    std::int32_t bytes = 0;
    Step step = 0;
    std::int32_t pc = -1;
    std::uint16_t meets = 0;  // Mark::meets
    bool write = false;
    std::uint64_t order = 0;  // of touches, by execution; 0: none
    Known known;              // of a read: what the lanes had acquired
  };
  struct Cell {
    bool clear = false;  // no marks of these bytes conflict with accesses of the rows
    Touch write, read;
  };
  // Rows of one warp. Lane 0 has touched bytes in [low, high), which is at most one stride.
  struct Rows {
    ActorKey warp = 0;  // its lane 0
    std::int32_t stride = 0, low = 0, high = 0;
    Regions regions;
    std::vector<Cell> cells;  // [(high - low) / kCellBytes], of all lanes

    [[nodiscard]] Cell* cells_at(std::int32_t first) {
      return cells.data() + static_cast<std::ptrdiff_t>((first - low) / kCellBytes);
    }
    [[nodiscard]] std::int32_t end() const { return high + (kLanes - 1) * stride; }
    // Whether they still are rows with these bytes of lane 0.
    [[nodiscard]] bool fits(std::int32_t first, std::int32_t bytes) const {
      return std::max(high, first + bytes) - std::min(low, first) <= stride;
    }
  };

  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // The rows of this warp that the bytes of lane 0 belong to; null: none.
  [[nodiscard]] Rows* find(ActorKey warp, std::int32_t stride, std::int32_t first, std::int32_t bytes) {
    const auto is_it = [&](const Rows& rows) {
      return rows.warp == warp && rows.stride == stride && rows.fits(first, bytes);
    };
    if (last_ < rows_.size() && is_it(rows_[last_])) return &rows_[last_];
    for (last_ = 0; last_ < rows_.size(); ++last_)
      if (is_it(rows_[last_])) return &rows_[last_];
    return nullptr;
  }
  // Adds rows without cells. Other pointers to rows are invalid afterwards.
  [[nodiscard]] Rows& add(ActorKey warp, std::int32_t stride, std::int32_t first) {
    last_ = rows_.size();
    rows_.push_back({warp, stride, first, first, {}, {}});
    return rows_.back();
  }
  // Gives the rows cells for these bytes of lane 0.
  static void grow(Rows& rows, std::int32_t first, std::int32_t bytes);
  // Records an access that the rows have cells for.
  void keep(Rows& rows, Touch touch);

  // Removes the rows for which leave(rows) is true, and calls body(rows, touch, the bytes of it that are left, one bit each) for
  // their touches in the order of execution.
  template <class Leave, class Body>
  void take(Leave leave, Body body) {
    for (std::size_t i = 0; i < rows_.size();) {
      if (!leave(std::as_const(rows_[i]))) {
        ++i;
        continue;
      }
      const Rows rows = std::move(rows_[i]);
      rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(i));
      for (const auto& [touch, bytes] : in_order(rows)) body(rows, *touch, bytes);
    }
  }

 private:
  using Left = std::pair<const Touch*, std::uint32_t>;
  [[nodiscard]] static std::vector<Left> in_order(const Rows& rows);

  std::vector<Rows> rows_;
  std::size_t last_ = 0;
  std::uint64_t next_ = 1;
};

}  // namespace kvscope::ptx
