#include <algorithm>
#include <map>

#include "allocator.h"

namespace {

class Pool final : public Allocator {
 public:
  Pool(std::int64_t blocks, std::int64_t page_size)
      : page_size_(page_size), records_(static_cast<std::size_t>(blocks)) {
    for (Block block = 0; block < static_cast<Block>(blocks); ++block) free_.push_back(block);
  }

  Block append(int sequence) override {
    Sequence& own = sequences_[sequence];
    const bool full = own.tokens % page_size_ == 0;
    const bool shared = !full && records_[own.pages.back()].holders > 1;
    if (full || shared) {
      const Block block = take();
      if (block == kNone) return kNone;
      if (shared) {
        --records_[own.pages.back()].holders;
        own.pages.back() = block;
      } else {
        own.pages.push_back(block);
      }
    }
    ++own.tokens;
    return own.pages.back();
  }

  void publish(int sequence, Hash hash) override {
    const Block block = sequences_[sequence].pages.back();
    if (found_.count(hash) > 0) return;
    found_[hash] = block;
    records_[block].published = true;
    records_[block].hash = hash;
  }

  Block share(int sequence, Hash hash) override {
    const auto at = found_.find(hash);
    if (at == found_.end()) return kNone;
    const Block block = at->second;
    if (records_[block].holders == 0) remove(cached_, block);
    ++records_[block].holders;
    Sequence& own = sequences_[sequence];
    own.pages.push_back(block);
    own.tokens += page_size_;
    return block;
  }

  void fork(int parent, int child) override {
    const Sequence copy = sequences_[parent];
    for (const Block block : copy.pages) ++records_[block].holders;
    sequences_[child] = copy;
  }

  void release(int sequence) override {
    const std::vector<Block> pages = sequences_[sequence].pages;
    sequences_.erase(sequence);
    for (auto at = pages.rbegin(); at != pages.rend(); ++at) {
      Record& record = records_[*at];
      if (--record.holders > 0) continue;
      (record.published ? cached_ : free_).push_back(*at);
    }
  }

  std::vector<Block> pages(int sequence) const override {
    const auto at = sequences_.find(sequence);
    return at == sequences_.end() ? std::vector<Block>{} : at->second.pages;
  }
  std::int64_t holders(Block block) const override { return records_[block].holders; }
  std::vector<Block> free_blocks() const override { return free_; }
  std::vector<Block> cached_blocks() const override { return cached_; }

 private:
  struct Record {
    std::int64_t holders = 0;
    bool published = false;
    Hash hash = 0;
  };
  struct Sequence {
    std::vector<Block> pages;
    std::int64_t tokens = 0;
  };

  static void remove(std::vector<Block>& list, Block block) { list.erase(std::find(list.begin(), list.end(), block)); }

  // A block with one holder, or kNone.
  Block take() {
    const bool evicts = free_.empty();
    std::vector<Block>& list = evicts ? cached_ : free_;
    if (list.empty()) return kNone;
    const Block block = list.front();
    list.erase(list.begin());
    if (evicts) {
      found_.erase(records_[block].hash);
      records_[block].published = false;
    }
    records_[block].holders = 1;
    return block;
  }

  std::int64_t page_size_;
  std::vector<Record> records_;  // [block]
  std::map<int, Sequence> sequences_;
  std::map<Hash, Block> found_;
  std::vector<Block> free_, cached_;  // the next to leave first
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(std::int64_t blocks, std::int64_t page_size) {
  return std::make_unique<Pool>(blocks, page_size);
}
