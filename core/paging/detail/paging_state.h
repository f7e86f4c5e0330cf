// The state of a paging engine between two steps: the waiting requests, the running requests and their pages, the
// clock, and the last step. paging_engine_step.cpp performs the steps, paging_engine.cpp returns the state to callers;
// no other file includes this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/paging/block_pool.h"
#include "core/paging/page_hash.h"
#include "core/paging/paging_engine.h"
#include "core/paging/run_report.h"
#include "core/scenario/scenario.h"
#include "core/trace/recorder.h"

namespace kvscope {

struct PagingEngine::State {
  // The state of one request. Its page list exists only while it runs.
  struct Sequence {
    Sequence(const Request& r, SeqIdx seq)
        : request(&r), pages{seq, {}, 0}, text(r, seq, SeqIdx(seq.value - r.sample_of)), unforked(r.sample_of > 0) {}

    const Request* request;
    SequencePages pages;
    SequenceText text;
    std::int64_t generated = 0;
    std::int64_t most_stored = 0;  // [tokens] the maximum so far: computing below it is recomputation
    std::int64_t scheduled = 0;    // [tokens] of the step being built
    bool prefilling = true;
    bool unforked = false;  // a sample that waits outside the queue for its parent's prompt

    [[nodiscard]] std::int64_t known() const { return request->prompt_tokens + generated; }
    [[nodiscard]] std::int64_t remaining() const { return known() - pages.tokens; }
    [[nodiscard]] bool ended() const { return !prefilling && generated == request->generate_tokens; }
  };

  State(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& rec, RunLimits run_limits);

  bool step();
  [[nodiscard]] bool can_ever_fit(const Request& r) const;
  [[nodiscard]] const Request& arrival(std::size_t n) const {
    return *sequences[static_cast<std::size_t>(order[n])].request;
  }

  // The five parts of a step.
  void arrive();
  void decode();
  void prefill();
  void admit();
  void compute();

  void jump_to_next_arrival();
  bool admit_front();
  std::int64_t find_prefix(Sequence& seq, std::int64_t& held_by_nobody);
  bool make_room_by_preempting(std::uint32_t keep);
  void preempt_most_recent();
  struct Parent {  // a request whose prompt became complete in this step and whose samples wait for that
    std::uint32_t seq;
    std::size_t behind;  // position in `running` where the samples are inserted
  };
  void fork_samples(std::span<const Parent> parents);
  void fork(const Sequence& parent, Sequence& sample);
  void generate_one(Sequence& seq);
  void finish(Sequence& seq);
  void end_step();

  RunLimits limits;
  SchedulerConfig scheduler;
  bool paged;
  bool sharing;
  std::int64_t longest;    // [tokens] a sequence may store
  std::int64_t most_left;  // maximum watermark [blocks]: one percent of the pool, rounded up
  trace::Recorder& recorder;
  BlockPool pool;

  std::vector<Sequence> sequences;  // [request]
  std::vector<std::int64_t> order;  // requests by arrival, the first of equals first
  std::size_t arrived = 0;          // order[0 .. arrived) have arrived
  std::deque<std::uint32_t> waiting;
  std::int64_t unforked = 0;           // samples that have arrived and wait for their parents
  std::vector<std::uint32_t> running;  // in order of admission
  std::int64_t clock_us = 0;

  std::int64_t budget = 0;       // [tokens] the step has left
  std::int64_t front_lacks = 0;  // blocks that the queue's front needed when it last did not fit; 0: not tried yet
  StepFigures figures;           // of the step being built

  // The last step, as its kernels saw it.
  struct BatchRow {
    std::uint32_t seq;
    std::int64_t cache_length, new_tokens;  // [tokens]
  };
  std::vector<BatchRow> batch;
  std::vector<std::uint32_t> done;  // finished in it: their page lists are kept until the next step begins
  StepIdx last_step;

  std::int64_t batch_context = 0;  // [tokens] attended in the step
  std::int64_t block_tokens;
  RunReport report;
};

}  // namespace kvscope
