// Reconstructs the state of the pool from the events of a trace alone, token by token, with maps and without the
// engine. It records the text of each block, so it can check that shared blocks have equal contents and that the
// longest shareable prefix was found.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/scenario/scenario.h"
#include "core/trace/recorder.h"

namespace kvscope::testing_support {

using Token = std::tuple<int, std::uint64_t, std::int64_t>;  // kind, text, position in the text

// Every token of a request, spelled out one by one.
inline std::vector<Token> tokens_of(const Request& r, std::int64_t seq) {
  std::vector<Token> all;
  for (const ContentSpan& span : r.content) {
    for (std::int64_t i = 0; i < span.length; ++i) all.emplace_back(0, span.content, i);
  }
  for (std::int64_t i = 0; r.content.empty() && i < r.prompt_tokens; ++i) {
    all.emplace_back(1, static_cast<std::uint64_t>(seq - r.sample_of), i);
  }
  for (std::int64_t i = 0; i < r.generate_tokens; ++i) all.emplace_back(2, static_cast<std::uint64_t>(seq), i);
  return all;
}

class TraceFold {
 public:
  struct Block {
    std::set<std::pair<std::int64_t, std::int64_t>> holders;  // (sequence, page); empty: cached
    std::vector<Token> prefix;  // every token from the sequence's first to the block's last filled slot
    std::int64_t filled = 0;
    bool findable = false;
  };
  struct Life {
    bool arrived = false, refused = false, finished = false, running = false, prefilling = false;
    bool forked = false;  // started with its parent's pages since its last admission
    // The number of the admission; a sample that forked comes directly after its parent.
    std::pair<std::int64_t, std::int64_t> admitted = {0, 0};
    std::map<std::int64_t, std::int64_t> table;       // page -> block
    std::map<std::int64_t, std::int64_t> last_table;  // as it was when the request finished
    std::int64_t known = 0;                           // prompt and generated tokens
    std::int64_t stored = 0, furthest = 0;
  };

