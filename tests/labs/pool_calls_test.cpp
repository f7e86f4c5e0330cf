// The cases of lab 04: calls that are valid, states that obey the pool's rules, and every situation that a test is about.
#include "apps/labs/pool_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/whole_grid.h"

namespace kvscope::labs::pool_calls_test {
namespace {

using Kind = PoolCall::Kind;

CounterRng random_of(std::int64_t seed) {
  return {static_cast<std::uint64_t>(seed), 7};
}

std::int64_t count(const PoolScript& script, Kind kind) {
  return std::ranges::count(script.calls, kind, &PoolCall::kind);
}

// An allocator written from the rules of docs/labs/04_block_pool/starter/allocator.h alone, with nothing but lists: the
// model's pool must agree with it after every call.
class PlainPool {
 public:
  PlainPool(std::int64_t blocks, std::int64_t page_size) : page_size_(page_size) {
    state_.holders.assign(static_cast<std::size_t>(blocks), 0);
    for (std::int64_t block = 0; block < blocks; ++block) state_.free.push_back(block);
  }

  const PoolState& call(const PoolCall& made) {
    state_.result = 0;
    Words& own = state_.pages[made.sequence];
    std::int64_t& tokens = tokens_[made.sequence];
    const auto found = std::ranges::find_if(hashes_, [&](const auto& entry) { return entry.second == made.other; });
    if (made.kind == Kind::append) {
      const bool full = tokens % page_size_ == 0;
      if (full || state_.holders[static_cast<std::size_t>(own.back())] > 1) {
        const std::int64_t block = take();
        state_.result = block;
        if (block == kNoBlock) return state_;
        if (!full) --state_.holders[static_cast<std::size_t>(own.back())];
        if (!full) own.pop_back();
        own.push_back(block);
      }
      state_.result = own.back();
      ++tokens;
    } else if (made.kind == Kind::publish) {
      if (found == hashes_.end()) hashes_[own.back()] = made.other;
    } else if (made.kind == Kind::share) {
      state_.result = found == hashes_.end() ? kNoBlock : found->first;
      if (found == hashes_.end()) return state_;
      std::erase(state_.cached, found->first);
      ++state_.holders[static_cast<std::size_t>(found->first)];
      own.push_back(found->first);
      tokens += page_size_;
    } else if (made.kind == Kind::fork) {
      for (const std::int64_t block : own) ++state_.holders[static_cast<std::size_t>(block)];
      const Words copy = own;
      const std::int64_t stored = tokens;
      state_.pages[made.other] = copy;
      tokens_[made.other] = stored;
    } else {
      for (auto block = own.rbegin(); block != own.rend(); ++block) {
        if (--state_.holders[static_cast<std::size_t>(*block)] > 0) continue;
        (hashes_.contains(*block) ? state_.cached : state_.free).push_back(*block);
      }
      state_.pages.erase(made.sequence);
      tokens_.erase(made.sequence);
    }
    return state_;
  }

 private:
  std::int64_t take() {
    Words& list = state_.free.empty() ? state_.cached : state_.free;
    if (list.empty()) return kNoBlock;
    const std::int64_t block = list.front();
    list.erase(list.begin());
    hashes_.erase(block);
    state_.holders[static_cast<std::size_t>(block)] = 1;
    return block;
  }

