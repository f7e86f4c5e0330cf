// The x axis of a run: its steps, and which of them are on screen; and nice ticks for any axis. A step is a column
// [k, k + 1) of the axis and its value stands at the column's middle, so that a run of one step is a line across the
// plot and not a dot.
//
// A viewport's zoom is px a step, its offset px from the first step's left edge. Example: 200 steps over 1000 px fit at
// 5 px a step; step 3 is the column 15..20, its value stands at 17.5.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "viz/geometry/viewport.h"

namespace kvscope::viz {

// --- ticks -----------------------------------------------------------------------------------------------------------

// The distance between ticks: 1, 2 or 5 times a power of ten, at least `closest`, that fits at most `most` times into
// `length`. Example: (206, 5, 1) -> 50.
[[nodiscard]] double nice_step(double length, int most, double closest);
// Two axes of counts side by side whose lines are the same: each ends at a multiple of its own nice step, both after as
// many of them. Example: up to 6 and up to 64 in 3, 4 or 5 parts -> 4 parts, 0 2 4 6 8 and 0 20 40 60 80.
struct CountAxes {
  int parts = 1;
  double left_top = 1, right_top = 1;  // at least 1 a part
  friend bool operator==(const CountAxes&, const CountAxes&) = default;
};
// The number of parts, of those offered, that leaves the least of both axes empty; the first of equals.
[[nodiscard]] CountAxes count_axes(double left_highest, double right_highest, std::span<const int> parts);

// --- the axis of steps -----------------------------------------------------------------------------------------------

struct StepAxis {
  double left = 0, width = 0;  // [px] of the plots
  double px_per_step = 0;      // 0: the run has no steps
  double offset = 0;           // [px] of `left` from the first step's left edge
  std::int64_t steps = 0;

  [[nodiscard]] double right() const { return left + width; }
  [[nodiscard]] double x(std::int64_t index) const;  // of the middle of a step's column, on screen or not
  [[nodiscard]] double edge(double index) const { return left + index * px_per_step - offset; }
  // The step whose column holds x; the nearest one for what lies beside them. Nothing in a run without steps.
  [[nodiscard]] std::optional<std::int64_t> at(double x) const;
  // Steps of which any part is visible, first and one past the last.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> visible() const;
  friend bool operator==(const StepAxis&, const StepAxis&) = default;
};

inline constexpr double kWidestStep = 64;  // [px] that zooming in leads to
[[nodiscard]] double fitting_zoom(std::int64_t steps, double width);
// In force for a viewport: 0 is the fitting one, and no zoom shows emptiness or steps wider than kWidestStep.
[[nodiscard]] StepAxis step_axis(double left, double width, std::int64_t steps, const Viewport& viewport);
// The viewport of an axis whose zoom or offset was asked to change; {} where everything fits.
[[nodiscard]] Viewport viewport_of(const StepAxis& axis);
[[nodiscard]] Viewport zoomed_steps(const StepAxis& axis, double factor, double x);
[[nodiscard]] Viewport scrolled_steps(const StepAxis& axis, double by);
[[nodiscard]] Viewport revealed_step(const StepAxis& axis, std::int64_t index);

// Indices of the steps that get a label, whose numbers (index + first_number) are nice, labels `label` px apart at
// least.
[[nodiscard]] std::vector<std::int64_t> step_ticks(const StepAxis& axis, std::int64_t first_number, double label);

}  // namespace kvscope::viz
