// Lab 05: the function of policy.cpp that you write. It decides in each step of an engine which requests are preempted
// and which are admitted.
#pragma once

#include <cstdint>
#include <vector>

struct Running {
  int request;             // requests are numbered in the order of their arrival
  std::int64_t tokens;     // stored
  std::int64_t blocks;     // that it holds
  std::int64_t generated;  // tokens so far
  bool needs_block;        // its last page is full, so its next token needs a new block
};

struct Waiting {
  int request;
  std::int64_t tokens;     // that it stores when it is admitted: the prompt, and what it generated before a preemption
  std::int64_t blocks;     // that these tokens need
  std::int64_t generated;  // tokens before it was preempted; 0 for a request that never ran
};

// One step, before the decision.
struct Step {
  std::int64_t step;
  std::int64_t blocks;           // of the pool
  std::int64_t free_blocks;      // held by no request
  std::int64_t page_size;        // [tokens] of a block
  std::int64_t max_batch;        // requests that may run at once
  std::vector<Running> running;  // in the order of admission
  std::vector<Waiting> waiting;  // in the order of arrival; a preempted request keeps its place
};

struct Decision {
  std::vector<int> preempt;  // running requests, in the order in which they are preempted
  std::vector<int> admit;    // waiting requests, in the order in which they are admitted
};

// In a step, in this order:
//   1  the requests that arrive join `waiting`
//   2  decide() is called
//   3  each preempted request releases its blocks and is waiting again; it loses its stored tokens
//   4  each other running request stores one token, in a new block if it needs one
//   5  each admitted request stores its tokens in new blocks
//   6  each running request generates a token. One that has all its tokens finishes and releases its blocks
//
// A step preempts or admits, never both. Every request alone fits into the pool.
Decision decide(const Step& step);
