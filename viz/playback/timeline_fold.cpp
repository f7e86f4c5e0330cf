#include "viz/playback/timeline_fold.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace kvscope::viz {
namespace {

// Clamped to [0, 1], because the trace may hold inconsistent counts.
float share(double part, double whole) {
  return whole > 0 ? static_cast<float>(std::clamp(part / whole, 0.0, 1.0)) : 0.0F;
}

}  // namespace

void TimelineFold::add(const trace::Event& event) {
  if (const auto* began = std::get_if<trace::StepBegan>(&event)) return begin(*began);
  if (const auto* ended = std::get_if<trace::StepEnded>(&event)) return end(*ended);
  if (std::holds_alternative<trace::RequestPreempted>(event)) return count(Mark::preemption);
  if (std::holds_alternative<trace::BlockEvicted>(event)) return count(Mark::eviction);
  if (std::holds_alternative<trace::RequestRefused>(event)) return count(Mark::refusal);
  if (std::holds_alternative<trace::BlockCopied>(event)) return count(Mark::copy);
}

void TimelineFold::begin(const trace::StepBegan& began) {
  timeline_.step.push_back(began.step.value);
  timeline_.time_us.push_back(began.time_us);
  for (auto& values : timeline_.series) values.push_back(values.empty() ? 0.0F : values.back());
  timeline_.series[static_cast<std::size_t>(Series::prefill)].back() = 0;
  timeline_.series[static_cast<std::size_t>(Series::decode)].back() = 0;
  for (auto& counts : timeline_.marks) counts.push_back(0);
}

void TimelineFold::end(const trace::StepEnded& ended) {
  if (timeline_.step.empty()) return;
  timeline_.time_us.back() = ended.time_us;
  hits_ += static_cast<double>(ended.hit_tokens);
  queries_ += static_cast<double>(ended.query_tokens);
  const auto set = [&](Series series, float value) {
    timeline_.series[static_cast<std::size_t>(series)].back() = value;
  };
  const auto number = [](std::int64_t value) { return static_cast<float>(value); };
  const auto blocks = static_cast<double>(blocks_);
  const auto used = static_cast<double>(ended.used_blocks);
  const double slots = used * static_cast<double>(page_size_);
  set(Series::utilization, share(used, blocks));
  set(Series::fragmentation, share(slots - static_cast<double>(ended.slots_filled), slots));
  set(Series::hit_rate, share(hits_, queries_));
  set(Series::cached, share(static_cast<double>(ended.cached_blocks), blocks));
  set(Series::waiting, number(ended.waiting));
  set(Series::running, number(ended.running));
  set(Series::prefill, number(ended.prefill_tokens));
  set(Series::decode, number(ended.decode_tokens));
}

void TimelineFold::count(Mark mark) {
  std::vector<std::int32_t>& counts = timeline_.marks[static_cast<std::size_t>(mark)];
  if (!counts.empty()) ++counts.back();  // empty: before the first step
}

}  // namespace kvscope::viz
