#include "core/paging/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>

#include "core/base/errors.h"
#include "tests/property.h"

namespace kvscope::block_pool_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class BlockPoolTest : public testing::Test {
 protected:
  BlockPool make(std::int64_t blocks, std::int64_t page_size) { return BlockPool(blocks, page_size, recorder_); }
  static SequencePages sequence(std::int64_t seq) { return SequencePages{SeqIdx(seq), {}, 0}; }
  static PageHash content(std::uint64_t text, std::uint64_t page) { return PageHash{text * 1000 + page + 1, 7}; }
  std::vector<std::string> broken(const BlockPool& pool, std::vector<const SequencePages*> holders) {
    return pool.broken_invariants(holders);
  }
  template <class E>
  std::vector<E> events() const {
    std::vector<E> found;
    for (const trace::Event& event : recorder_.events()) {
      if (const E* e = std::get_if<E>(&event)) found.push_back(*e);
    }
    return found;
  }
  trace::MemoryRecorder recorder_;
};

TEST_F(BlockPoolTest, StartsWithEverythingFreeAndANullPageBehindTheLastBlock) {
  BlockPool pool = make(4, 3);
  EXPECT_EQ(pool.free(), 4);
  EXPECT_EQ(pool.used(), 0);
  EXPECT_EQ(pool.null_page(), BlockIdx(4));
  EXPECT_EQ(pool.ref_count(BlockIdx(3)), 0);
  EXPECT_THROW((void)pool.ref_count(BlockIdx(4)), IndexError) << "the null page has no reference count";
  EXPECT_THROW((void)pool.ref_count(BlockIdx(-1)), IndexError);
}

