#include "core/paging/block_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope {
namespace {

BlockIdx block_idx(std::uint32_t block) {
  return BlockIdx(static_cast<std::int64_t>(block));
}

std::int64_t checked_block_count(std::int64_t blocks, std::int64_t page_size) {
  constexpr std::int64_t kMost = 0xffff'fffe;
  std::vector<Fault> faults;
  if (blocks < 1 || blocks > kMost) {
    faults.push_back({"blocks", fmt::format("{} is outside [1, {}]", blocks, kMost)});
  }
  if (page_size < 1 || page_size > kMost) {
    faults.push_back({"page_size", fmt::format("{} is outside [1, {}]", page_size, kMost)});
  }
  if (!faults.empty()) throw GeometryError("block pool", std::move(faults));
  return blocks;
}

}  // namespace

BlockPool::BlockPool(std::int64_t blocks, std::int64_t page_size, trace::Recorder& recorder, std::int64_t most_records)
    : recorder_(recorder),
      page_size_(page_size),
      blocks_(checked_block_count(blocks, page_size)),
      most_records_(most_records),
      free_(blocks) {}

std::int64_t BlockPool::ref_count(BlockIdx block) const {
  check_index("block", block.value, blocks());
  const auto b = static_cast<std::size_t>(block.value);
  return b < records_.size() ? records_[b].refs : 0;
}

// --- growing a sequence -----------------------------------------------------------------------------------------

bool BlockPool::last_page_is_shared(const SequencePages& pages) const {
  if (pages.tokens % page_size_ == 0) return false;
  return records_[pages.blocks[static_cast<std::size_t>(pages.tokens / page_size_)]].refs > 1;
}

std::int64_t BlockPool::blocks_needed(const SequencePages& pages, std::int64_t new_tokens) const {
  if (new_tokens <= 0) return 0;
  const std::int64_t pages_after = ceil_div(pages.tokens + new_tokens, page_size_);
  const std::int64_t fresh = std::max<std::int64_t>(0, pages_after - static_cast<std::int64_t>(pages.blocks.size()));
  return fresh + (last_page_is_shared(pages) ? 1 : 0);
}

bool BlockPool::reserve(SequencePages& pages, std::int64_t new_tokens) {
  std::int64_t needed = blocks_needed(pages, new_tokens);
  if (needed > available()) return false;
  if (needed > 0 && last_page_is_shared(pages)) {
    const PageIdx page(pages.tokens / page_size_);
    const std::int64_t tokens = pages.tokens % page_size_;
    const std::uint32_t from = pages.blocks[static_cast<std::size_t>(page.value)];
    const std::uint32_t to = take();
    --records_[from].refs;
    records_[to].filled = static_cast<std::uint32_t>(tokens);
    slots_filled_ += tokens;
    ++copies_;
    pages.blocks[static_cast<std::size_t>(page.value)] = to;
    recorder_.record(trace::BlockCopied{block_idx(from), block_idx(to), pages.seq, page, tokens});
    --needed;
  }
  for (; needed > 0; --needed) {
    const PageIdx page(static_cast<std::int64_t>(pages.blocks.size()));
    const std::uint32_t block = take();
    pages.blocks.push_back(block);
    recorder_.record(trace::BlockAllocated{block_idx(block), pages.seq, page});
  }
  return true;
}

void BlockPool::write(SequencePages& pages, std::int64_t new_tokens, bool decode) {
  while (new_tokens > 0) {
    const std::int64_t slot = pages.tokens % page_size_;
    const std::int64_t count = std::min(new_tokens, page_size_ - slot);
    const std::uint32_t block = pages.blocks[static_cast<std::size_t>(pages.tokens / page_size_)];
    Record& record = records_[block];
    KVSCOPE_ASSERT(record.refs == 1 && record.filled == slot);
    record.filled += static_cast<std::uint32_t>(count);
    slots_filled_ += count;
    recorder_.record(trace::TokensWritten{pages.seq, TokIdx(pages.tokens), count, block_idx(block), slot, decode});
    pages.tokens += count;
    new_tokens -= count;
  }
}

bool BlockPool::append(SequencePages& pages, std::int64_t new_tokens, bool decode) {
  if (!reserve(pages, new_tokens)) return false;
  write(pages, new_tokens, decode);
  return true;
}

// --- sharing ----------------------------------------------------------------------------------------------------

bool BlockPool::publish(const SequencePages& pages, PageIdx page, PageHash hash) {
  const std::uint32_t block = pages.blocks[static_cast<std::size_t>(page.value)];
  KVSCOPE_ASSERT(records_[block].refs > 0 && records_[block].filled == page_size_);
  if (index_.holds(block)) return false;  // a fork's page, published by the other holder
  return index_.insert(hash, block);
}

BlockPool::Found BlockPool::find(PageHash hash) const {
  const std::uint32_t block = index_.find(hash);
  if (block == PrefixIndex::kNone) return Found{null_page(), false};
  return Found{block_idx(block), records_[block].refs == 0};
}

void BlockPool::share(SequencePages& pages, BlockIdx block) {
  const auto b = static_cast<std::uint32_t>(block.value);
  Record& record = records_[b];
  KVSCOPE_ASSERT(record.filled == page_size_);
  KVSCOPE_ASSERT(pages.tokens == static_cast<std::int64_t>(pages.blocks.size()) * page_size_);
  if (record.refs == 0) {
    unlink(lru_, b);
    --cached_;
    slots_filled_ += page_size_;
    peak_used_ = std::max(peak_used_, used());
  }
  ++record.refs;
  const PageIdx page(static_cast<std::int64_t>(pages.blocks.size()));
  pages.blocks.push_back(b);
  pages.tokens += page_size_;
  recorder_.record(trace::BlockShared{block, pages.seq, page, record.refs});
}

SequencePages BlockPool::fork(const SequencePages& pages, SeqIdx child) {
  SequencePages copy{child, {}, pages.tokens};
  const auto stored = static_cast<std::size_t>(ceil_div(pages.tokens, page_size_));
  copy.blocks.assign(pages.blocks.begin(), pages.blocks.begin() + static_cast<std::ptrdiff_t>(stored));
  for (std::size_t p = 0; p < stored; ++p) {
    Record& record = records_[copy.blocks[p]];
    ++record.refs;
    recorder_.record(
        trace::BlockShared{block_idx(copy.blocks[p]), child, PageIdx(static_cast<std::int64_t>(p)), record.refs});
  }
  return copy;
}

// --- releasing --------------------------------------------------------------------------------------------------

void BlockPool::release(const SequencePages& pages) {
  for (std::size_t p = pages.blocks.size(); p-- > 0;) {
    const std::uint32_t block = pages.blocks[p];
    Record& record = records_[block];
    KVSCOPE_ASSERT(record.refs > 0);
    --record.refs;
    const bool last = record.refs == 0;
    const bool keeps = last && index_.holds(block);
    if (last) {
      slots_filled_ -= record.filled;
      if (keeps) {
        push_back(lru_, block);
        ++cached_;
      } else {
        record.filled = 0;
        push_back(freed_, block);
        ++free_;
      }
    }
    recorder_.record(
        trace::BlockReleased{block_idx(block), pages.seq, PageIdx(static_cast<std::int64_t>(p)), record.refs, keeps});
  }
}

std::uint32_t BlockPool::take() {
  std::uint32_t block = 0;
  if (static_cast<std::int64_t>(records_.size()) < blocks_) {
    if (static_cast<std::int64_t>(records_.size()) >= most_records_) {
      throw OverflowError(fmt::format(
          "more than {} blocks of the pool hold tokens: use larger pages or shorter requests", most_records_));
    }
    block = static_cast<std::uint32_t>(records_.size());
    records_.emplace_back();
    --free_;
  } else if (freed_.head != kEnd) {
    block = freed_.head;
    unlink(freed_, block);
    --free_;
  } else {
    block = lru_.head;
    KVSCOPE_ASSERT(block != kEnd);
    unlink(lru_, block);
    --cached_;
    index_.erase(block);
    ++evictions_;
    recorder_.record(trace::BlockEvicted{block_idx(block)});
  }
  records_[block].refs = 1;
  records_[block].filled = 0;
  peak_used_ = std::max(peak_used_, used());
  return block;
}

void BlockPool::push_back(List& list, std::uint32_t block) {
  records_[block].next = kEnd;
  records_[block].prev = list.tail;
  (list.tail == kEnd ? list.head : records_[list.tail].next) = block;
  list.tail = block;
}

