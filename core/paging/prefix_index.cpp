#include "core/paging/prefix_index.h"

#include "core/base/errors.h"

namespace kvscope {
namespace {

constexpr int kFirstBits = 6;  // 64 slots; the table doubles when half full

std::uint32_t tag_of(PageHash hash) {
  return static_cast<std::uint32_t>(hash.lo >> 32);
}

}  // namespace

PrefixIndex::PrefixIndex() : slots_(std::size_t{1} << kFirstBits), shift_(32 - kFirstBits) {}

std::size_t PrefixIndex::slot_of(PageHash hash) const {
  const std::uint32_t tag = tag_of(hash);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t s = home(tag);; s = (s + 1) & mask) {
    const Slot& slot = slots_[s];
    if (slot.block == kNone || (slot.tag == tag && hashes_[slot.block] == hash)) return s;
  }
}

std::uint32_t PrefixIndex::find(PageHash hash) const {
  return slots_[slot_of(hash)].block;
}

bool PrefixIndex::insert(PageHash hash, std::uint32_t block) {
  KVSCOPE_ASSERT(hash != PageHash{} && !holds(block));
  if (2 * static_cast<std::size_t>(size_ + 1) > slots_.size()) grow();
  Slot& slot = slots_[slot_of(hash)];
  if (slot.block != kNone) return false;
  slot = Slot{tag_of(hash), block};
  if (block >= hashes_.size()) hashes_.resize(block + std::size_t{1});
  hashes_[block] = hash;
  ++size_;
  return true;
}

void PrefixIndex::erase(std::uint32_t block) {
  KVSCOPE_ASSERT(holds(block));
  const std::size_t mask = slots_.size() - 1;
  std::size_t hole = slot_of(hashes_[block]);
  hashes_[block] = PageHash{};
  --size_;
  // An entry may move back into the hole unless its home lies cyclically in (hole, entry].
  for (std::size_t s = (hole + 1) & mask; slots_[s].block != kNone; s = (s + 1) & mask) {
    const std::size_t from_home = (s - home(slots_[s].tag)) & mask;
    const std::size_t from_hole = (s - hole) & mask;
    if (from_home >= from_hole) {
      slots_[hole] = slots_[s];
      hole = s;
    }
  }
  slots_[hole] = Slot{};
}

void PrefixIndex::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  --shift_;
  KVSCOPE_ASSERT(shift_ > 0);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& entry : old) {
    if (entry.block == kNone) continue;
    std::size_t s = home(entry.tag);
    while (slots_[s].block != kNone) s = (s + 1) & mask;
    slots_[s] = entry;
  }
}

}  // namespace kvscope
