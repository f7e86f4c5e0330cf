// The pool of blocks that hold pages: which sequences hold each block, its content, and whether it can be reused. The
// pool stores no values; those are in the tensors that the cache views are built over, under the same block numbers.
//
//              allocate              last holder releases it
//     free ──────────────> used ──────────────┬─────────────────> free      content cannot be found again: the page is
//                           ^                 │                             not full, or its hash is already indexed
//                           │ share: a        │
//                           │ sequence finds  └─────────────────> cached    content is in the prefix index
//                           │ its prefix                            │ │
//                           └───────────────────────────────────────┘ │ evict: the least recently used
//     free <──────────────────────────────────────────────────────────┘
//
//   used    reference count >= 1: that many sequences hold it           free + cached + used = N, always
//   cached  reference count 0, found by hash until it is evicted
//   free    reference count 0, no content
//   N       the null page: never allocated; unused table entries point at it
//
// Blocks are allocated in a fixed order: first those never used, lowest first; then freed ones, first freed first; then
// the least recently used cached one, which loses its content. A sequence releases its pages from the last to the
// first, so a prefix stays cached longer than its continuation.
//
// Nothing is allocated from the heap per operation: free and cached lists are linked through the blocks' own records.
// Only blocks that were used at least once have a record, so a pool larger than this machine's memory can be simulated.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/index.h"
#include "core/paging/page_hash.h"
#include "core/paging/prefix_index.h"
#include "core/paging/run_limits.h"
#include "core/trace/recorder.h"

namespace kvscope {

// One sequence's row of the lookup table while it grows: the block of each page, and how many tokens are stored.
struct SequencePages {
  SeqIdx seq;
  std::vector<std::uint32_t> blocks;  // [pages] may cover more than `tokens`: reserved, not yet written
  std::int64_t tokens = 0;            // [tokens] stored
};

// The whole state of a pool in comparable form, for tests. Blocks from `never_used` on have no entry.
struct PoolSnapshot {
  std::int64_t never_used = 0;            // the lowest block that was never allocated
  std::vector<std::uint32_t> ref_counts;  // [block]
  std::vector<std::uint32_t> filled;      // [block] tokens stored
  std::vector<PageHash> hashes;           // [block] PageHash{}: cannot be found
  std::vector<std::uint32_t> freed;       // allocated in this order after those never used
  std::vector<std::uint32_t> lru;         // cached blocks, the next to be evicted first
  std::int64_t slots_filled = 0;
  friend bool operator==(const PoolSnapshot&, const PoolSnapshot&) = default;
};

class BlockPool {
 public:
  // N = `blocks` >= 1 real blocks of `page_size` >= 1 tokens, N < 2^32 - 1; GeometryError otherwise. More
  // than `most_records` of them cannot be taken over time: OverflowError.
  BlockPool(std::int64_t blocks, std::int64_t page_size, trace::Recorder& recorder,
            std::int64_t most_records = RunLimits{}.blocks);

  [[nodiscard]] std::int64_t blocks() const { return blocks_; }
  [[nodiscard]] std::int64_t page_size() const { return page_size_; }
  [[nodiscard]] BlockIdx null_page() const { return BlockIdx(blocks()); }

  [[nodiscard]] std::int64_t used() const { return blocks() - available(); }
  [[nodiscard]] std::int64_t cached() const { return cached_; }
  [[nodiscard]] std::int64_t free() const { return free_; }
  [[nodiscard]] std::int64_t available() const { return free_ + cached_; }   // blocks that could be allocated now
  [[nodiscard]] std::int64_t slots_filled() const { return slots_filled_; }  // tokens in used blocks, shared ones once
  [[nodiscard]] std::int64_t peak_used() const { return peak_used_; }
  [[nodiscard]] std::int64_t evictions() const { return evictions_; }
  [[nodiscard]] std::int64_t copies() const { return copies_; }
  [[nodiscard]] std::int64_t ref_count(BlockIdx block) const;  // IndexError outside [0, N)

  // --- growing a sequence: reserve, then write ------------------------------------------------------------------

  // Blocks that reserve(pages, new_tokens) would take. Example: page 4, 5 tokens stored in 2 pages: 3 more tokens need
  // 0, 4 need 1; if the second block is shared, 1 and 2, because its tokens move to a copy first.
  [[nodiscard]] std::int64_t blocks_needed(const SequencePages& pages, std::int64_t new_tokens) const;

  // Makes the slots of the next `new_tokens` tokens writable: allocates blocks, and copies a partly filled last page
  // that other sequences hold too (copy-on-write). All or nothing: returns false and changes nothing when too few
  // blocks are available.
  [[nodiscard]] bool reserve(SequencePages& pages, std::int64_t new_tokens);

  // Stores the next `new_tokens` tokens. Precondition (caller): reserved.
  void write(SequencePages& pages, std::int64_t new_tokens, bool decode);

  // reserve() and write() in one: the sequence grows, or nothing changes.
  [[nodiscard]] bool append(SequencePages& pages, std::int64_t new_tokens, bool decode);

  // --- sharing --------------------------------------------------------------------------------------------------

  // Makes the full page findable. False when another block with the same content is already indexed and stays so.
  bool publish(const SequencePages& pages, PageIdx page, PageHash hash);

  struct Found {
    BlockIdx block;
    bool cached = false;  // no sequence holds it now
  };
  // The block with that content; null_page() when there is none. Changes nothing, not even the order of eviction.
  [[nodiscard]] Found find(PageHash hash) const;

  // Block found by find() becomes the next page of `pages`, all of it stored. Precondition
  // (caller): full pages only so far.
  void share(SequencePages& pages, BlockIdx block);

  // A second sequence with the same tokens (parallel samples of one prompt, beams). It holds every page in which the
  // first one has stored tokens, the partly filled last one included. The first of them to write there gets a copy.
  [[nodiscard]] SequencePages fork(const SequencePages& pages, SeqIdx child);

  // --- releasing ------------------------------------------------------------------------------------------------

  // Releases every block, from the last page to the first. The block numbers in `pages` are no longer valid.
  void release(const SequencePages& pages);

  // --- inspection -----------------------------------------------------------------------------------------------

  [[nodiscard]] PoolSnapshot snapshot() const;

  // Recounts every invariant against the sequences that hold blocks. Returns the broken ones, as text.
  [[nodiscard]] std::vector<std::string> broken_invariants(std::span<const SequencePages* const> holders) const;

 private:
  static constexpr std::uint32_t kEnd = 0xffff'ffff;

  struct Record {
    std::uint32_t refs = 0;
    std::uint32_t filled = 0;   // [tokens]
    std::uint32_t next = kEnd;  // in the free or the cached list
    std::uint32_t prev = kEnd;  // in the cached list
  };
  struct List {
    std::uint32_t head = kEnd;  // the next to leave
    std::uint32_t tail = kEnd;
  };

  [[nodiscard]] bool last_page_is_shared(const SequencePages& pages) const;
  [[nodiscard]] std::uint32_t take();  // precondition: available() > 0
  void push_back(List& list, std::uint32_t block);
  void unlink(List& list, std::uint32_t block);

  trace::Recorder& recorder_;
  std::int64_t page_size_;
  std::int64_t blocks_;  // N
  std::int64_t most_records_;
  std::vector<Record> records_;  // [block], those allocated at least once
  PrefixIndex index_;
  List freed_;
  List lru_;
  std::int64_t free_ = 0, cached_ = 0;  // blocks
  std::int64_t slots_filled_ = 0;
  std::int64_t peak_used_ = 0, evictions_ = 0, copies_ = 0;
};

}  // namespace kvscope
