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
  bytes_.clear();
  more_.clear();
  free_.clear();
}

GlobalCell* GlobalCells::find_page(std::uint64_t cell) {
  const std::uint64_t page = cell / kPage;
  if (page != last_page_) {
    auto at = pages_.find(page);
    if (at == pages_.end()) {
      if (cells_ + kPage > most_cells_) {
        full_ = true;
        return nullptr;
      }
      cells_ += kPage;
      at = pages_.emplace(page, std::make_unique<Page>()).first;
    }
    last_page_ = page;
    last_ = at->second.get();
  }
  return &(*last_)[cell % kPage];
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
    bytes_.push_back(bytes);
    cell.bytes = static_cast<std::uint32_t>(bytes_.size());
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
