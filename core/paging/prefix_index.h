// Finds the block that holds the page with a given hash: an open-addressing table of 8 bytes a slot, at most half full.
//
//   slot:  | tag: the top 32 bits of hash.lo | block |     home of a tag = its top log2(slots) bits
//
// A hit compares first the tag in the slot and then the block's whole hash, so a miss rarely reads outside the slots.
// Erasing moves later entries of the same run back instead of leaving tombstones, so look-ups stay fast after any
// number of evictions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/paging/page_hash.h"

namespace kvscope {

class PrefixIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  PrefixIndex();

  [[nodiscard]] std::int64_t size() const { return size_; }

  // The block of that hash, or kNone.
  [[nodiscard]] std::uint32_t find(PageHash hash) const;

  // Returns false and changes nothing when the hash is already indexed. Precondition (block pool): `block` <
  // kNone has no hash yet.
  bool insert(PageHash hash, std::uint32_t block);

  // Precondition (block pool): `block` has a hash.
  void erase(std::uint32_t block);

  // The hash under which `block` can be found; PageHash{} when it cannot.
  [[nodiscard]] PageHash hash_of(std::uint32_t block) const {
    return block < hashes_.size() ? hashes_[block] : PageHash{};
  }
  [[nodiscard]] bool holds(std::uint32_t block) const { return hash_of(block) != PageHash{}; }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t block = kNone;
  };
  [[nodiscard]] std::size_t home(std::uint32_t tag) const { return tag >> shift_; }
  [[nodiscard]] std::size_t slot_of(PageHash hash) const;  // the slot of the hash, or the empty slot where it would go
  void grow();

  std::vector<Slot> slots_;
  std::vector<PageHash> hashes_;  // [block], up to the highest ever inserted
  std::int64_t size_ = 0;
  int shift_ = 0;
};

}  // namespace kvscope
