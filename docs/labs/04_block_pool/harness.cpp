// case: a call of the engine. 0, blocks, page_size: a new pool. 1, sequence: append. 2, sequence, hash: publish.
// 3, sequence, hash: share. 4, parent, child: fork. 5, sequence: release.
// result: the returned block (kNone: -1; nothing returned: 0), the sequences, and for each its number, its pages and
// their count before them; the holders of each block; the free blocks and the cached ones, each with their count.
#include <set>

#include "allocator.h"
#include "cases.h"

namespace {

std::int64_t word_of_block(Block block) {
  return block == kNone ? -1 : static_cast<std::int64_t>(block);
}

// At most `most` blocks: a list that grows without end is wrong, and its beginning shows it.
void add_list(cases::Words& words, const std::vector<Block>& list, std::size_t most) {
  const std::size_t count = list.size() < most ? list.size() : most;
  words.push_back(static_cast<std::int64_t>(count));
  for (std::size_t i = 0; i < count; ++i) words.push_back(word_of_block(list[i]));
}

}  // namespace

int main() {
  std::unique_ptr<Allocator> pool;
  std::set<int> sequences;
  std::int64_t blocks = 0;
  return cases::run([&](const cases::Words& words) {
    const int sequence = static_cast<int>(words[1]);
    cases::Words result{0};
    if (words[0] == 0) {
      blocks = words[1];
      sequences.clear();
      pool = make_allocator(blocks, words[2]);
    } else if (words[0] == 1) {
      result[0] = word_of_block(pool->append(sequence));
    } else if (words[0] == 2) {
      pool->publish(sequence, static_cast<Hash>(words[2]));
    } else if (words[0] == 3) {
      result[0] = word_of_block(pool->share(sequence, static_cast<Hash>(words[2])));
    } else if (words[0] == 4) {
      pool->fork(sequence, static_cast<int>(words[2]));
      sequences.insert(static_cast<int>(words[2]));
    } else {
      pool->release(sequence);
    }
    if (words[0] == 5) sequences.erase(sequence);
    if (words[0] > 0 && words[0] < 4) sequences.insert(sequence);
    const auto most = static_cast<std::size_t>(2 * blocks + 8);
    result.push_back(static_cast<std::int64_t>(sequences.size()));
    for (const int number : sequences) {
      result.push_back(number);
      add_list(result, pool->pages(number), most);
    }
    for (Block block = 0; block < static_cast<Block>(blocks); ++block) result.push_back(pool->holders(block));
    add_list(result, pool->free_blocks(), most);
    add_list(result, pool->cached_blocks(), most);
    return result;
  });
}