  TraceFold(const std::vector<Request>& requests, std::int64_t blocks, std::int64_t page_size, bool sharing,
            std::int64_t max_batch)
      : requests_(requests), blocks_(blocks), page_size_(page_size), max_batch_(max_batch), sharing_(sharing) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      texts_.push_back(tokens_of(requests[i], static_cast<std::int64_t>(i)));
    }
  }

  // Processes the events recorded since the last call.
  void read(const std::vector<trace::Event>& events) {
    for (; next_ < events.size(); ++next_) {
      std::visit([&](const auto& e) { apply(e); }, events[next_]);
    }
  }

  std::map<std::int64_t, Block> held;  // block -> what is in it; a block that is not here is free
  std::map<std::int64_t, Life> lives;  // sequence -> its life
  std::int64_t steps = 0, computed = 0, recomputed = 0, hits = 0, lost = 0, evictions = 0, preemptions = 0;
  std::int64_t copies = 0, forked_tokens = 0, left_over = 0;

 private:
  // Events of a staged tile: the engine records none.
  template <class E>
  void apply(const E&) {
    ADD_FAILURE() << E::kName << " is not an event of the engine";
  }

  void apply(const trace::StepBegan& e) {
    EXPECT_EQ(e.step.value, steps);
    EXPECT_GE(e.time_us, time_us_);
    EXPECT_FALSE(std::exchange(open_, true));
    in_step_ = trace::StepEnded{};
  }

  void apply(const trace::StepEnded& e) {
    EXPECT_TRUE(std::exchange(open_, false));
    EXPECT_EQ(e.step.value, steps++);
    time_us_ = e.time_us;
    std::int64_t used = 0, slots = 0, running = 0, waiting = 0;
    for (const auto& [number, block] : held) {
      if (block.holders.empty()) continue;
      ++used;
      slots += block.filled;
    }
    for (const auto& [seq, life] : lives) {
      running += life.running;
      waiting += life.arrived && !life.running && !life.refused && !life.finished;
    }
    const auto all = static_cast<std::int64_t>(held.size());
    EXPECT_EQ(e.used_blocks, used);
    EXPECT_EQ(e.cached_blocks, all - used);
    EXPECT_EQ(e.free_blocks, blocks_ - all);
    EXPECT_EQ(e.slots_filled, slots);
    EXPECT_EQ(e.running, running);
    EXPECT_EQ(e.waiting, waiting);
    EXPECT_EQ(e.prefill_tokens, in_step_.prefill_tokens);
    EXPECT_EQ(e.decode_tokens, in_step_.decode_tokens);
    EXPECT_EQ(e.hit_tokens, in_step_.hit_tokens);
    EXPECT_EQ(e.query_tokens, in_step_.query_tokens);
    EXPECT_EQ(e.preemptions, in_step_.preemptions);
    EXPECT_EQ(e.finished, in_step_.finished);
    // A sample forks when its parent's prompt is stored, in that step and no other, unless the batch is full.
    for (const std::int64_t parent : prompts_stored_) {
      for (std::int64_t s = parent + 1; s < std::ssize(requests_) && requests_[at(s)].sample_of == s - parent; ++s) {
        if (lives[s].admitted.second > 0) continue;
        EXPECT_EQ(running, max_batch_) << "sample " << s << " was left behind";
        ++left_over;
      }
    }
    prompts_stored_.clear();
  }

  void apply(const trace::RequestArrived& e) {
    Life& life = lives[e.seq.value];
    EXPECT_FALSE(std::exchange(life.arrived, true));
    life.known = request(e.seq).prompt_tokens;
    EXPECT_EQ(e.prompt_tokens, request(e.seq).prompt_tokens);
    EXPECT_EQ(e.generate_tokens, request(e.seq).generate_tokens);
  }

  void apply(const trace::RequestRefused& e) {
    lives[e.seq.value].refused = true;
    EXPECT_GT(e.tokens, e.limit);
  }

  void apply(const trace::RequestAdmitted& e) {
    Life& life = lives[e.seq.value];
    EXPECT_TRUE(life.arrived && !life.running && !life.finished && !life.refused && life.table.empty());
    EXPECT_EQ(in_step_.preemptions, 0) << "admitted in a step that had to preempt";
    life.running = life.prefilling = true;
    hits += e.hit_tokens;
    in_step_.hit_tokens += e.hit_tokens;
    // A hit never covers the whole prompt; a fork does.
    const std::int64_t parent = e.seq.value - request(e.seq).sample_of;
    life.forked = e.hit_tokens == request(e.seq).prompt_tokens && life.furthest == 0;
    if (life.forked) {
      EXPECT_GT(request(e.seq).sample_of, 0);
      EXPECT_TRUE(prompts_stored_.contains(parent)) << "forked in another step than its parent's last prompt token";
      life.admitted = {lives[parent].admitted.first, request(e.seq).sample_of};
      forked_tokens += e.hit_tokens;
      in_step_.query_tokens += e.hit_tokens;
      return;
    }
    EXPECT_TRUE(prompts_ever_stored_.contains(parent) || parent == e.seq.value) << "a sample before its parent";
    life.admitted = {++admissions_, 0};
    if (sharing_) in_step_.query_tokens += life.known;
    std::int64_t longest = 0;
    while (longest + page_size_ < life.known && findable(text_of(e.seq, longest + page_size_))) longest += page_size_;
    EXPECT_EQ(e.hit_tokens, longest) << "sequence " << e.seq.value;
  }

  void apply(const trace::RequestPreempted& e) {
    Life& life = lives[e.seq.value];
    EXPECT_TRUE(std::exchange(life.running, false));
    life.forked = false;
    EXPECT_EQ(e.tokens_lost, std::exchange(life.stored, 0));
    for (const auto& [seq, other] : lives) {
      EXPECT_TRUE(!other.running || other.admitted < life.admitted) << "not the most recently admitted";
    }
    EXPECT_EQ(blocks_, static_cast<std::int64_t>(held.size())) << "preempted while a block was free";
    lost += e.tokens_lost;
    ++preemptions;
    ++in_step_.preemptions;
  }

  void apply(const trace::RequestFinished& e) {
    Life& life = lives[e.seq.value];
    EXPECT_TRUE(std::exchange(life.running, false));
    const Request& r = request(e.seq);
    EXPECT_EQ(e.tokens, r.prompt_tokens + r.generate_tokens);
    EXPECT_EQ(life.stored, r.prompt_tokens + std::max<std::int64_t>(r.generate_tokens - 1, 0));
    life.finished = true;
    life.last_table = life.table;
    ++in_step_.finished;
  }

  void apply(const trace::BlockAllocated& e) {
    EXPECT_TRUE(e.block.value >= 0 && e.block.value < blocks_) << "the null page is never allocated";
    EXPECT_FALSE(held.contains(e.block.value));
    held[e.block.value].holders = {{e.seq.value, e.page.value}};
    EXPECT_TRUE(lives[e.seq.value].table.emplace(e.page.value, e.block.value).second);
  }

  void apply(const trace::BlockShared& e) {
    ASSERT_TRUE(held.contains(e.block.value));
    Block& block = held[e.block.value];
    Life& life = lives[e.seq.value];
    std::int64_t end = (e.page.value + 1) * page_size_;
    if (life.forked) {
      const Life& parent = lives[e.seq.value - request(e.seq).sample_of];
      EXPECT_EQ(parent.table.at(e.page.value), e.block.value) << "forked from another than its parent";
      EXPECT_EQ(parent.stored, request(e.seq).prompt_tokens);
      end = std::min(end, request(e.seq).prompt_tokens);
    } else {
      EXPECT_TRUE(block.findable);
    }
    EXPECT_EQ(life.stored, e.page.value * page_size_);
    EXPECT_EQ(block.prefix, text_of(e.seq, end)) << "shared a block with other contents";
    block.holders.insert({e.seq.value, e.page.value});
    EXPECT_EQ(e.ref_count, static_cast<std::int64_t>(block.holders.size()));
    EXPECT_TRUE(life.table.emplace(e.page.value, e.block.value).second);
    life.stored = end;
    life.furthest = std::max(life.furthest, life.stored);
    if (life.forked && life.stored == life.known) generate_one(e.seq);
  }

  void apply(const trace::BlockCopied& e) {
    ASSERT_TRUE(held.contains(e.from.value));
    EXPECT_FALSE(held.contains(e.to.value));
    Life& life = lives[e.seq.value];
    Block& from = held[e.from.value];
    EXPECT_EQ(life.table.at(e.page.value), e.from.value);
    EXPECT_EQ(from.holders.erase({e.seq.value, e.page.value}), 1u);
    EXPECT_FALSE(from.holders.empty()) << "copied a block with one holder";
    EXPECT_EQ(e.tokens, from.filled);
    EXPECT_EQ(e.page.value * page_size_ + e.tokens, life.stored);
    EXPECT_EQ(from.prefix, text_of(e.seq, life.stored));
    held[e.to.value] = Block{{{e.seq.value, e.page.value}}, from.prefix, e.tokens, false};
    life.table[e.page.value] = e.to.value;
    ++copies;
  }

  void apply(const trace::BlockReleased& e) {
    ASSERT_TRUE(held.contains(e.block.value));
    Block& block = held[e.block.value];
    EXPECT_EQ(block.holders.erase({e.seq.value, e.page.value}), 1u);
    EXPECT_EQ(e.ref_count, static_cast<std::int64_t>(block.holders.size()));
    EXPECT_EQ(e.cached, block.holders.empty() && block.findable);
    EXPECT_EQ(lives[e.seq.value].table.erase(e.page.value), 1u);
    if (block.holders.empty() && !e.cached) held.erase(e.block.value);
  }

  void apply(const trace::BlockEvicted& e) {
    ASSERT_TRUE(held.contains(e.block.value));
    EXPECT_TRUE(held[e.block.value].holders.empty());
    EXPECT_EQ(static_cast<std::int64_t>(held.size()), blocks_) << "evicted while a block was free";
    held.erase(e.block.value);
    ++evictions;
  }

  void apply(const trace::TokensWritten& e) {
    ASSERT_TRUE(held.contains(e.block.value));
    Block& block = held[e.block.value];
    Life& life = lives[e.seq.value];
    EXPECT_TRUE(life.running);
    EXPECT_EQ(e.first_token.value, life.stored);
    EXPECT_EQ(e.slot, e.first_token.value % page_size_);
    EXPECT_LE(e.slot + e.tokens, page_size_);
    EXPECT_EQ(life.table[e.first_token.value / page_size_], e.block.value);
    EXPECT_EQ(block.holders.size(), 1u) << "wrote into a shared block";
    EXPECT_EQ(std::exchange(block.filled, block.filled + e.tokens), e.slot);
    EXPECT_EQ(e.decode, !life.prefilling);
    computed += e.tokens;
    (e.decode ? in_step_.decode_tokens : in_step_.prefill_tokens) += e.tokens;
    recomputed += std::clamp<std::int64_t>(life.furthest - life.stored, 0, e.tokens);
    life.stored += e.tokens;
    life.furthest = std::max(life.furthest, life.stored);
    EXPECT_LE(life.stored, life.known);
    block.prefix = text_of(e.seq, life.stored);
    if (block.filled == page_size_ && sharing_ && !findable(block.prefix)) block.findable = true;
    if (life.stored == request(e.seq).prompt_tokens && prompts_ever_stored_.insert(e.seq.value).second) {
      prompts_stored_.insert(e.seq.value);
    }
    if (life.stored == life.known) generate_one(e.seq);
  }

  void generate_one(SeqIdx seq) {
    Life& life = lives[seq.value];
    life.prefilling = false;
    if (life.known < request(seq).prompt_tokens + request(seq).generate_tokens) ++life.known;
  }

  static std::size_t at(std::int64_t seq) { return static_cast<std::size_t>(seq); }
  const Request& request(SeqIdx seq) const { return requests_[at(seq.value)]; }

  std::vector<Token> text_of(SeqIdx seq, std::int64_t count) const {
    const auto& all = texts_[static_cast<std::size_t>(seq.value)];
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  bool findable(const std::vector<Token>& prefix) const {
    return std::any_of(held.begin(), held.end(),
                       [&](const auto& entry) { return entry.second.findable && entry.second.prefix == prefix; });
  }

  const std::vector<Request>& requests_;
  std::vector<std::vector<Token>> texts_;  // [sequence]
  std::int64_t blocks_, page_size_, max_batch_;
  bool sharing_;
  std::set<std::int64_t> prompts_stored_, prompts_ever_stored_;  // sequences, in this step and in any
  std::size_t next_ = 0;
  bool open_ = false;
  std::int64_t time_us_ = 0, admissions_ = 0;
  trace::StepEnded in_step_;
};

}  // namespace kvscope::testing_support
