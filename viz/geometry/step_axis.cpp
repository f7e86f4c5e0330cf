#include "viz/geometry/step_axis.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked.h"

namespace kvscope::viz {

// --- ticks -----------------------------------------------------------------------------------------------------------

double nice_step(double length, int most, double closest) {
  const double wanted = std::max(length / std::max(most, 1), closest);
  if (!(wanted > 0) || !std::isfinite(wanted)) return 1;
  const double power = std::pow(10, std::floor(std::log10(wanted)));
  // Tolerance for rounding: 0.3 / 3 is slightly less than 0.1.
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= wanted * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

CountAxes count_axes(double left_highest, double right_highest, std::span<const int> parts) {
  CountAxes best;
  double least_empty = 0;
  for (const int n : parts) {
    const auto top = [n](double highest) { return n * nice_step(highest, n, 1); };
    const CountAxes axes{n, top(left_highest), top(right_highest)};
    const double empty = axes.left_top / std::max(left_highest, 1.0) * (axes.right_top / std::max(right_highest, 1.0));
    if (best.parts > 1 && empty >= least_empty) continue;
    best = axes;
    least_empty = empty;
  }
  return best;
}

// --- the axis of steps -----------------------------------------------------------------------------------------------

double StepAxis::x(std::int64_t index) const {
  return edge(static_cast<double>(index) + 0.5);
}

std::optional<std::int64_t> StepAxis::at(double position) const {
  if (steps == 0) return std::nullopt;
  const double index = std::floor((position - left + offset) / px_per_step);
  return static_cast<std::int64_t>(std::clamp(index, 0.0, static_cast<double>(steps - 1)));
}

std::pair<std::int64_t, std::int64_t> StepAxis::visible() const {
  if (steps == 0) return {0, 0};
  const auto all = static_cast<double>(steps);
  return {static_cast<std::int64_t>(std::clamp(std::floor(offset / px_per_step), 0.0, all)),
          static_cast<std::int64_t>(std::clamp(std::ceil((offset + width) / px_per_step), 0.0, all))};
}

double fitting_zoom(std::int64_t steps, double width) {
  return steps > 0 ? std::max(width, 1.0) / static_cast<double>(steps) : 0;
}

StepAxis step_axis(double left, double width, std::int64_t steps, const Viewport& viewport) {
  StepAxis axis{left, std::max(width, 1.0), fitting_zoom(steps, width), 0, steps};
  if (steps == 0 || viewport.zoom <= 0) return axis;
  const double fitting = axis.px_per_step;
  axis.px_per_step = std::clamp(viewport.zoom, fitting, std::max(fitting, kWidestStep));
  const double content = axis.px_per_step * static_cast<double>(steps);
  axis.offset = std::clamp(viewport.offset.x(), 0.0, std::max(content - axis.width, 0.0));
  return axis;
}

Viewport viewport_of(const StepAxis& axis) {
  if (axis.px_per_step <= fitting_zoom(axis.steps, axis.width) * (1 + 1e-9)) return {};
  return {axis.px_per_step, {axis.offset, 0}};
}

Viewport zoomed_steps(const StepAxis& axis, double factor, double x) {
  if (axis.steps == 0) return {};
  const double fitting = fitting_zoom(axis.steps, axis.width);
  const double zoom = std::clamp(axis.px_per_step * factor, fitting, std::max(fitting, kWidestStep));
  const Viewport wanted = zoomed_at({axis.px_per_step, {axis.offset, 0}}, axis.px_per_step, zoom, {x - axis.left, 0});
  return viewport_of(step_axis(axis.left, axis.width, axis.steps, wanted));
}

Viewport scrolled_steps(const StepAxis& axis, double by) {
  if (axis.steps == 0) return {};
  return viewport_of(step_axis(axis.left, axis.width, axis.steps, {axis.px_per_step, {axis.offset + by, 0}}));
}

Viewport revealed_step(const StepAxis& axis, std::int64_t index) {
  if (axis.steps == 0) return {};
  // Keeps a few columns beside the step visible, so that the next steps can be seen.
  const double margin = std::min(axis.width / 4, std::max(3 * axis.px_per_step, 24.0));
  const QRectF column(static_cast<double>(index) * axis.px_per_step, 0, axis.px_per_step, 1);
  const QPointF offset = offset_to_show({axis.offset, 0}, column, {axis.width, 1}, margin);
  return viewport_of(step_axis(axis.left, axis.width, axis.steps, {axis.px_per_step, offset}));
}

std::vector<std::int64_t> step_ticks(const StepAxis& axis, std::int64_t first_number, double label) {
  std::vector<std::int64_t> indices;
  const auto [first, end] = axis.visible();
  if (first >= end) return indices;
  const int most = static_cast<int>(std::clamp(axis.width / std::max(label, 1.0), 1.0, 100.0));
  const double closest = label / axis.px_per_step;
  // Whole numbers only: a tick every 0.5 steps would give two ticks the same label.
  const double step = nice_step(axis.width / axis.px_per_step, most, std::max(closest, 1.0));
  const auto every = static_cast<std::int64_t>(std::llround(step));
  for (std::int64_t number = round_up(first + first_number, every); number < end + first_number; number += every) {
    const std::int64_t index = number - first_number;
    if (axis.x(index) >= axis.left && axis.x(index) <= axis.right()) indices.push_back(index);
  }
  return indices;
}

}  // namespace kvscope::viz
