#include "core/paging/prefix_index.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/property.h"

namespace kvscope::prefix_index_test {
namespace {

// The tag, and with it the slot, is the top half of `lo`: hashes made here differ in the other bits.
PageHash same_home(std::uint64_t home_bits, std::uint64_t low, std::uint64_t hi = 1) {
  return PageHash{(home_bits << 58) | low, hi};
}

TEST(PrefixIndex, FindsWhatWasInsertedAndNothingElse) {
  PrefixIndex index;
  EXPECT_EQ(index.find(PageHash{5, 6}), PrefixIndex::kNone);
  EXPECT_TRUE(index.insert(PageHash{5, 6}, 9));
  EXPECT_EQ(index.find(PageHash{5, 6}), 9u);
  EXPECT_EQ(index.find(PageHash{5, 7}), PrefixIndex::kNone) << "the high half is part of the hash";
  EXPECT_EQ(index.find(PageHash{6, 6}), PrefixIndex::kNone) << "equal tags are not equal hashes";
  EXPECT_TRUE(index.holds(9));
  EXPECT_FALSE(index.holds(8));
  EXPECT_FALSE(index.holds(1'000'000)) << "a block never inserted is not out of range";
  EXPECT_EQ(index.hash_of(9), (PageHash{5, 6}));
}

TEST(PrefixIndex, KeepsTheFirstBlockOfEqualHashes) {
  PrefixIndex index;
  EXPECT_TRUE(index.insert(PageHash{5, 6}, 1));
  EXPECT_FALSE(index.insert(PageHash{5, 6}, 2));
  EXPECT_EQ(index.find(PageHash{5, 6}), 1u);
  EXPECT_FALSE(index.holds(2));
  EXPECT_EQ(index.size(), 1);
}

// A run that starts in the last slots continues in the first ones: an erase that compares positions without wrapping
// would leave an entry where a search no longer finds it.
TEST(PrefixIndex, ErasesInTheMiddleOfARunThatWrapsRoundTheEnd) {
  for (std::uint32_t erased = 0; erased < 6; ++erased) {
    PrefixIndex index;
    for (std::uint32_t b = 0; b < 6; ++b) {
      ASSERT_TRUE(index.insert(same_home(b % 2 == 0 ? 63 : 62, b), b));  // homes 62 and 63 of 64 slots
    }
    index.erase(erased);
    EXPECT_EQ(index.size(), 5);
    for (std::uint32_t b = 0; b < 6; ++b) {
      EXPECT_EQ(index.find(same_home(b % 2 == 0 ? 63 : 62, b)), b == erased ? PrefixIndex::kNone : b);
    }
  }
}

TEST(PrefixIndex, KeepsEverythingWhenItGrows) {
  PrefixIndex index;
  constexpr std::uint32_t kCount = 5000;
  const auto hash = [](std::uint64_t i) { return PageHash{i * 0x9e3779b97f4a7c15, i + 1}; };
  for (std::uint32_t b = 0; b < kCount; ++b) ASSERT_TRUE(index.insert(hash(b), b));
  for (std::uint32_t b = 0; b < kCount; ++b) ASSERT_EQ(index.find(hash(b)), b);
}

TEST(PrefixIndex, AgreesWithAMapUnderAnyOrderOfInsertsAndErases) {
  EXPECT_TRUE(prop::check("index == map", [] {
    PrefixIndex index;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> model;
    std::map<std::uint32_t, PageHash> blocks;
    for (const std::uint64_t number : prop::vector_of<std::uint64_t>(0, 512)) {
      const std::uint64_t key = number / 2;
      const bool insert = number % 2 == 1;
      const auto block = static_cast<std::uint32_t>(key % 64);
      const PageHash hash = same_home(60 + key % 4, key % 48 / 4, 1 + key % 3);  // few homes: long, overlapping runs
      if (insert && !blocks.contains(block)) {
        const bool fresh = model.emplace(std::pair{hash.lo, hash.hi}, block).second;
        RC_ASSERT(index.insert(hash, block) == fresh);
        if (fresh) blocks[block] = hash;
      } else if (!insert && blocks.contains(block)) {
        model.erase({blocks[block].lo, blocks[block].hi});
        blocks.erase(block);
        index.erase(block);
      }
      RC_ASSERT(index.size() == static_cast<std::int64_t>(model.size()));
      for (std::uint64_t k = 0; k < 256; ++k) {
        const PageHash h = same_home(60 + k % 4, k % 48 / 4, 1 + k % 3);
        const auto it = model.find({h.lo, h.hi});
        RC_ASSERT(index.find(h) == (it == model.end() ? PrefixIndex::kNone : it->second));
      }
    }
  }));
}

}  // namespace
}  // namespace kvscope::prefix_index_test
