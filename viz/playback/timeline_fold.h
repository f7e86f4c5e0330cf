// Computes the timeline from the events of a run, added in order.
#pragma once

#include <cstdint>

#include "core/trace/events.h"
#include "viz/playback/facts.h"
#include "viz/playback/timeline.h"

namespace kvscope::viz {

class TimelineFold {
 public:
  explicit TimelineFold(const Facts& facts) : blocks_(facts.blocks), page_size_(facts.page_size) {}

  // A step without a step_ended keeps the values of the previous step, with 0 prefill and decode tokens.
  void add(const trace::Event& event);
  [[nodiscard]] Timeline take() { return std::move(timeline_); }

 private:
  void begin(const trace::StepBegan& began);
  void end(const trace::StepEnded& ended);
  void count(Mark mark);

  std::int64_t blocks_, page_size_;
  double hits_ = 0, queries_ = 0;  // [tokens] since the start of the run
  Timeline timeline_;
};

}  // namespace kvscope::viz
