// A run in a few numbers, to compare it with another run of nearly the same scenario.
//
// Example: apps/scenarios/preemption.json has 47 steps, 238 ms and 5 preemptions; 64.5 % of its blocks are used on
// average.
#pragma once

#include <cstdint>

#include "viz/playback/timeline.h"

namespace kvscope::viz {

struct RunNumbers {
  std::int64_t steps = 0;
  std::int64_t time_us = 0;       // at the end of the last step
  double tokens_per_second = 0;   // generated; 0 for a run without time
  double mean_utilization = 0;    // of the steps [0, 1]
  double most_utilization = 0;    // [0, 1]
  double mean_fragmentation = 0;  // of the steps [0, 1]
  double hit_rate = 0;            // at the end [0, 1]
  std::int64_t preemptions = 0, evictions = 0, rejected = 0, copies = 0;
  friend bool operator==(const RunNumbers&, const RunNumbers&) = default;
};

[[nodiscard]] RunNumbers run_numbers(const Timeline& timeline);

}  // namespace kvscope::viz
