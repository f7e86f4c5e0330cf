#include "apps/kvscope-viewer/step_engine.h"

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/paging/paging_engine.h"

namespace kvscope::apps {

struct StepEngine::Running {
  Running(const Scenario& scenario, const std::vector<Request>& requests) : engine(scenario, requests, off) {}
  trace::Recorder off;
  PagingEngine engine;
  CacheState state;
  StepIdx step{-1};  // the step of `state`
};

StepEngine::StepEngine(Scenario scenario, std::vector<Request> requests)
    : scenario_(std::move(scenario)), requests_(std::move(requests)) {}
StepEngine::~StepEngine() = default;

const CacheState& StepEngine::at(StepIdx step) {
  if (step.value < 0) {
    throw IndexError(
        fmt::format("step {} is before the first: nothing is stored yet, go to step 0 or later", step.value));
  }
  if (!running_ || step < running_->step) running_ = std::make_unique<Running>(scenario_, requests_);
  if (running_->step == step) return running_->state;
  // Kept only if it reaches the step: an engine at the end of its run cannot continue.
  std::unique_ptr<Running> running = std::move(running_);
  for (; running->step < step; ++running->step) {
    if (!running->engine.step())
      throw_index_error("step", step.value, running->step.value + 1, "the run is over by then");
  }
  running->state = running->engine.state();
  running_ = std::move(running);
  return running_->state;
}

FocusState StepEngine::focus_at(StepIdx step) {
  FocusState focus{at(step), {}};
  for (std::size_t row = 0; row < focus.cache.batch.size(); ++row) {
    focus.token_ids.push_back(running_->engine.token_ids(static_cast<std::int64_t>(row)));
  }
  return focus;
}

}  // namespace kvscope::apps
