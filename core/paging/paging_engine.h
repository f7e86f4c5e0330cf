// The paging engine: continuous batching over a block pool, one step at a time. Requests arrive, are admitted when
// their first tokens fit, prefill in chunks, decode one token a step, are preempted when the pool runs dry, and finish.
//
// One step, in this order, within max_step_tokens:
//   1 arrive    every request whose time has come joins the queue; one that can never fit is refused. When nothing runs
//               or waits, the clock first jumps to the next arrival.
//   2 decode    one token for each running request past its prompt, in order of admission.
//   3 prefill   the next chunk of the one running request that may have prompt left, the most recently admitted: as
//               many tokens as the step has left and the pool can hold, perhaps none.
//   4 admit     from the front of the queue only, and only if this step preempted nobody. The longest cached prefix
//               counts as stored; it never covers the whole prompt, because logits need one computed token. The first
//               chunk must fit whole, and leave the watermark available, so that what is admitted is not preempted at
//               once: one block for each running request, but no more than one percent of the pool, rounded up. A
//               request found not to fit is looked at again when the blocks it lacked are available.
//   5 compute   tokens are stored; a full page can be found from the next step on; a request whose known tokens are all
//               stored generates one more; its samples fork; one that has generated all of them gives its pages back.
//
// Samples (5): further answers to one prompt wait outside the queue until their parent has all of it stored for the
// first time. Then each holds every page of the parent, the partly filled last one included, generates a first token
// from the same logits, and runs behind the parent, before whoever was admitted after it. Its first decode writes into
// the shared page and so gets a copy (copy-on-write); the last holder writes in place. Samples for which the batch has
// no place go to the front of the queue, and are ordinary requests from then on: full pages of the prompt may still be
// found, the rest is computed again. So are samples that were preempted.
//
// Preemption (2): when a decode finds no block available, the most recently admitted request gives all its pages back
// and goes to the front of the queue; what it has generated so far is prompt when it returns. A prefill preempts
// nobody: it is the most recent itself, and waits with what it has, which the others can still take.
//
// A step lasts base_us + per_token_us * tokens computed + per_context_us * tokens attended, rounded to the nearest
// microsecond, half up. A row attends to its cached and new tokens once, as a kernel reads K and V once.
//
// Example of the watermark: 3 running requests leave 1 of 100 blocks, 2 of 101 and 3 of 201. A continuous cache needs
// none: nothing grows out of its block.
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
#include "core/paging/run_report.h"
#include "core/scenario/scenario.h"
#include "core/trace/recorder.h"

namespace kvscope {

class PagingEngine {
 public:
  // Copies nothing of `requests` and `recorder`: the caller keeps both alive. Samples stand behind their parent, as
  // expand_samples() leaves them. Throws GeometryError, with every fault, when the scenario's sizes do not fit together
  // (a scenario that passed check_scenario() never does).
  PagingEngine(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& recorder);
  PagingEngine(const PagingEngine&) = delete;
  PagingEngine& operator=(const PagingEngine&) = delete;
  ~PagingEngine();

  // Runs one engine step; false when every request has finished or was refused, and nothing was done. A step without
  // tokens exists in one case: all that is left arrives only to be refused.
  bool step();

  // The batch of the step last run, as its kernels saw it: this step's tokens are in new_tokens, and
  // their pages in the table.
  [[nodiscard]] CacheState state() const;

  // Which content stands where, for filling a pool with values: the token ids of row `batch_row` of
  // state(), one for each position up to cache_length + new_tokens. Equal ids mean equal tokens in equal
  // contexts, so shared blocks agree.
  [[nodiscard]] std::vector<std::uint64_t> token_ids(std::int64_t batch_row) const;

  [[nodiscard]] const RunReport& report() const;

  // Every invariant of the pool, recounted from scratch; empty when all hold. Costs time in proportion to the pool.
  [[nodiscard]] std::vector<std::string> broken_invariants() const;

  // The pool as it is between steps, for tests and for drawing a state without a trace.
  [[nodiscard]] PoolSnapshot pool() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvscope
