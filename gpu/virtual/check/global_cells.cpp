#include "gpu/virtual/check/detail/global_cells.h"

#include <algorithm>
#include <tuple>

namespace kvscope::ptx {

void GlobalCells::clear() {
  cells_ = reads_ = 0;
  full_ = false;
  pages_.clear();
  last_page_ = ~std::uint64_t{0};
  last_ = nullptr;
  lists_.clear();
  free_lists_.clear();
  bytes_.clear();
  free_bytes_.clear();
  more_.clear();
  free_.clear();
}

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
  if (free_lists_.empty()) {
    lists_.emplace_back();
    chunk.cells = static_cast<std::uint32_t>(lists_.size());
  } else {
    chunk.cells = free_lists_.back();
    free_lists_.pop_back();
  }
  Cells& cells = lists_[chunk.cells - 1];
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
  for (GlobalCell& cell : lists_[chunk.cells - 1]) {
    if (cell.bytes != 0) {
      for (GlobalCell& byte : bytes_[cell.bytes - 1]) release(byte);
      free_bytes_.push_back(cell.bytes);
    }
    release(cell);
  }
  free_lists_.push_back(chunk.cells);
  chunk.cells = 0;
}

std::array<GlobalCell, GlobalCells::kBytes>& GlobalCells::split(GlobalCell& cell) {
  if (cell.bytes == 0) {
    std::array<GlobalCell, kBytes> bytes;
    for (GlobalCell& b : bytes) {
      b = cell;
      if (cell.more == 0) continue;
      b.more = take();
      more_[b.more - 1] = more_[cell.more - 1];
      reads_ += more_[b.more - 1].size();
    }
    release(cell);
    if (free_bytes_.empty()) {
      bytes_.push_back(bytes);
      cell.bytes = static_cast<std::uint32_t>(bytes_.size());
    } else {
      cell.bytes = free_bytes_.back();
      free_bytes_.pop_back();
      bytes_[cell.bytes - 1] = bytes;
    }
  }
  return bytes_[cell.bytes - 1];
}

std::uint32_t GlobalCells::take() {
  if (free_.empty()) {
    more_.emplace_back();
    return static_cast<std::uint32_t>(more_.size());
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  return place;
}

void GlobalCells::release(GlobalCell& cell) {
  if (cell.more == 0) return;
  reads_ -= more_[cell.more - 1].size();
  more_[cell.more - 1].clear();
  free_.push_back(cell.more);
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
