#include "viz/playback/cow_array.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

namespace kvscope::viz::cow_array_test {
namespace {

using Small = CowArray<int, 4>;

std::vector<int> all(const Small& array) {
  std::vector<int> values;
  for (std::int64_t i = 0; i < array.size(); ++i) values.push_back(array[i]);
  return values;
}

// The test fails if a write changes a copy, or if the last chunk is not written.
TEST(CowArray, CopiesBehaveLikeVectors) {
  ASSERT_TRUE(rc::check([] {
    const auto size = *rc::gen::inRange<std::int64_t>(0, 14);
    std::vector<Small> arrays{Small(size)};
    std::vector<std::vector<int>> vectors{std::vector<int>(static_cast<std::size_t>(size))};
    const int moves = *rc::gen::inRange(0, 60);
    for (int i = 0; i < moves; ++i) {
      const auto which = *rc::gen::inRange<std::size_t>(0, arrays.size());
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          arrays.push_back(Small(arrays[which]));
          vectors.push_back(std::vector<int>(vectors[which]));
          break;
        case 1: {
          const auto grown = arrays[which].size() + *rc::gen::inRange<std::int64_t>(0, 6);
          arrays[which].resize(grown);
          vectors[which].resize(static_cast<std::size_t>(grown));
          break;
        }
        default:
          if (vectors[which].empty()) break;
          const auto at = *rc::gen::inRange<std::size_t>(0, vectors[which].size());
          arrays[which].at(static_cast<std::int64_t>(at)) = vectors[which][at] = *rc::gen::inRange(0, 3);
      }
    }
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      RC_ASSERT(all(arrays[a]) == vectors[a]);
      for (std::size_t b = 0; b < arrays.size(); ++b) RC_ASSERT((arrays[a] == arrays[b]) == (vectors[a] == vectors[b]));
    }
  }));
}

TEST(CowArray, ChunksCoverEveryElementOnceAndTheLastOneIsShort) {
  for (const std::int64_t size : {0, 1, 3, 4, 5, 8, 9}) {
    Small array(size);
    for (std::int64_t i = 0; i < size; ++i) array.at(i) = static_cast<int>(10 * i);
    std::vector<int> seen;
    array.for_each_chunk([&](std::int64_t first, std::span<const int> chunk) {
      EXPECT_EQ(first, std::ssize(seen));
      EXPECT_LE(chunk.size(), 4u);
      seen.insert(seen.end(), chunk.begin(), chunk.end());
    });
    EXPECT_EQ(seen, all(array)) << size;
    EXPECT_EQ(array.chunks(), (size + 3) / 4);
  }
}

// chunks_apart() gives the memory of a checkpoint: one chunk for any number of writes into it.
TEST(CowArray, CopyIsApartByTheChunksThatWereWritten) {
  Small array(13);
  const Small before = array;
  EXPECT_EQ(array.chunks_apart(before), 0);
  array.at(4) = 1;
  array.at(7) = 1;
  array.at(12) = 1;
  EXPECT_EQ(array.chunks_apart(before), 2);
  std::vector<std::int64_t> firsts;
  array.for_each_chunk_apart(before, [&](std::int64_t first, std::span<const int>) { firsts.push_back(first); });
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{4, 12}));
  array.at(4) = array.at(7) = array.at(12) = 0;
  EXPECT_EQ(array, before);  // the same numbers in separate chunks
  EXPECT_EQ(array.chunks_apart(before), 2);
}

TEST(CowArray, AMillionUnwrittenElementsTakeOneChunk) {
  CowArray<int> array(1'000'000);
  array.at(5) = 1;
  EXPECT_EQ(array[999'999], 0);
  EXPECT_EQ(array.chunks(), 977);
  const CowArray<int> copy = array;
  EXPECT_EQ(copy.chunks_apart(array), 0);
}

}  // namespace
}  // namespace kvscope::viz::cow_array_test
