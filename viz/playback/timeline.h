// The curves of a run: for each step, one value per series (computed from step_ended) and the number of marked events.
// Steps are counted from 0: index k of a series is row k + 1 of the event source.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/trace/events.h"

namespace kvscope::viz {

// What a curve shows. The names are those of the legend and of docs/.
enum class Series : std::uint8_t {
  utilization,    // used blocks / blocks                        [0, 1]
  fragmentation,  // empty slots of used blocks / their slots    [0, 1]
  hit_rate,       // hit_tokens / query_tokens of the run so far [0, 1]
  cached,         // cached blocks / blocks                      [0, 1]
  waiting,        // requests
  running,        // requests
  prefill,        // tokens
  decode,         // tokens
};
inline constexpr std::size_t kSeries = 8;

[[nodiscard]] std::string_view name(Series series);  // "utilization", "prefix hit rate", ...
[[nodiscard]] bool is_share(Series series);          // on an axis of 0..100 %; the others on one up to their maximum

// Kinds of events that the timeline marks.
enum class Mark : std::uint8_t { preemption, eviction, refusal, copy };
inline constexpr std::size_t kMarks = 4;
[[nodiscard]] std::string_view name(Mark mark);

struct Timeline {
  std::vector<std::int64_t> step;                       // [steps] step number
  std::vector<std::int64_t> time_us;                    // [steps] at its end
  std::array<std::vector<float>, kSeries> series;       // [series][steps]
  std::array<std::vector<std::int32_t>, kMarks> marks;  // [mark][steps] number of such events in the step
  [[nodiscard]] std::int64_t steps() const { return static_cast<std::int64_t>(step.size()); }
  [[nodiscard]] const std::vector<float>& operator[](Series s) const { return series[static_cast<std::size_t>(s)]; }
  [[nodiscard]] const std::vector<std::int32_t>& operator[](Mark m) const { return marks[static_cast<std::size_t>(m)]; }
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

}  // namespace kvscope::viz
