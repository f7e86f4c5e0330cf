// The data that the timeline panel paints, computed once per run, size and zoom. It does not depend on the current
// step, so a run of a million steps plays as smoothly as a run of ten.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "viz/geometry/timeline_layout.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

inline constexpr std::array kShares{Series::utilization, Series::fragmentation, Series::hit_rate, Series::cached};
inline constexpr std::array kStripShares{Series::utilization, Series::hit_rate};
inline constexpr std::array kRequests{Series::running, Series::waiting};
inline constexpr std::array kTokens{Series::prefill, Series::decode};
inline constexpr std::array kMarkKinds{Mark::preemption, Mark::eviction, Mark::refusal, Mark::copy};
// In the order of the legends.
[[nodiscard]] std::vector<Series> shown_series(bool stacked);

constexpr std::size_t at(Series series) {
  return static_cast<std::size_t>(series);
}
constexpr std::size_t at(Mark mark) {
  return static_cast<std::size_t>(mark);
}

// Facts of the whole run.
struct RunFacts {
  double most_requests = 0, most_tokens = 0;  // maximum in a step
  std::array<std::int64_t, kMarks> totals{};  // number of marks of each kind
};

struct PreparedTimeline {
  std::int64_t revision = 0;  // changes with every change of the data
  RunFacts facts;
  TimelineLayout layout;  // with the steps of both runs if there are two: beyond its end, this one's values are 0
  CountAxes counts;       // requests at the left, tokens at the right
  std::array<Curve, kSeries> curves;
  Curve compared;  // the utilization of scene.compared_run; empty: none
  std::array<std::vector<MarkGroup>, kMarks> groups;
  [[nodiscard]] const QRectF& plot(Series series) const { return is_share(series) ? layout.shares : layout.counts; }
  [[nodiscard]] double top(Series series) const;  // of its axis
};

class TimelineCache {
 public:
  [[nodiscard]] const RunFacts& facts(const Run& run);
  [[nodiscard]] const PreparedTimeline& prepared(const QRectF& body, const Scene& scene);
  // Of the body prepared last: a footer is painted after its body and has no other way to get the body's layout.
  [[nodiscard]] bool stacked() const { return prepared_.layout.stacked; }

 private:
  // Identifies the run of the curves. The address alone is not enough: a later run may have the same address.
  struct RunKey {
    const Timeline* timeline = nullptr;
    std::int64_t steps = 0;
    std::int64_t events = 0;
    std::string name;
    std::vector<float> sample;
    friend bool operator==(const RunKey&, const RunKey&) = default;
  };
  struct SizeKey {
    QRectF body;
    bool stacked = false;
    Viewport viewport;
    double font_scale = 0;
    std::shared_ptr<const Run> compared;  // kept, so that no other one has its address
    friend bool operator==(const SizeKey&, const SizeKey&) = default;
  };
  [[nodiscard]] static RunKey key_of(const Run& run);
  // The largest values of the run and of the one that it is compared with.
  [[nodiscard]] RunFacts of_both(const Scene& scene);

  std::optional<RunKey> run_;
  std::optional<SizeKey> size_;          // nullopt: the run changed
  std::shared_ptr<const Run> measured_;  // of the last of_both()
  RunFacts of_measured_;
  PreparedTimeline prepared_;
};

// The timeline index of the current step; nullopt before the first step.
[[nodiscard]] std::optional<std::int64_t> current_index(const Scene& scene);
[[nodiscard]] double value_at(const Timeline& timeline, Series series, std::int64_t index);

}  // namespace kvscope::viz