TEST_F(BlockPoolTest, RejectsSizesThatAreNoPool) {
  try {
    (void)make(0, 0);
    FAIL();
  } catch (const GeometryError& e) {
    EXPECT_STREQ(e.what(),
                 "block pool rejected, 2 faults:\n  blocks: 0 is outside [1, 4294967294]\n"
                 "  page_size: 0 is outside [1, 4294967294]");
  }
  EXPECT_THROW((void)make(0xffff'ffff, 1), GeometryError) << "block 2^32 - 1 marks a list's end";
  EXPECT_EQ(make(0xffff'fffe, 1).free(), 0xffff'fffe) << "no memory for blocks never used";
}

// The edges of a page: 0, 1, P-1, P, P+1. An engine that allocates tokens / P + 1 blocks takes one too many at P.
TEST_F(BlockPoolTest, TakesABlockWhenAPagesFirstTokenComes) {
  for (const auto& [tokens, blocks] : {std::pair{0, 0}, {1, 1}, {3, 1}, {4, 1}, {5, 2}, {8, 2}, {9, 3}}) {
    BlockPool pool = make(4, 4);
    SequencePages s = sequence(0);
    EXPECT_EQ(pool.blocks_needed(s, tokens), blocks);
    ASSERT_TRUE(pool.append(s, tokens, false));
    EXPECT_EQ(pool.used(), blocks);
    EXPECT_EQ(pool.slots_filled(), tokens);
    EXPECT_EQ(s.tokens, tokens);
    EXPECT_THAT(broken(pool, {&s}), IsEmpty());
  }
}

TEST_F(BlockPoolTest, WritesNeverCrossAPage) {
  BlockPool pool = make(4, 4);
  SequencePages s = sequence(5);
  ASSERT_TRUE(pool.append(s, 3, false));
  ASSERT_TRUE(pool.append(s, 6, true));
  std::vector<std::array<std::int64_t, 4>> written;
  for (const auto& e : events<trace::TokensWritten>()) {
    written.push_back({e.first_token.value, e.tokens, e.block.value, e.slot});
  }
  EXPECT_EQ(written,
            (std::vector<std::array<std::int64_t, 4>>{{0, 3, 0, 0}, {3, 1, 0, 3}, {4, 4, 1, 0}, {8, 1, 2, 0}}));
}

TEST_F(BlockPoolTest, LeavesEverythingAsItWasWhenTooFewBlocksAreLeft) {
  BlockPool pool = make(3, 4);
  SequencePages a = sequence(0), b = sequence(1);
  ASSERT_TRUE(pool.append(a, 5, false));
  ASSERT_TRUE(pool.append(b, 2, false));
  const PoolSnapshot before = pool.snapshot();
  const std::vector<std::uint32_t> blocks = b.blocks;
  const std::size_t events_before = recorder_.events().size();
  EXPECT_FALSE(pool.append(b, 3, false));
  EXPECT_FALSE(pool.reserve(b, 100));
  EXPECT_EQ(pool.snapshot(), before);
  EXPECT_EQ(b.blocks, blocks);
  EXPECT_EQ(b.tokens, 2);
  EXPECT_EQ(recorder_.events().size(), events_before);
  EXPECT_TRUE(pool.append(b, 2, false)) << "what fits into its last page needs no block";
}

// Blocks never used first, then freed ones in the order they were freed; a sequence frees its last page first.
TEST_F(BlockPoolTest, HandsOutBlocksInAFixedOrder) {
  BlockPool pool = make(5, 1);
  SequencePages a = sequence(0), b = sequence(1), c = sequence(2);
  ASSERT_TRUE(pool.append(a, 2, false));
  ASSERT_TRUE(pool.append(b, 2, false));
  pool.release(a);
  ASSERT_TRUE(pool.append(c, 3, false));
  EXPECT_THAT(c.blocks, ElementsAre(4, 1, 0));
}

TEST_F(BlockPoolTest, KeepsPublishedContentUntilTheLeastRecentlyUsedMustGo) {
  BlockPool pool = make(4, 2);
  SequencePages a = sequence(0), b = sequence(1);
  ASSERT_TRUE(pool.append(a, 4, false));
  ASSERT_TRUE(pool.append(b, 3, false));
  EXPECT_TRUE(pool.publish(a, PageIdx(0), content(1, 0)));
  EXPECT_TRUE(pool.publish(a, PageIdx(1), content(1, 1)));
  EXPECT_TRUE(pool.publish(b, PageIdx(0), content(2, 0)));
  pool.release(a);
  pool.release(b);
  EXPECT_EQ(pool.cached(), 3);
  EXPECT_EQ(pool.free(), 1);  // b's second page was not full
  EXPECT_EQ(pool.slots_filled(), 0);
  EXPECT_THAT(pool.snapshot().lru, ElementsAre(1, 0, 2));  // a's tail before its beginning

  SequencePages c = sequence(2);
  pool.share(c, pool.find(content(1, 0)).block);
  EXPECT_EQ(c.tokens, 2);
  EXPECT_EQ(pool.slots_filled(), 2);
  ASSERT_TRUE(pool.append(c, 5, false));  // the free block, then block 1, then block 2
  EXPECT_THAT(c.blocks, ElementsAre(0, 3, 1, 2));
  EXPECT_EQ(pool.evictions(), 2);
  EXPECT_EQ(pool.find(content(1, 1)).block, pool.null_page());
  EXPECT_EQ(pool.find(content(2, 0)).block, pool.null_page());
  EXPECT_EQ(pool.find(content(1, 0)).block, BlockIdx(0)) << "held blocks are not evicted";
  EXPECT_THAT(broken(pool, {&c}), IsEmpty());
}

TEST_F(BlockPoolTest, FindsTheFirstOfTwoBlocksWithOneContent) {
  BlockPool pool = make(4, 2);
  SequencePages a = sequence(0), b = sequence(1);
  ASSERT_TRUE(pool.append(a, 2, false));
  ASSERT_TRUE(pool.append(b, 2, false));
  EXPECT_TRUE(pool.publish(a, PageIdx(0), content(1, 0)));
  EXPECT_FALSE(pool.publish(b, PageIdx(0), content(1, 0)));
  EXPECT_FALSE(pool.publish(a, PageIdx(0), content(1, 0))) << "publishing twice has no effect";
  EXPECT_EQ(pool.find(content(1, 0)).block, BlockIdx(0));
  pool.release(b);
  EXPECT_EQ(pool.free(), 3) << "a duplicate is free, not cached";
  EXPECT_THAT(broken(pool, {&a}), IsEmpty());
}

// Two samples of one prompt of 5 tokens, page 4: both read blocks 0 and 1. The first to write gets a copy of the partly
// filled block; the second then holds the original alone. Without the copy each would overwrite the other's token 5.
TEST_F(BlockPoolTest, CopiesAForkedPartialPageForTheFirstWriterAndNotForTheSecond) {
  BlockPool pool = make(5, 4);
  SequencePages parent = sequence(0);
  ASSERT_TRUE(pool.append(parent, 5, false));
  SequencePages child = pool.fork(parent, SeqIdx(1));
  EXPECT_THAT(child.blocks, ElementsAre(0, 1));
  EXPECT_EQ(pool.ref_count(BlockIdx(1)), 2);
  EXPECT_EQ(pool.slots_filled(), 5) << "a shared block counts once";
  EXPECT_EQ(pool.blocks_needed(parent, 1), 1);
  EXPECT_EQ(pool.blocks_needed(parent, 4), 2);

  ASSERT_TRUE(pool.append(parent, 1, true));
  EXPECT_THAT(parent.blocks, ElementsAre(0, 2));
  EXPECT_EQ(pool.copies(), 1);
  EXPECT_EQ(pool.slots_filled(), 4 + 1 + 2);
  EXPECT_EQ(pool.blocks_needed(child, 1), 0);
  ASSERT_TRUE(pool.append(child, 3, true));
  EXPECT_THAT(child.blocks, ElementsAre(0, 1));
  EXPECT_EQ(pool.copies(), 1);
  const auto copied = events<trace::BlockCopied>();
  ASSERT_EQ(copied.size(), 1u);
  EXPECT_EQ(copied[0].from, BlockIdx(1));
  EXPECT_EQ(copied[0].to, BlockIdx(2));
  EXPECT_EQ(copied[0].seq, SeqIdx(0));
  EXPECT_EQ(copied[0].page, PageIdx(1));
  EXPECT_EQ(copied[0].tokens, 1);
  EXPECT_THAT(broken(pool, {&parent, &child}), IsEmpty());

  pool.release(parent);
  EXPECT_EQ(pool.ref_count(BlockIdx(0)), 1);
  pool.release(child);
  EXPECT_EQ(pool.free(), 5);
}

TEST_F(BlockPoolTest, DoesNotCopyForAForkAtAPagesEnd) {
  BlockPool pool = make(4, 4);
  SequencePages parent = sequence(0);
  ASSERT_TRUE(pool.append(parent, 4, false));
  SequencePages child = pool.fork(parent, SeqIdx(1));
  ASSERT_TRUE(pool.append(child, 1, true));
  ASSERT_TRUE(pool.append(parent, 1, true));
  EXPECT_EQ(pool.copies(), 0);
  EXPECT_THAT(child.blocks, ElementsAre(0, 1));
  EXPECT_THAT(parent.blocks, ElementsAre(0, 2));
}

TEST_F(BlockPoolTest, RejectsACopyWhenNoBlockIsLeftForIt) {
  BlockPool pool = make(2, 4);
  SequencePages parent = sequence(0);
  ASSERT_TRUE(pool.append(parent, 5, false));
  const SequencePages child = pool.fork(parent, SeqIdx(1));
  const PoolSnapshot before = pool.snapshot();
  EXPECT_FALSE(pool.append(parent, 1, true));
  EXPECT_EQ(pool.snapshot(), before);
  EXPECT_THAT(broken(pool, {&parent, &child}), IsEmpty());
}

TEST_F(BlockPoolTest, SaysWhichInvariantIsBroken) {
  BlockPool pool = make(3, 4);
  SequencePages a = sequence(0);
  ASSERT_TRUE(pool.append(a, 5, false));
  EXPECT_THAT(broken(pool, {}),
              ElementsAre("block 0: reference count 1, held by 0", "block 1: reference count 1, held by 0"));
  EXPECT_THAT(broken(pool, {&a, &a}),
              ElementsAre("block 0: reference count 1, held by 2", "block 1: reference count 1, held by 2"));
  SequencePages wrong = a;
  wrong.blocks[1] = 3;
  EXPECT_THAT(broken(pool, {&wrong}),
              ElementsAre("sequence 0 page 1: block 3 is the null page", "block 1: reference count 1, held by 0"));
  wrong = a;
  wrong.tokens = 7;
  EXPECT_THAT(broken(pool, {&wrong}), ElementsAre("sequence 0 page 1: 3 tokens stored, but block 1 is filled to 1"));
  wrong.tokens = 9;
  EXPECT_EQ(broken(pool, {&wrong}).front(), "sequence 0: 9 tokens in 2 pages");
}

// --- random operations, compared with a pool written with maps and lists ----------------------------------------

struct NaivePool {
  std::int64_t blocks, page_size;
  std::int64_t never_used = 0;
  std::deque<std::uint32_t> freed, lru;
  std::map<std::uint32_t, std::uint32_t> refs, filled;
  std::map<PageHash, std::uint32_t> index;
  std::map<std::uint32_t, PageHash> hash_of;

  std::int64_t available() const {
    return blocks - never_used + static_cast<std::int64_t>(freed.size()) + static_cast<std::int64_t>(lru.size());
  }
  std::uint32_t take() {
    std::uint32_t b = 0;
    if (never_used < blocks) {
      b = static_cast<std::uint32_t>(never_used++);
    } else if (!freed.empty()) {
      b = freed.front();
      freed.pop_front();
    } else {
      b = lru.front();
      lru.pop_front();
      index.erase(hash_of.at(b));
      hash_of.erase(b);
    }
    refs[b] = 1;
    filled[b] = 0;
    return b;
  }
  bool append(SequencePages& s, std::int64_t count) {
    NaivePool trial = *this;
    SequencePages grown = s;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto page = static_cast<std::size_t>(grown.tokens / page_size);
      if (page == grown.blocks.size()) {
        if (trial.available() == 0) return false;
        grown.blocks.push_back(trial.take());
      } else if (trial.refs[grown.blocks[page]] > 1) {
        if (trial.available() == 0) return false;
        const std::uint32_t copy = trial.take();
        --trial.refs[grown.blocks[page]];
        trial.filled[copy] = static_cast<std::uint32_t>(grown.tokens % page_size);
        grown.blocks[page] = copy;
      }
      ++trial.filled[grown.blocks[page]];
      ++grown.tokens;
    }
    *this = trial;
    s = grown;
    return true;
  }
  void release(const SequencePages& s) {
    for (auto b = s.blocks.rbegin(); b != s.blocks.rend(); ++b) {
      if (--refs[*b] > 0) continue;
      if (hash_of.contains(*b)) {
        lru.push_back(*b);
      } else {
        filled[*b] = 0;
        freed.push_back(*b);
      }
    }
  }
  PoolSnapshot snapshot() const {
    PoolSnapshot s;
    s.never_used = never_used;
    for (std::uint32_t b = 0; b < never_used; ++b) {
      s.ref_counts.push_back(refs.at(b));
      s.filled.push_back(filled.at(b));
      s.hashes.push_back(hash_of.contains(b) ? hash_of.at(b) : PageHash{});
      if (refs.at(b) > 0) s.slots_filled += filled.at(b);
    }
    s.freed.assign(freed.begin(), freed.end());
    s.lru.assign(lru.begin(), lru.end());
    return s;
  }
};

struct Held {
  SequencePages real, naive;
  std::uint64_t text;
};

struct Op {
  std::uint8_t kind, which, count;
};

void run_against_naive(std::int64_t blocks, std::int64_t page_size, const std::vector<Op>& ops) {
  trace::Recorder off;
  BlockPool pool(blocks, page_size, off);
  NaivePool naive{blocks, page_size, 0, {}, {}, {}, {}, {}, {}};
  std::vector<Held> held;
  std::int64_t next_seq = 0;
  const auto hash = [](std::uint64_t text, std::int64_t page) {
    return PageHash{text * 1000 + static_cast<std::uint64_t>(page) + 1, 7};
  };
  for (const Op& op : ops) {
    const PoolSnapshot before = pool.snapshot();
    if (op.kind == 0 || held.empty()) {  // a new sequence takes the cached prefix of one of three texts
      const SequencePages empty{SeqIdx(next_seq++), {}, 0};
      Held h{empty, empty, op.which % 3u};
      for (std::int64_t p = 0; p < op.count % 4; ++p) {
        const BlockPool::Found found = pool.find(hash(h.text, p));
        const auto it = naive.index.find(hash(h.text, p));
        RC_ASSERT((found.block == pool.null_page()) == (it == naive.index.end()));
        if (it == naive.index.end()) break;
        RC_ASSERT(found.block.value == it->second);
        RC_ASSERT(found.cached == (naive.refs[it->second] == 0));
        pool.share(h.real, found.block);
        if (naive.refs[it->second]++ == 0) std::erase(naive.lru, it->second);
        h.naive.blocks.push_back(it->second);
        h.naive.tokens += page_size;
      }
      held.push_back(std::move(h));
    } else {
      const std::size_t at = op.which % held.size();
      Held& h = held[at];
      if (op.kind == 1) {
        const std::int64_t count = op.count % (2 * page_size + 2);
        const bool fits = naive.append(h.naive, count);
        RC_ASSERT(pool.append(h.real, count, false) == fits);
        if (!fits) RC_ASSERT(pool.snapshot() == before);
      } else if (op.kind == 2) {
        for (std::int64_t p = 0; p < h.real.tokens / page_size; ++p) {
          const std::uint32_t b = h.naive.blocks[static_cast<std::size_t>(p)];
          const bool fresh = !naive.hash_of.contains(b) && naive.index.emplace(hash(h.text, p), b).second;
          if (fresh) naive.hash_of[b] = hash(h.text, p);
          RC_ASSERT(pool.publish(h.real, PageIdx(p), hash(h.text, p)) == fresh);
        }
      } else if (op.kind == 3) {
        Held child = h;
        child.real = pool.fork(h.real, SeqIdx(next_seq));
        child.naive.seq = SeqIdx(next_seq++);
        for (const std::uint32_t b : child.naive.blocks) ++naive.refs[b];
        held.push_back(std::move(child));
      } else {
        pool.release(h.real);
        naive.release(h.naive);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    RC_ASSERT(pool.snapshot() == naive.snapshot());
    std::vector<const SequencePages*> holders;
    for (const Held& h : held) {
      RC_ASSERT(h.real.blocks == h.naive.blocks);
      RC_ASSERT(h.real.tokens == h.naive.tokens);
      holders.push_back(&h.real);
    }
    RC_ASSERT(pool.broken_invariants(holders) == std::vector<std::string>{});
  }
  for (const Held& h : held) pool.release(h.real);
  RC_ASSERT(pool.used() == 0);
  RC_ASSERT(pool.available() == blocks);
}

TEST(BlockPoolProperty, AgreesWithANaivePoolUnderAnyOrderOfOperations) {
  EXPECT_TRUE(prop::check("pool == naive pool", [] {
    const auto blocks = prop::in_range<std::int64_t>(1, 13);
    const auto page_size = prop::in_range<std::int64_t>(1, 5);
    std::vector<Op> ops;
    for (const int number : prop::vector_of(0, 5 * 256 * 256)) {
      ops.push_back({static_cast<std::uint8_t>(number % 5), static_cast<std::uint8_t>(number / 5 % 256),
                     static_cast<std::uint8_t>(number / (5 * 256))});
    }
    run_against_naive(blocks, page_size, ops);
  }));
}

}  // namespace
}  // namespace kvscope::block_pool_test
