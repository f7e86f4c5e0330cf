// The layout of the line above the cards: the run's name and facts at the left, the scrub bar and its counter at the
// right.
//
//   | name   facts, elided . . . .   ======o------  128 / 205 |
//
// In a body with room for two lines of text the facts are below the name.
// The bar shows the steps of the run: its left end is the first step, its right end the last. The state before the
// first step is also at the left end.
// Example: 5 steps on a bar from 100 to 500: step 1 is at 200, and every x from 150 up to 250 selects it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <QtCore/QRectF>

namespace kvscope::viz {

struct HeaderLayout {
  QRectF title;       // [px] the name, elided if it does not fit
  QRectF facts;       // [px] beside it, or below it; empty if there is no room for a word
  QRectF bar;         // [px] the thin line of the scrub bar
  QRectF grip;        // [px] where the pointer can drag: the bar and some px around it
  QRectF counter;     // [px] "128 / 205", right-aligned
  double handle = 0;  // [px] radius of the handle
};

// The widths are those of the texts as painted at this font scale. [px]
[[nodiscard]] HeaderLayout header_layout(const QRectF& whole, double font_scale, double title_width,
                                         double counter_width);

// The index of the step at x, of `steps` steps: 0 to the left of the bar, steps - 1 to the right of it.
// Precondition (caller): steps >= 1.
[[nodiscard]] std::int64_t step_at(const HeaderLayout& layout, double x, std::int64_t steps);
[[nodiscard]] double step_x(const HeaderLayout& layout, std::int64_t step, std::int64_t steps);

// The x of a tick for each step k with counts[k] > 0. Steps on the same pixel share one tick, so there are at most as
// many ticks as the bar has pixels.
[[nodiscard]] std::vector<double> bar_ticks(const HeaderLayout& layout, std::span<const std::int32_t> counts);

}  // namespace kvscope::viz
