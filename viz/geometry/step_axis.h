// The x axis of a run: its steps, and which of them are visible; also round tick values for any axis. A step is a
// column [k, k + 1) of the axis and its value is drawn at the column's middle, so that a run of one step is a line
// across the plot and not a dot.
//
// A viewport's zoom is in px per step, its offset in px from the first step's left edge. Example: 200 steps over
// 1000 px fit at 5 px per step; step 3 is the column 15..20, its value is drawn at 17.5.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "viz/geometry/viewport.h"

namespace kvscope::viz {

// --- ticks -----------------------------------------------------------------------------------------------------------

// The distance between ticks: the smallest 1, 2 or 5 times a power of ten that is at least `closest` and fits at most
// `most` times into `length`. Example: (206, 5, 1) -> 50.
[[nodiscard]] double nice_step(double length, int most, double closest);
// A left and a right axis of counts that share the grid lines: both are divided into the same number of parts, each
// with its own nice step. Example: up to 6 and up to 64 in 3, 4 or 5 parts -> 4 parts, 0 2 4 6 8 and 0 20 40 60 80.
struct CountAxes {
  int parts = 1;
  double left_top = 1, right_top = 1;  // at least 1 per part
  friend bool operator==(const CountAxes&, const CountAxes&) = default;
};
// Chooses the number of parts, of those in `parts`, that leaves the smallest share of both axes empty; of equal ones,
// the first.
[[nodiscard]] CountAxes count_axes(double left_highest, double right_highest, std::span<const int> parts);

// --- the axis of steps -----------------------------------------------------------------------------------------------

struct StepAxis {
  double left = 0, width = 0;  // [px] of the plots
  double px_per_step = 0;      // 0: the run has no steps
  double offset = 0;           // [px] from the first step's left edge to `left`
  std::int64_t steps = 0;

  [[nodiscard]] double right() const { return left + width; }
  [[nodiscard]] double x(std::int64_t index) const;  // of the middle of a step's column, visible or not
  [[nodiscard]] double edge(double index) const { return left + index * px_per_step - offset; }
  // The step whose column contains x; outside all columns, the nearest step. nullopt in a run without steps.
  [[nodiscard]] std::optional<std::int64_t> at(double x) const;
  // The steps that are at least partly visible: [first, end).
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> visible() const;
  friend bool operator==(const StepAxis&, const StepAxis&) = default;
};

inline constexpr double kWidestStep = 64;  // [px] maximum px per step
[[nodiscard]] double fitting_zoom(std::int64_t steps, double width);
// The axis for a viewport. Zoom 0 is the fitting zoom; other zooms are clamped to [fitting zoom, kWidestStep], and the
// offset to the steps of the run.
[[nodiscard]] StepAxis step_axis(double left, double width, std::int64_t steps, const Viewport& viewport);
// The viewport of an axis; {} (fit) if all steps are visible.
[[nodiscard]] Viewport viewport_of(const StepAxis& axis);
[[nodiscard]] Viewport zoomed_steps(const StepAxis& axis, double factor, double x);
[[nodiscard]] Viewport scrolled_steps(const StepAxis& axis, double by);
[[nodiscard]] Viewport revealed_step(const StepAxis& axis, std::int64_t index);

// Indices of the steps that get a label: their numbers (index + first_number) are round, and labels are at least
// `label` px apart.
[[nodiscard]] std::vector<std::int64_t> step_ticks(const StepAxis& axis, std::int64_t first_number, double label);

}  // namespace kvscope::viz
