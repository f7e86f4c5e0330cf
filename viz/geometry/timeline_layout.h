// Where the curves of a run stand: plots over one axis of steps, lanes of marks under them, ticks, and the shape of
// each curve.
//
//   strip of the overview               view of its own
//   100 % +---------------------+ 12    legend of the shares
//         |  all curves         |       100 % +-----------------+
//     0 % +---------------------+ 0         0 +-----------------+
//         | marks, a lane a kind|       legend of the counts
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

// One place of a curve: a step, or all steps whose middles fall into one pixel column. No extreme is lost.
struct Column {
  double x = 0;  // [px] the step's middle, or the pixel column's
  float low = 0, high = 0, mean = 0;
  std::int64_t steps = 1;
  friend bool operator==(const Column&, const Column&) = default;
};
// From left to right. With at least a pixel a step, every visible step and its neighbours outside; else one for each
// pixel column that holds a step.
[[nodiscard]] std::vector<Column> columns(std::span<const float> values, const StepAxis& axis);

// What of a curve is painted, in px. Below a pixel a step, a line through every column would be noise: the line is then
// the mean of kCalm columns, and the band shows all that it leaves out.
struct Curve {
  std::vector<QPointF> line;  // from the plot's left to its right
  std::vector<QPointF> fill;  // between the line and the plot's bottom, a closed polygon; empty with the line
  std::vector<QRectF> band;  // from low to high, a column wide, neighbours of equal height joined; empty with a pixel a
                             // step or more. Never thinner than a line: a single step at the top is seen
  double band_share = 0;     // of the plot's surface that the band covers
};
inline constexpr std::size_t kCalm = 4;  // [columns]
[[nodiscard]] Curve curve(std::span<const Column> columns, const StepAxis& axis, const QRectF& plot, double top);
// Where a value stands on a plot whose axis ends at `top`; kept within the plot.
[[nodiscard]] double y_of(const QRectF& plot, double value, double top);

// --- marks -----------------------------------------------------------------------------------------------------------

// Marks that share one glyph: one step's, or those of a stretch where glyphs would overlap.
struct MarkGroup {
  double x = 0;                      // [px] the glyph's middle
  double width = 0;                  // [px] of the glyph and the count to the right of it
  std::int64_t first = 0, last = 0;  // indices of the first and the last step with a mark
  std::int64_t count = 0;            // marks; written beside the glyph when above 1
  friend bool operator==(const MarkGroup&, const MarkGroup&) = default;
};
struct GlyphSize {
  double glyph = 9;  // [px] across
  double digit = 6;  // [px] of one digit of the count
  friend bool operator==(const GlyphSize&, const GlyphSize&) = default;
};
// From left to right, none overlapping its neighbour, every visible mark in exactly one of them.
[[nodiscard]] std::vector<MarkGroup> mark_groups(std::span<const std::int32_t> counts, const StepAxis& axis,
                                                 GlyphSize size);
[[nodiscard]] QString short_count(std::int64_t count);  // at most four characters: 999, 9999, 12k, 999k, 3M

// --- the whole -------------------------------------------------------------------------------------------------------

// What the layout must know of the run.
struct TimelineNeeds {
  std::int64_t steps = 0;
  std::array<bool, kMarks> marks{};  // kinds that occur at all; the others get no lane
  int count_digits = 1;              // characters of the longest label of the axis of requests
  int token_digits = 1;              // and of tokens
  friend bool operator==(const TimelineNeeds&, const TimelineNeeds&) = default;
};

struct TimelineLayout {
  bool stacked = false;   // two plots, the view of its own
  QRectF shares, counts;  // plots; one and the same in the strip
  QRectF shares_legend;   // above its plot; empty in the strip
  QRectF counts_legend;
  std::array<QRectF, kMarks> lanes{};  // empty for a kind that does not occur or has no room
  QRectF step_labels;                  // empty where there is no room
  QRectF time_labels;
  double left_labels = 0;  // [px] between the body's left and the plots
  double right_labels = 0;
  StepAxis axis;

  // From the first plot's top to the last lane's bottom.
  [[nodiscard]] QRectF all() const;
  // The stretches of a step's line: through plots and lanes, not through the legend between two plots.
  [[nodiscard]] std::vector<QLineF> lines(double x) const;
};
[[nodiscard]] TimelineLayout timeline_layout(const QRectF& body, bool stacked, const TimelineNeeds& needs,
                                             const Viewport& viewport, double font_scale);
// The step under a point of the plots, the lanes or the axis; nothing beside them.
[[nodiscard]] std::optional<std::int64_t> step_at(const TimelineLayout& layout, QPointF at);

// A box of values beside the line at x: to the right of it, to the left where that does not fit, within `bounds`. Its
// rows stand in as many columns as the height asks for; those that the width then has no room for are left out.
struct Readout {
  QRectF box, title;
  std::vector<QRectF> rows;
};
[[nodiscard]] Readout readout(const QRectF& bounds, double x, std::size_t rows, QSizeF row, double padding);

// The index of a step's number in the timeline; nothing when the run does not have it.
[[nodiscard]] std::optional<std::int64_t> index_of(const Timeline& timeline, StepIdx step);

}  // namespace kvscope::viz
