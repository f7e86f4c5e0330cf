#include "gpu/virtual/check/detail/global_cells.h"

#include <algorithm>
#include <tuple>

namespace kvscope::ptx {

GlobalChunk* GlobalCells::find_page(std::uint64_t chunk) {
  static constexpr std::size_t kCells = kPage * kChunk / kBytes;
  const std::uint64_t page = chunk / kPage;
  auto at = pages_.find(page);
  if (at == pages_.end()) {
    if (cells_ + kCells > most_cells_) {
      full_ = true;
      return nullptr;
    }
    cells_ += kCells;
    at = pages_.emplace(page, std::make_unique<Page>()).first;
  }
  last_page_ = page;
  last_ = at->second.get();
  return &(*last_)[chunk % kPage];
}

GlobalCells::Cells& GlobalCells::split(GlobalChunk& chunk) {
  chunk.cells = lists_.take();
  Cells& cells = lists_[chunk.cells];
  if (chunk.write.is_by_nobody() && chunk.read.is_by_nobody()) {
    cells = {};
    return cells;
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto number = static_cast<int>(i);
    cells[i] = {chunk.write.of_cell(number), chunk.read.of_cell(number), 0, 0};
  }
  return cells;
}

void GlobalCells::release(GlobalChunk& chunk) {
  for (GlobalCell& cell : lists_[chunk.cells]) {
    if (cell.bytes != 0) {
      for (GlobalCell& byte : bytes_[cell.bytes]) release(byte);
      bytes_.give_back(cell.bytes);
    }
    release(cell);
  }
  lists_.give_back(chunk.cells);
  chunk.cells = 0;
}

std::array<GlobalCell, GlobalCells::kBytes>& GlobalCells::split(GlobalCell& cell) {
  if (cell.bytes == 0) {
    const std::uint32_t number = bytes_.take();
    for (GlobalCell& byte : bytes_[number]) {
      byte = cell;
      if (cell.more == 0) continue;
      byte.more = more_.take();
      more_[byte.more] = more_[cell.more];
      reads_ += more_[byte.more].size();
    }
    release(cell);
    cell.bytes = number;
  }
  return bytes_[cell.bytes];
}

void GlobalCells::release(GlobalCell& cell) {
  if (cell.more == 0) return;
  reads_ -= more_[cell.more].size();
  more_[cell.more].clear();
  more_.give_back(cell.more);
  cell.more = 0;
}

void GlobalCells::keep_last_of_each(std::vector<GlobalTouch>& reads) {
  const auto actor = [](const GlobalTouch& t) {
    return std::tuple(t.cta, t.thread, t.number, t.lanes, static_cast<bool>(t.strong));
  };
  std::stable_sort(reads.begin(), reads.end(),
                   [&](const GlobalTouch& a, const GlobalTouch& b) { return actor(a) < actor(b); });
  const auto kept = std::unique(reads.rbegin(), reads.rend(),
                                [&](const GlobalTouch& a, const GlobalTouch& b) { return actor(a) == actor(b); });
  reads.erase(reads.begin(), kept.base());
}

void GlobalCells::write(GlobalCell& cell, const GlobalTouch& touch) {
  cell.write = touch;
  cell.read = {};
  release(cell);
}

}  // namespace kvscope::ptx
