// The layout of the curves of a run: plots over one axis of steps, lanes of marks under them, ticks, and the shape of
// each curve.
//
//   strip of the overview               view "timeline"
//   100 % +---------------------+ 12    legend of the shares
//         |  all curves         |       100 % +-----------------+
//     0 % +---------------------+ 0         0 +-----------------+
//         | marks: lane per kind|       legend of the counts
//           0    50   100 steps       12 req. +-----------------+ 8,192 tok.
//                                             +-----------------+
//                                             | marks           |
//                                               0  50  100 steps and times
//
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <QtCore/QLineF>
#include <QtCore/QPointF>
#include <QtCore/QRectF>
#include <QtCore/QSizeF>
#include <QtCore/QString>

#include "viz/geometry/step_axis.h"
#include "viz/playback/timeline.h"

namespace kvscope::viz {

// --- curves ----------------------------------------------------------------------------------------------------------

// One point of a curve: a step, or all steps whose middles fall into one pixel column. low and high keep the extremes.
struct Column {
  double x = 0;  // [px] the middle of the step or of the pixel column
  float low = 0, high = 0, mean = 0;
  std::int64_t steps = 1;
  friend bool operator==(const Column&, const Column&) = default;
};
// From left to right. With at least one pixel per step: every visible step and the adjacent step on each side; else one
// column for each pixel column with a step.
[[nodiscard]] std::vector<Column> columns(std::span<const float> values, const StepAxis& axis);

// The painted shape of a curve, in px. With less than one pixel per step, a line through every column would be noise.
// The line is then the mean of kCalm columns, and the band shows the range from the minimum to the maximum.
struct Curve {
  std::vector<QPointF> line;  // from the plot's left to its right
  std::vector<QPointF> fill;  // closed polygon between the line and the plot's bottom; empty if the line is
  std::vector<QRectF> band;   // from low to high, one column wide, adjacent ones of equal height joined; empty with one
                              // or more pixels per step. At least as thick as a line, so that a single peak is visible
  double band_share = 0;      // share of the plot's area that the band covers
};
inline constexpr std::size_t kCalm = 4;  // [columns]
[[nodiscard]] Curve curve(std::span<const Column> columns, const StepAxis& axis, const QRectF& plot, double top);
// The y of a value on a plot whose axis ends at `top`; clamped to the plot.
[[nodiscard]] double y_of(const QRectF& plot, double value, double top);

// --- marks -----------------------------------------------------------------------------------------------------------

// Marks that share one glyph: those of one step, or of several steps whose glyphs would overlap.
struct MarkGroup {
  double x = 0;                      // [px] the glyph's middle
  double width = 0;                  // [px] of the glyph and the count to the right of it
  std::int64_t first = 0, last = 0;  // indices of the first and the last step with a mark
  std::int64_t count = 0;            // marks; written beside the glyph if above 1
  friend bool operator==(const MarkGroup&, const MarkGroup&) = default;
};
struct GlyphSize {
  double glyph = 9;  // [px] across
  double digit = 6;  // [px] of one digit of the count
  friend bool operator==(const GlyphSize&, const GlyphSize&) = default;
};
// Groups from left to right that do not overlap; every visible mark is in exactly one group.
[[nodiscard]] std::vector<MarkGroup> mark_groups(std::span<const std::int32_t> counts, const StepAxis& axis,
                                                 GlyphSize size);
[[nodiscard]] QString short_count(std::int64_t count);  // at most four characters: 999, 9999, 12k, 999k, 3M

// --- layout ----------------------------------------------------------------------------------------------------------

// The properties of the run that the layout depends on.
struct TimelineNeeds {
  std::int64_t steps = 0;
  std::array<bool, kMarks> marks{};  // kinds that occur; the others get no lane
  int count_digits = 1;              // characters of the longest label of the axis of requests
  int token_digits = 1;              // the same for the axis of tokens
  friend bool operator==(const TimelineNeeds&, const TimelineNeeds&) = default;
};

struct TimelineLayout {
  bool stacked = false;   // two plots: the view "timeline"
  QRectF shares, counts;  // plots; equal in the strip of the overview
  QRectF shares_legend;   // above its plot; empty in the strip
  QRectF counts_legend;
  std::array<QRectF, kMarks> lanes{};  // empty for a kind that does not occur, and if there is no room
  QRectF step_labels;                  // empty if there is no room
  QRectF time_labels;
  double left_labels = 0;  // [px] between the body's left and the plots
  double right_labels = 0;
  StepAxis axis;

  // From the first plot's top to the last lane's bottom.
  [[nodiscard]] QRectF all() const;
  // The segments of the vertical line at x: through plots and lanes, not through the legend between two plots.
  [[nodiscard]] std::vector<QLineF> lines(double x) const;
};
[[nodiscard]] TimelineLayout timeline_layout(const QRectF& body, bool stacked, const TimelineNeeds& needs,
                                             const Viewport& viewport, double font_scale);
// The step under a point of the plots, the lanes or the axis; nullopt elsewhere.
[[nodiscard]] std::optional<std::int64_t> step_at(const TimelineLayout& layout, QPointF at);

// A box of values beside the line at x: to the right of it, or to the left if it does not fit there; within `bounds`.
// The rows are arranged in as many columns as the height requires; columns that exceed the width are omitted.
struct Readout {
  QRectF box, title;
  std::vector<QRectF> rows;
};
[[nodiscard]] Readout readout(const QRectF& bounds, double x, std::size_t rows, QSizeF row, double padding);

// The timeline index of the step with this number; nullopt if the run does not have the step.
[[nodiscard]] std::optional<std::int64_t> index_of(const Timeline& timeline, StepIdx step);

}  // namespace kvscope::viz
