#include "gpu/virtual/machine/memory/memory_part.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "gpu/virtual/machine/memory/device_memory.h"

namespace kvscope::ptx {
namespace {

// Bits [first, last] of a word, within [0, 63].
std::uint64_t bits_between(std::uint64_t first, std::uint64_t last) {
  return ~std::uint64_t{0} >> (63 - (last - first)) << first;
}

}  // namespace

MemoryPart::MemoryPart(std::span<const Allocation> whole) {
  all_.reserve(whole.size());
  for (const Allocation& a : whole) all_.push_back({a.bytes.data(), a.size, nullptr, {}});
}

MemoryPart::Page& MemoryPart::page_of(Bytes& bytes, std::uint64_t page) {
  if (bytes.pages.empty()) bytes.pages.resize(static_cast<std::size_t>((bytes.size + kPage - 1) / kPage));
  std::unique_ptr<Page>& place = bytes.pages[static_cast<std::size_t>(page)];
  if (place == nullptr) place = std::make_unique<Page>();
  return *place;
}

void MemoryPart::copy_page(Bytes& bytes, std::uint64_t page) {
  if (bytes.own == nullptr) bytes.own.reset(new std::byte[static_cast<std::size_t>(bytes.size)]);
  const std::uint64_t from = page * kPage, count = std::min(kPage, bytes.size - from);
  std::memcpy(bytes.own.get() + from, bytes.whole + from, static_cast<std::size_t>(count));
}

void MemoryPart::mark(Bytes& bytes, std::uint64_t offset, std::uint64_t count, Cells Page::*cells) {
  constexpr std::uint64_t kCells = kPage / kCell;
  const std::uint64_t end = (offset + count - 1) / kCell;  // the last cell
  for (std::uint64_t cell = offset / kCell; cell <= end;) {
    Cells& of = page_of(bytes, cell / kCells).*cells;
    const std::uint64_t last = std::min(end, cell / 64 * 64 + 63);
    of[cell % kCells / 64] |= bits_between(cell % 64, last % 64);
    cell = last + 1;
  }
}

const std::byte* MemoryPart::read(std::size_t allocation, std::uint64_t offset, std::uint64_t count) {
  Bytes& bytes = all_[allocation];
  if (count == 0) return bytes.whole + offset;
  mark(bytes, offset, count, &Page::read);
  if (bytes.own == nullptr) return bytes.whole + offset;
  const std::uint64_t first = offset / kPage, last = (offset + count - 1) / kPage;
  if (first == last) return (page_of(bytes, first).own ? bytes.own.get() : bytes.whole) + offset;
  // Some pages of the range may have been copied: then all of it is read from copies.
  for (std::uint64_t page = first; page <= last; ++page) {
    Page& of = page_of(bytes, page);
    if (!of.own) copy_page(bytes, page);
    of.own = true;
  }
  return bytes.own.get() + offset;
}

std::byte* MemoryPart::write(std::size_t allocation, std::uint64_t offset, std::uint64_t count) {
  Bytes& bytes = all_[allocation];
  const std::uint64_t last = (offset + std::max<std::uint64_t>(count, 1) - 1) / kPage;
  for (std::uint64_t page = offset / kPage; page <= last; ++page) {
    Page& of = page_of(bytes, page);
    if (!of.own) copy_page(bytes, page);
    of.own = true;
  }
  if (count > 0) mark(bytes, offset, count, &Page::written);
  return bytes.own.get() + offset;
}

void MemoryPart::commit(std::size_t allocation, std::span<std::byte> to) const {
  const Bytes& bytes = all_[allocation];
  for (std::size_t p = 0; p < bytes.pages.size(); ++p) {
    if (bytes.pages[p] == nullptr) continue;
    const Cells& written = bytes.pages[p]->written;
    for (std::size_t w = 0; w < written.size(); ++w) {
      for (std::uint64_t left = written[w]; left != 0;) {
        // Runs of cells: most pages are written as a whole.
        const auto first = static_cast<std::uint64_t>(std::countr_zero(left));
        const auto cells = static_cast<std::uint64_t>(std::countr_one(left >> first));
        const std::uint64_t from = p * kPage + (w * 64 + first) * kCell;
        const std::uint64_t count = std::min(cells * kCell, bytes.size - from);
        std::memcpy(to.data() + from, bytes.own.get() + from, static_cast<std::size_t>(count));
        left &= ~bits_between(first, first + cells - 1);
      }
    }
  }
}

std::optional<MemoryPart::Conflict> MemoryPart::first_conflict(std::span<const MemoryPart* const> parts) {
  const std::size_t allocations = parts.empty() ? 0 : parts.front()->all_.size();
  for (std::size_t a = 0; a < allocations; ++a) {
    std::map<std::size_t, Page> earlier;  // what the parts before this one have accessed
    for (const MemoryPart* part : parts) {
      const auto& pages = part->all_[a].pages;
      for (std::size_t p = 0; p < pages.size(); ++p) {
        if (pages[p] == nullptr) continue;
        const Page& now = *pages[p];
        Page& before = earlier[p];
        for (std::size_t w = 0; w < now.read.size(); ++w) {
          const std::uint64_t both =
              (now.written[w] & (before.read[w] | before.written[w])) | (now.read[w] & before.written[w]);
          if (both != 0) {
            const auto cell = static_cast<std::uint64_t>(std::countr_zero(both));
            return Conflict{a, p * kPage + (w * 64 + cell) * kCell};
          }
          before.read[w] |= now.read[w];
          before.written[w] |= now.written[w];
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace kvscope::ptx
