// The cases of lab 04: calls of a block pool, and the state that the model's pool (core/paging/block_pool.h) has after
// each. Most cases are random walks with a few kinds of calls; those of an engine are recorded from the paging engine.
//
// Example: 2 blocks, page_size 2. After append(0), fork(0, 1), append(1), sequence 1 is in block 1 and 0 in block 0.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/labs/case_stream.h"
#include "core/base/random.h"

namespace kvscope::labs {

inline constexpr std::int64_t kNoBlock = -1;

struct PoolCall {
  enum class Kind : std::uint8_t { append = 1, publish, share, fork, release };  // the numbers of the lab's harness.cpp
  Kind kind = Kind::append;
  std::int64_t sequence = 0;
  std::int64_t other = 0;  // publish, share: the hash. fork: the child
};
[[nodiscard]] std::string text_of(const PoolCall& call);  // "share(3, hash 12)"

struct PoolState {
  std::int64_t result = 0;              // of the call: a block, or kNoBlock; 0 for calls that return nothing
  std::map<std::int64_t, Words> pages;  // [sequence] blocks of its pages
  Words holders;                        // [block]
  Words free, cached;                   // blocks, the next to be allocated or evicted first
  friend bool operator==(const PoolState&, const PoolState&) = default;
};

// What decides the next call beside the state that the student's class reports.
struct PoolContents {
  std::map<std::int64_t, std::int64_t> tokens;  // [sequence] that it has stored
  std::map<std::int64_t, std::int64_t> found;   // [hash] the block that share() finds
};

struct PoolScript {
  std::int64_t blocks = 0, page_size = 0;
  std::vector<PoolCall> calls;
  std::vector<PoolState> states;       // [calls + 1] before the first call, and after each
  std::vector<PoolContents> contents;  // [calls + 1] the same
};

// The calls that a random walk makes. Without `fails` it releases a sequence instead of an append that finds no
// block; without `evicts` instead of one that would evict.
struct PoolWalk {
  std::int64_t blocks = 4, page_size = 2, calls = 12;
  bool publishes = false, forks = false, fails = false, evicts = false;
};
[[nodiscard]] PoolScript random_walk(const PoolWalk& walk, const CounterRng& random);

// The calls of the paging engine that serves `requests` with common prefixes and samples in a small pool.
[[nodiscard]] PoolScript engine_script(std::int64_t requests, const CounterRng& random);

// The state in a result of the lab's harness.cpp for a pool of `blocks` blocks. `fault`: why the numbers are no state.
[[nodiscard]] PoolState parse_pool_state(const Words& words, std::int64_t blocks, std::string& fault);

}  // namespace kvscope::labs
