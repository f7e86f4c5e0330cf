#include "gpu/virtual/check/detail/global_cells.h"

#include <algorithm>
#include <bit>
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
  *chunk.cells = {};
  for (const GlobalTouch& touch : chunk.touches) {
    for (unsigned left = touch.cells; left != 0; left &= left - 1) {
      const int i = std::countr_zero(left);
      GlobalCell& cell = (*chunk.cells)[static_cast<std::size_t>(i)];
      (touch.write ? cell.write : cell.read) = touch.of_cell(i);
    }
  }
  return *chunk.cells;
}

void GlobalCells::release(GlobalChunk& chunk) {
  for (GlobalCell& cell : *chunk.cells) {
    if (cell.bytes != nullptr) {
      for (GlobalCell& byte : *cell.bytes) release(byte);
      bytes_.give_back(cell.bytes);
    }
    release(cell);
  }
  lists_.give_back(chunk.cells);
  chunk.cells = nullptr;
}

std::array<GlobalCell, GlobalCells::kBytes>& GlobalCells::split(GlobalCell& cell) {
  if (cell.bytes == nullptr) {
    auto* const bytes = bytes_.take();
    for (GlobalCell& byte : *bytes) {
      byte = cell;
      if (cell.more == nullptr) continue;
      byte.more = more_.take();
      *byte.more = *cell.more;
      reads_ += byte.more->size();
    }
    release(cell);
    cell.bytes = bytes;
  }
  return *cell.bytes;
}

void GlobalCells::release(GlobalCell& cell) {
  if (cell.more == nullptr) return;
  reads_ -= cell.more->size();
  cell.more->clear();
  more_.give_back(cell.more);
  cell.more = nullptr;
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

}  // namespace kvscope::ptx
