// Lab 04: the class of pool.cpp that you write. Its blocks, numbered from 0, hold the pages of sequences.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

using Block = std::uint32_t;
using Hash = std::uint64_t;          // of a full page and all pages before it: equal hashes mean equal tokens
constexpr Block kNone = 0xffffffff;  // "no block"

class Allocator {
 public:
  virtual ~Allocator() = default;

  // --- calls of the engine. A sequence exists from the first call that names it until it is released. ----------------

  // Stores the next token of `sequence`, and returns the block that it is stored in. If the sequence has no page yet,
  // or its last page is full, a new block becomes its next page. If its last page has room but other sequences hold
  // that block too, a new block with a copy of it takes its place in this sequence. Otherwise the token goes into the
  // last page. When a new block is needed and none is available: returns kNone and changes nothing.
  virtual Block append(int sequence) = 0;

  // The last page of `sequence` has just become full: from now on share() finds its block by `hash`. Changes nothing
  // if a block can be found by this hash already.
  virtual void publish(int sequence, Hash hash) = 0;

  // If a block can be found by `hash`, it becomes the next page of `sequence`, a full one; returns the block, else
  // kNone. The sequence has full pages only, or none.
  virtual Block share(int sequence, Hash hash) = 0;

  // The new sequence `child` holds every page of `parent`, with the same number of tokens.
  virtual void fork(int parent, int child) = 0;

  // Removes `sequence`, which releases its pages from the last to the first. A block that no sequence holds any longer
  // is *cached* if share() can find it, and *free* if not.
  virtual void release(int sequence) = 0;

  // --- the state, which the check reads after each call --------------------------------------------------------------

  virtual std::vector<Block> pages(int sequence) const = 0;  // from the first page on; none: empty
  virtual std::int64_t holders(Block block) const = 0;       // the number of sequences that hold the block
  virtual std::vector<Block> free_blocks() const = 0;        // in the order in which they will be allocated
  virtual std::vector<Block> cached_blocks() const = 0;      // in the order in which they will be evicted
};

// A pool without sequences: all blocks are free, the lowest is allocated first. A new block is the free one that has
// been free longest. If no block is free, it is the cached one that was released longest ago; it is *evicted*: share()
// no longer finds it.
std::unique_ptr<Allocator> make_allocator(std::int64_t blocks, std::int64_t page_size);
