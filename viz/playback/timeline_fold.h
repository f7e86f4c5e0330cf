// Makes the timeline while the events of a run pass by, in order.
#pragma once

#include <cstdint>

#include "core/trace/events.h"
#include "viz/playback/facts.h"
#include "viz/playback/timeline.h"

namespace kvscope::viz {

class TimelineFold {
 public:
  explicit TimelineFold(const Facts& facts) : blocks_(facts.blocks), page_size_(facts.page_size) {}

  // A step that does not end keeps the numbers of the step before, and has computed no tokens.
  void add(const trace::Event& event);
  [[nodiscard]] Timeline take() { return std::move(timeline_); }

 private:
  void begin(const trace::StepBegan& began);
  void end(const trace::StepEnded& ended);
  void count(Mark mark);

  std::int64_t blocks_, page_size_;
  double hits_ = 0, queries_ = 0;  // [tokens] of the run so far
  Timeline timeline_;
};

}  // namespace kvscope::viz
