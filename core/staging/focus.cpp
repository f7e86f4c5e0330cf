#include "core/staging/focus.h"

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/paging/paging_engine.h"

namespace kvscope {
namespace {

// Records the last step that wrote a token of the sequence and after which tokens up to `token_` were stored.
class SequenceWatcher final : public trace::Recorder {
 public:
  SequenceWatcher(SeqIdx seq, TokIdx token) : Recorder(trace::Detail::full), seq_(seq), token_(token) {}
  [[nodiscard]] std::optional<StepIdx> last_step() const { return last_; }

 private:
  void write(const trace::Event& event) override {
    if (const auto* began = std::get_if<trace::StepBegan>(&event)) {
      now_ = began->step;
    } else if (const auto* written = std::get_if<trace::TokensWritten>(&event)) {
      if (written->seq == seq_ && written->first_token + written->tokens > token_) last_ = now_;
    }
  }

  SeqIdx seq_;
  TokIdx token_;
  StepIdx now_;
  std::optional<StepIdx> last_;
};

}  // namespace

StepIdx focus_step(const Scenario& scenario, const RunReport& report) {
  if (scenario.focus.step >= 0) {
    if (scenario.focus.step < report.steps) return StepIdx{scenario.focus.step};
    throw InputError(
        "scenario '" + scenario.name + "'", "$.focus.step",
        fmt::format("{} is outside [0, {}): the run has {} steps", scenario.focus.step, report.steps, report.steps));
  }
  std::size_t busiest = 0;
  for (std::size_t step = 1; step < report.curve.size(); ++step) {
    if (report.curve[step].slots_filled > report.curve[busiest].slots_filled) busiest = step;
  }
  if (report.curve.empty()) {
    throw InputError("scenario '" + scenario.name + "'", "$.requests",
                     "no request ran, so the run has no step: every request was rejected or none was given");
  }
  return StepIdx{static_cast<std::int64_t>(busiest)};
}

std::optional<StepIdx> last_step_of(const Scenario& scenario, std::span<const Request> requests, SeqIdx seq,
                                    TokIdx token) {
  SequenceWatcher watcher(seq, token);
  PagingEngine engine(scenario, requests, watcher);
  while (engine.step()) {
  }
  return watcher.last_step();
}

FocusState state_at(const Scenario& scenario, std::span<const Request> requests, StepIdx step, RunLimits limits) {
  trace::Recorder off;
  PagingEngine engine(scenario, requests, off, limits);
  for (StepIdx now{0}; now <= step; ++now) {
    if (!engine.step()) throw_index_error("step", step.value, now.value, "the run is over by then");
  }
  FocusState focus{engine.state(), {}};
  for (std::size_t row = 0; row < focus.cache.batch.size(); ++row) {
    focus.token_ids.push_back(engine.token_ids(static_cast<std::int64_t>(row)));
  }
  return focus;
}

}  // namespace kvscope
