// The paging engine: continuous batching over a block pool, one step at a time. Requests arrive, are admitted when their
// first tokens fit, prefill in chunks, decode one token a step, are preempted when the pool runs dry, and finish.
#pragma once

#include <memory>
#include <span>

#include "core/cache/cache_state.h"
#include "core/cache/run_report.h"
#include "core/scenario/scenario.h"
#include "core/trace/recorder.h"

namespace kvscope {

class PagingEngine {
 public:
  // Copies nothing of `requests` and `recorder`: the caller keeps both alive. Throws GeometryError when the scenario's
  // sizes do not fit together (a scenario that passed check_scenario() never does).
  PagingEngine(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& recorder);
  ~PagingEngine();

  // Runs one engine step; false when every request has finished or was refused, and nothing was done.
  bool step();

  // The batch of the step last run, as its kernels saw it: this step's tokens are in new_tokens, and their pages in the table.
  [[nodiscard]] CacheState state() const;

  // Which content stands where, for filling a pool with values: the token ids of row `batch_row` of state(), one for each
  // position up to cache_length + new_tokens. Equal ids mean equal tokens in equal contexts, so shared blocks agree.
  [[nodiscard]] std::vector<std::uint64_t> token_ids(std::int64_t batch_row) const;

  [[nodiscard]] const RunReport& report() const;

  // Every invariant of the pool, recounted from scratch; empty when all hold. Costs time in proportion to the pool.
  [[nodiscard]] std::vector<std::string> broken_invariants() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvscope
