// Where the line above the cards stands: the run's name and facts at the left, the scrub bar and its counter at the
// right.
//
//   | name   facts, elided . . . .   ======o------  128 / 205 |
//
// The bar stands for the steps of the run, first to last: its left end is the first, its right end the last. The state
// before the first step has no place of its own and stands at the left end.
// Example: 5 steps on a bar from 100 to 500: step 1 stands at 200, and every x from 150 up to 250 leads to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <QtCore/QRectF>

namespace kvscope::viz {

struct HeaderLayout {
  QRectF title;       // [px] the name, elided where it does not fit
  QRectF facts;       // beside it; empty where there is no room for a word
  QRectF bar;         // the line of the scrub bar: thin
  QRectF grip;        // what the pointer may take: the bar and some px around it
  QRectF counter;     // "128 / 205", right-aligned
  double handle = 0;  // radius of the handle
};

// Widths of the texts as they will be painted, at this font scale. [px]
[[nodiscard]] HeaderLayout header_layout(const QRectF& body, double font_scale, double title_width,
                                         double counter_width);

// Of `steps` steps, index 0 the first; precondition (caller): steps >= 1. Left of the bar: the first; right: the last.
[[nodiscard]] std::int64_t step_at(const HeaderLayout& layout, double x, std::int64_t steps);
[[nodiscard]] double step_x(const HeaderLayout& layout, std::int64_t step, std::int64_t steps);

// Where something happened, for a tick each: `counts[k]` times in step k. Steps that fall on one pixel are one tick, so
// there are never more than the bar is wide.
[[nodiscard]] std::vector<double> bar_ticks(const HeaderLayout& layout, std::span<const std::int32_t> counts);

}  // namespace kvscope::viz
