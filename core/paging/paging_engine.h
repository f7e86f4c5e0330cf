// The paging engine: continuous batching over a block pool, one step at a time. Requests arrive, are admitted when
// their first tokens fit, prefill in chunks, decode one token per step, are preempted when the pool has no free block,
// and finish.
//
// One step, in this order, within max_step_tokens:
//   1 arrive    every request whose arrival time has passed joins the queue; one that can never fit is rejected. When
//               no request runs or waits, the clock first jumps to the next arrival.
//   2 decode    one token for each running request past its prompt, in order of admission.
//   3 prefill   the next chunk of the most recently admitted request, the only running one that may have prompt left:
//               as many tokens as the step has left and the pool can hold, possibly none.
//   4 admit     from the front of the queue only, and only if this step preempted no request. The longest cached prefix
//               counts as stored; it never covers the whole prompt, because logits need one computed token. The first
//               chunk must fit whole and leave the watermark available, so that the admitted request is not preempted
//               immediately. The watermark is one block for each running request, but at most one percent of the pool,
//               rounded up. A request that does not fit is tried again when the blocks it lacked are available.
//   5 compute   tokens are stored; a full page can be found from the next step on. A request whose known tokens are all
//               stored generates one more token, and its samples fork. A request that has generated all its tokens
//               releases its pages.
//
// Samples (5) are further answers to one prompt. They wait outside the queue until their parent has the whole prompt
// stored for the first time. Then each sample holds every page of the parent, the partly filled last one included,
// generates a first token from the same logits, and runs directly after the parent in the order of admission. Its first
// decode writes into the shared page and so gets a copy (copy-on-write); the last holder writes in place. Samples that
// do not fit into the batch go to the front of the queue and are ordinary requests from then on: full pages of the
// prompt may still be found, the rest is computed again. The same holds for preempted samples.
//
// Preemption (2): when a decode finds no available block, the most recently admitted request releases all its pages and
// goes to the front of the queue. The tokens it has generated so far are part of its prompt when it returns. A prefill
// preempts no request: it is the most recent one itself, and waits with the pages it has, which preemption can still
// take.
//
// A step lasts base_us + per_token_us * tokens computed + per_context_us * tokens attended, rounded to the nearest
// microsecond, half up. A row attends to its cached and new tokens once, as a kernel reads K and V once.
//
// Example of the watermark: 3 running requests leave 1 of 100 blocks, 2 of 101 and 3 of 201. A continuous cache needs
// no watermark, because no request grows out of its block.
//
// The last generated token is never stored (nothing is computed from it): a request of p prompt and g generated tokens
// takes p + g - 1 slots. A continuous cache is a pool of pages of S tokens, one for each sequence, with nothing shared.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/paging/block_pool.h"
#include "core/paging/cache_state.h"
#include "core/paging/run_limits.h"
#include "core/paging/run_report.h"
#include "core/scenario/scenario.h"
#include "core/trace/recorder.h"

namespace kvscope {

class PagingEngine {
 public:
  // Keeps references to `requests` and `recorder`, which must outlive the engine. Samples follow their parent, as
  // expand_samples() orders them. Throws GeometryError, with every fault, when the scenario's sizes do not fit together
  // (never for a scenario that passed check_scenario()). OverflowError when a request that fits generates more tokens
  // than limits.steps, because a step gives a sequence one token.
  PagingEngine(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& recorder,
               RunLimits limits = {});
  PagingEngine(const PagingEngine&) = delete;
  PagingEngine& operator=(const PagingEngine&) = delete;
  ~PagingEngine();

  // Runs one engine step. Returns false, without doing anything, when every request has finished or was rejected. Only
  // one kind of step has no tokens: when all remaining requests arrive only to be rejected. OverflowError past
  // limits.steps, and when limits.blocks have held a token.
  bool step();

  // The batch of the last step, as its kernels saw it: this step's tokens are in new_tokens, and
  // their pages in the table.
  [[nodiscard]] CacheState state() const;

  // The content of each slot, for filling a pool with values: the token ids of row `batch_row` of
  // state(), one for each position up to cache_length + new_tokens. Equal ids mean equal tokens in equal
  // contexts, so shared blocks get the same values.
  [[nodiscard]] std::vector<std::uint64_t> token_ids(std::int64_t batch_row) const;

  [[nodiscard]] const RunReport& report() const;

  // The broken invariants of the pool, recounted from scratch. Takes time in proportion to the pool.
  [[nodiscard]] std::vector<std::string> broken_invariants() const;

  // The state of the pool between steps, for tests and for drawing a state without a trace.
  [[nodiscard]] PoolSnapshot pool() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvscope
