#include "viz/playback/run_numbers.h"

#include <algorithm>
#include <numeric>

namespace kvscope::viz {
namespace {

double sum(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::int64_t count(const std::vector<std::int32_t>& marks) {
  return std::accumulate(marks.begin(), marks.end(), std::int64_t{0});
}

}  // namespace

RunNumbers run_numbers(const Timeline& timeline) {
  RunNumbers numbers;
  numbers.steps = timeline.steps();
  if (numbers.steps == 0) return numbers;
  const auto steps = static_cast<double>(numbers.steps);
  const std::vector<float>& utilization = timeline[Series::utilization];
  numbers.time_us = timeline.time_us.back();
  if (numbers.time_us > 0) {
    numbers.tokens_per_second = sum(timeline[Series::decode]) * 1e6 / static_cast<double>(numbers.time_us);
  }
  numbers.mean_utilization = sum(utilization) / steps;
  numbers.most_utilization = *std::ranges::max_element(utilization);
  numbers.mean_fragmentation = sum(timeline[Series::fragmentation]) / steps;
  numbers.hit_rate = timeline[Series::hit_rate].back();
  numbers.preemptions = count(timeline[Mark::preemption]);
  numbers.evictions = count(timeline[Mark::eviction]);
  numbers.rejected = count(timeline[Mark::refusal]);
  numbers.copies = count(timeline[Mark::copy]);
  return numbers;
}

}  // namespace kvscope::viz
