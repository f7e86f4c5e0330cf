#include "viz/view/timeline_prepare.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "viz/view/time_text.h"
#include "viz/view/timeline_legend.h"

namespace kvscope::viz {
namespace {

constexpr std::size_t kSamples = 16;  // samples of each curve in a run's key
// The possible numbers of parts of an axis of counts. In the strip it shares the lines of 0, 50 and 100 %.
constexpr std::array kStackedParts{3, 4, 5};
constexpr std::array kStripParts{2, 4};

RunFacts measure(const Timeline& timeline) {
  RunFacts facts;
  const auto highest = [&](std::span<const Series> of) {
    float high = 0;
    for (const Series series : of) {
      for (const float value : timeline[series]) high = std::max(high, value);
    }
    return static_cast<double>(high);
  };
  facts.most_requests = highest(kRequests);
  facts.most_tokens = highest(kTokens);
  for (const Mark mark : kMarkKinds) {
    facts.totals[at(mark)] = std::accumulate(timeline[mark].begin(), timeline[mark].end(), std::int64_t{0});
  }
  return facts;
}

// Both runs have one axis if they begin with the same step: as long as the longer one.
std::int64_t steps_of_axis(const Timeline& timeline, const Run* other) {
  const std::int64_t steps = timeline.steps();
  if (other == nullptr || steps == 0 || other->timeline().steps() == 0) return steps;
  return other->timeline().step.front() == timeline.step.front() ? std::max(steps, other->timeline().steps()) : steps;
}

// As many values as the axis has steps: after its end a run has none.
template <class T>
std::span<const T> with_zeros(const std::vector<T>& values, std::int64_t steps, std::vector<T>& storage) {
  if (std::ssize(values) == steps) return values;
  storage = values;
  storage.resize(static_cast<std::size_t>(steps));
  return storage;
}

// [steps] At the end of each step from `first`; 0 before the first step of `other` and after its last.
std::vector<float> utilization_at(std::int64_t first, std::int64_t steps, const Timeline& other) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(steps));
  std::size_t next = 0;  // the first row of `other` that is later than the step
  for (std::int64_t step = first; step < first + steps; ++step) {
    while (next < other.step.size() && other.step[next] <= step) ++next;
    const bool within = next > 0 && step <= other.step.back();
    values.push_back(within ? other[Series::utilization][next - 1] : 0);
  }
  return values;
}

int digits(double number) {
  return static_cast<int>(number_text(std::llround(number)).size());
}

}  // namespace

std::vector<Series> shown_series(bool stacked) {
  std::vector<Series> shown;
  shown.reserve(kSeries);
  const auto add = [&](std::span<const Series> more) { std::ranges::copy(more, std::back_inserter(shown)); };
  stacked ? add(kShares) : add(kStripShares);
  add(kRequests);
  if (stacked) add(kTokens);
  return shown;
}

double PreparedTimeline::top(Series series) const {
  if (is_share(series)) return 1;
  return series == Series::running || series == Series::waiting ? counts.left_top : counts.right_top;
}

TimelineCache::RunKey TimelineCache::key_of(const Run& run) {
  const Timeline& timeline = run.timeline();
  RunKey key{&timeline, timeline.steps(), run.facts().events, run.facts().name, {}};
  const std::size_t steps = timeline.step.size();
  for (std::size_t i = 0; i < steps; i += steps / kSamples + 1) {
    for (const auto& values : timeline.series) key.sample.push_back(values[i]);
  }
  return key;
}

const RunFacts& TimelineCache::facts(const Run& run) {
  RunKey key = key_of(run);
  if (run_ == key) return prepared_.facts;
  prepared_.facts = measure(run.timeline());
  run_ = std::move(key);
  size_.reset();
  return prepared_.facts;
}

RunFacts TimelineCache::of_both(const Scene& scene) {
  RunFacts both = facts(scene.run());
  if (scene.compared_run == nullptr) return both;
  if (measured_ != scene.compared_run) {
    measured_ = scene.compared_run;
    of_measured_ = measure(measured_->timeline());
  }
  both.most_requests = std::max(both.most_requests, of_measured_.most_requests);
  both.most_tokens = std::max(both.most_tokens, of_measured_.most_tokens);
  return both;
}

const PreparedTimeline& TimelineCache::prepared(const QRectF& body, const Scene& scene) {
  const RunFacts of_run = of_both(scene);
  const bool stacked = scene.view == View::timeline;
  const SizeKey key{body, stacked, scene.viewport_of(PanelId::timeline), scene.font_scale, scene.compared_run};
  if (size_ == key) return prepared_;
  size_ = key;

  const Timeline& timeline = scene.run().timeline();
  ++prepared_.revision;
  const auto axes = [&](bool two_plots) {
    return two_plots ? count_axes(of_run.most_requests, of_run.most_tokens, kStackedParts)
                     : count_axes(of_run.most_requests, of_run.most_requests, kStripParts);
  };
  prepared_.counts = axes(stacked);
  const std::int64_t steps = steps_of_axis(timeline, scene.compared_run.get());
  TimelineNeeds needs{steps, {}, digits(prepared_.counts.left_top), digits(prepared_.counts.right_top)};
  for (std::size_t m = 0; m < kMarks; ++m) needs.marks[m] = of_run.totals[m] > 0;
  prepared_.layout = timeline_layout(body, stacked, needs, key.viewport, scene.font_scale);
  if (stacked && !prepared_.layout.stacked) prepared_.counts = axes(false);  // the body is too small for two plots
  const StepAxis& axis = prepared_.layout.axis;
  prepared_.curves = {};
  for (const Series series : shown_series(prepared_.layout.stacked)) {
    std::vector<float> storage;
    prepared_.curves[at(series)] = curve(columns(with_zeros(timeline[series], steps, storage), axis), axis,
                                         prepared_.plot(series), prepared_.top(series));
  }
  prepared_.compared = {};
  if (scene.compared_run != nullptr && timeline.steps() > 0) {
    const std::vector<float> values = utilization_at(timeline.step.front(), steps, scene.compared_run->timeline());
    prepared_.compared = curve(columns(values, axis), axis, prepared_.plot(Series::utilization), 1);
  }
  const GlyphSize size{scene.px(kGlyph), scene.px(kLabelFont) * 0.6};
  for (const Mark mark : kMarkKinds) {
    std::vector<std::int32_t> storage;
    prepared_.groups[at(mark)] = mark_groups(with_zeros(timeline[mark], steps, storage), axis, size);
  }
  return prepared_;
}

std::optional<std::int64_t> current_index(const Scene& scene) {
  const std::int64_t row = scene.cursor->row();
  return row > 0 ? std::optional(row - 1) : std::nullopt;
}

double value_at(const Timeline& timeline, Series series, std::int64_t index) {
  return static_cast<double>(timeline[series][static_cast<std::size_t>(index)]);
}

}  // namespace kvscope::viz