void BlockPool::unlink(List& list, std::uint32_t block) {
  const Record record = records_[block];
  (record.prev == kEnd ? list.head : records_[record.prev].next) = record.next;
  (record.next == kEnd ? list.tail : records_[record.next].prev) = record.prev;
  records_[block].next = records_[block].prev = kEnd;
}

// --- inspection -------------------------------------------------------------------------------------------------

PoolSnapshot BlockPool::snapshot() const {
  PoolSnapshot s;
  for (std::uint32_t b = 0; b < records_.size(); ++b) {
    s.ref_counts.push_back(records_[b].refs);
    s.filled.push_back(records_[b].filled);
    s.hashes.push_back(index_.hash_of(b));
  }
  s.never_used = static_cast<std::int64_t>(records_.size());
  for (std::uint32_t b = freed_.head; b != kEnd; b = records_[b].next) s.freed.push_back(b);
  for (std::uint32_t b = lru_.head; b != kEnd; b = records_[b].next) s.lru.push_back(b);
  s.slots_filled = slots_filled_;
  return s;
}

std::vector<std::string> BlockPool::broken_invariants(std::span<const SequencePages* const> holders) const {
  std::vector<std::string> broken;
  const auto fail = [&](std::string text) { broken.push_back(std::move(text)); };

  std::vector<std::uint32_t> holds(records_.size());
  for (const SequencePages* pages : holders) {
    if (static_cast<std::int64_t>(pages->blocks.size()) * page_size_ < pages->tokens) {
      fail(fmt::format("sequence {}: {} tokens in {} pages", pages->seq.value, pages->tokens, pages->blocks.size()));
    }
    for (std::size_t p = 0; p < pages->blocks.size(); ++p) {
      const std::uint32_t block = pages->blocks[p];
      if (block >= records_.size()) {
        fail(fmt::format("sequence {} page {}: block {} {}", pages->seq.value, p, block,
                         block == blocks_ ? "is the null page" : "was never handed out"));
        continue;
      }
      ++holds[block];
      const std::int64_t stored =
          std::clamp<std::int64_t>(pages->tokens - static_cast<std::int64_t>(p) * page_size_, 0, page_size_);
      if (records_[block].filled < stored) {
        fail(fmt::format("sequence {} page {}: {} tokens stored, but block {} is filled to {}", pages->seq.value, p,
                         stored, block, records_[block].filled));
      }
    }
  }

  std::vector<int> listed(records_.size());
  const PoolSnapshot lists = snapshot();
  for (const std::uint32_t b : lists.freed) listed[b] += 1;
  for (const std::uint32_t b : lists.lru) listed[b] += 10;
  std::int64_t used_count = 0, free_count = blocks_ - lists.never_used, cached_count = 0, filled = 0, indexed = 0;
  for (std::uint32_t b = 0; b < records_.size(); ++b) {
    const Record& record = records_[b];
    if (record.refs != holds[b]) {
      fail(fmt::format("block {}: reference count {}, held by {}", b, record.refs, holds[b]));
    }
    const bool found = index_.holds(b);
    if (found) ++indexed;
    if (found && index_.find(index_.hash_of(b)) != b) fail(fmt::format("block {}: its hash finds another block", b));
    if (found && record.filled != page_size_) {
      fail(fmt::format("block {}: can be found, but holds {} of {} tokens", b, record.filled, page_size_));
    }
    const int expected = record.refs > 0 ? 0 : found ? 10 : 1;
    if (listed[b] != expected) {
      fail(
          fmt::format("block {}: reference count {}, list mark {} (1 a time in the free list, 10 a time in the cached "
                      "one), expected {}",
                      b, record.refs, listed[b], expected));
    }
    used_count += record.refs > 0;
    free_count += listed[b] == 1;
    cached_count += listed[b] == 10;
    filled += record.refs > 0 ? record.filled : 0;
  }
  if (used_count != used() || free_count != free_ || cached_count != cached_) {
    fail(fmt::format("counted {} used, {} cached, {} free; the pool says {}, {}, {}", used_count, cached_count,
                     free_count, used(), cached_, free_));
  }
  if (indexed != index_.size()) fail(fmt::format("{} blocks have a hash, the index has {}", indexed, index_.size()));
  if (filled != slots_filled_) fail(fmt::format("{} slots filled, the pool says {}", filled, slots_filled_));
  return broken;
}

}  // namespace kvscope