  std::int64_t page_size_;
  PoolState state_;
  std::map<std::int64_t, std::int64_t> tokens_;  // [sequence]
  std::map<std::int64_t, std::int64_t> hashes_;  // [block] of published pages
};

void expect_the_plain_pool_agrees(const PoolScript& script) {
  ASSERT_EQ(script.states.size(), script.calls.size() + 1);
  PlainPool pool(script.blocks, script.page_size);
  for (std::size_t i = 0; i < script.calls.size(); ++i) {
    ASSERT_EQ(pool.call(script.calls[i]), script.states[i + 1])
        << "event " << i + 1 << ": " << text_of(script.calls[i]);
  }
}

TEST(RandomWalk, HasTheStatesOfAPlainPool) {
  for (std::int64_t seed = 0; seed < test::size_for_sanitizers(10, 60); ++seed) {
    for (const bool forks : {false, true}) {
      const PoolWalk walk{8, 2 + seed % 3, 120, true, forks, true, true};
      expect_the_plain_pool_agrees(random_walk(walk, random_of(seed)));
    }
  }
}

TEST(EngineScript, HasTheStatesOfAPlainPool) {
  for (std::int64_t seed = 0; seed < test::size_for_sanitizers(4, 20); ++seed) {
    expect_the_plain_pool_agrees(engine_script(12, random_of(seed)));
  }
}

// Without these calls a test of the lab could pass with the function unwritten.
TEST(EngineScript, SharesForksCopiesAndEvicts) {
  std::int64_t found = 0, forks = 0, copies = 0, evictions = 0;
  for (std::int64_t seed = 0; seed < 5; ++seed) {
    const PoolScript script = engine_script(12, random_of(seed));
    forks += count(script, Kind::fork);
    for (std::size_t i = 0; i < script.calls.size(); ++i) {
      const PoolState &before = script.states[i], &after = script.states[i + 1];
      if (script.calls[i].kind == Kind::share && after.result != kNoBlock) ++found;
      if (script.calls[i].kind != Kind::append) continue;
      const auto own = before.pages.find(script.calls[i].sequence);
      const auto pages = own == before.pages.end() ? 0U : own->second.size();
      if (pages > 0 && after.pages.at(script.calls[i].sequence).size() == pages && after.result != own->second.back())
        ++copies;
      if (std::ranges::find(before.cached, after.result) != before.cached.end()) ++evictions;
    }
  }
  EXPECT_GT(found, 0);
  EXPECT_GT(forks, 0);
  EXPECT_GT(copies, 0);
  EXPECT_GT(evictions, 0);
}

TEST(RandomWalk, MakesOnlyTheCallsThatItIsAskedFor) {
  for (std::int64_t seed = 0; seed < 20; ++seed) {
    const PoolScript plain = random_walk({8, 2, 80, false, false, false, false}, random_of(seed));
    EXPECT_EQ(count(plain, Kind::publish) + count(plain, Kind::share) + count(plain, Kind::fork), 0);
    for (const PoolState& state : plain.states) EXPECT_NE(state.result, kNoBlock);
    const PoolScript kept = random_walk({8, 2, 80, true, false, false, false}, random_of(seed));
    for (std::size_t i = 0; i < kept.calls.size(); ++i) {
      if (kept.calls[i].kind != Kind::append) continue;
      EXPECT_EQ(std::ranges::count(kept.states[i].cached, kept.states[i + 1].result), 0)
          << "a cached block was evicted";
    }
  }
}

// A hash stands for a page and all pages before it, so it always occurs at the same place of a sequence.
TEST(RandomWalk, UsesAHashForOnePageIndexOnly) {
  std::map<std::int64_t, std::size_t> pages;  // [hash] pages of the sequence up to the published one
  for (std::int64_t seed = 0; seed < 20; ++seed) {
    const PoolScript script = random_walk({12, 2, 120, true, true, true, true}, random_of(seed));
    for (std::size_t i = 0; i < script.calls.size(); ++i) {
      const PoolCall& call = script.calls[i];
      if (call.kind != Kind::publish) continue;
      const std::size_t count = script.states[i].pages.at(call.sequence).size();
      EXPECT_EQ(pages.try_emplace(call.other, count).first->second, count) << text_of(call);
    }
  }
  EXPECT_GT(pages.size(), 10U);
}

// Answers to the public cases must not pass a grading: its calls differ.
TEST(RandomWalk, DependsOnTheSeed) {
  std::set<std::string> seen;
  for (std::int64_t seed = 0; seed < 20; ++seed) {
    std::string text;
    for (const PoolCall& call : random_walk({5, 2, 24, false, false, true, false}, random_of(seed)).calls)
      text += text_of(call);
    EXPECT_TRUE(seen.insert(text).second);
  }
}

TEST(ParsePoolState, RejectsNumbersThatAreNoState) {
  const auto fault_of = [](const Words& words) {
    std::string fault;
    (void)parse_pool_state(words, 2, fault);
    return fault;
  };
  EXPECT_EQ(fault_of({0, 1, 5, 1, 0, 1, 0, 1, 1, 0}), "");  // sequence 5 holds block 0; block 1 is free
  for (const Words& words : {Words{}, Words{0, 1, 5, 1, 0, 1, 0, 1, 1}, Words{0, 1, 5, 1, 0, 1, 0, 1, 1, 0, 0},
                             Words{0, 1, 5, 9, 0, 1, 0, 1, 1, 0}, Words{0, 1, 5, -1, 0, 1, 0, 1, 1, 0},
                             Words{0, std::int64_t{1} << 62, 5, 1, 0}}) {
    EXPECT_NE(fault_of(words), "");
  }
}

}  // namespace
}  // namespace kvscope::labs::pool_calls_test
