// The cache at any engine step. Engines are deterministic, so a step is reached by running up to it. The last engine is
// kept: one step forward costs one step, not the run so far.
#pragma once

#include <memory>
#include <vector>

#include "core/paging/cache_state.h"
#include "core/scenario/scenario.h"
#include "core/staging/focus.h"

namespace kvscope::apps {

class StepEngine {
 public:
  StepEngine(Scenario scenario, std::vector<Request> requests);
  ~StepEngine();

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] const std::vector<Request>& requests() const { return requests_; }

  // As kvscope::state_at(): the batch of that step as its kernels see it. IndexError if the run has fewer steps, or the
  // step is negative.
  [[nodiscard]] const CacheState& at(StepIdx step);
  // The same with the identity of every token, as kvscope::state_at().
  [[nodiscard]] FocusState focus_at(StepIdx step);

 private:
  struct Running;
  Scenario scenario_;
  std::vector<Request> requests_;
  std::unique_ptr<Running> running_;
};

}  // namespace kvscope::apps
