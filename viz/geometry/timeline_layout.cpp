#include "viz/geometry/timeline_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {

// --- curves ----------------------------------------------------------------------------------------------------------

std::vector<Column> columns(std::span<const float> values, const StepAxis& axis) {
  std::vector<Column> result;
  auto [first, end] = axis.visible();
  if (first >= end) return result;
  if (axis.px_per_step >= 1) {
    first = std::max<std::int64_t>(first - 1, 0);
    end = std::min(end + 1, axis.steps);
    for (std::int64_t i = first; i < end; ++i) {
      const float value = values[static_cast<std::size_t>(i)];
      result.push_back({axis.x(i), value, value, value, 1});
    }
    return result;
  }
  // A partly visible step whose middle is outside the plot counts for the first or last column.
  const auto last_column = static_cast<std::int64_t>(std::ceil(axis.width)) - 1;
  std::int64_t i = first;
  for (std::int64_t c = 0; c <= last_column && i < end; ++c) {
    const double next = std::ceil((static_cast<double>(c + 1) + axis.offset) / axis.px_per_step - 0.5);
    const std::int64_t stop = c == last_column ? end : std::clamp(static_cast<std::int64_t>(next), i, end);
    if (stop == i) continue;
    float low = values[static_cast<std::size_t>(i)], high = low;
    double sum = 0;
    const std::int64_t steps = stop - i;
    for (; i < stop; ++i) {
      const float value = values[static_cast<std::size_t>(i)];
      low = std::min(low, value);
      high = std::max(high, value);
      sum += static_cast<double>(value);
    }
    result.push_back({axis.left + static_cast<double>(c) + 0.5, low, high,
                      static_cast<float>(sum / static_cast<double>(steps)), steps});
  }
  return result;
}

double y_of(const QRectF& plot, double value, double top) {
  return plot.bottom() - plot.height() * std::clamp(top > 0 ? value / top : 0, 0.0, 1.0);
}

namespace {

constexpr double kThinnest = 1.5;  // [px] minimum height of a band: that of a line

// The mean of a few columns, weighted by their numbers of steps.
QPointF calm_point(std::span<const Column> columns, const QRectF& plot, double top) {
  double sum = 0, steps = 0;
  for (const Column& column : columns) {
    sum += static_cast<double>(column.mean) * static_cast<double>(column.steps);
    steps += static_cast<double>(column.steps);
  }
  return {(columns.front().x + columns.back().x) / 2, y_of(plot, sum / steps, top)};
}

void add_band(Curve& curve, const Column& column, const QRectF& plot, double top) {
  double high = y_of(plot, static_cast<double>(column.high), top);
  double low = y_of(plot, static_cast<double>(column.low), top);
  curve.band_share += (low - high) / (plot.height() * plot.width());
  if (low - high < kThinnest) {
    const double middle = (low + high) / 2;
    high = middle - kThinnest / 2;
    low = middle + kThinnest / 2;
  }
  const QRectF bar(QPointF(column.x - 0.5, high), QPointF(column.x + 0.5, low));
  if (!curve.band.empty() && curve.band.back().top() == bar.top() && curve.band.back().bottom() == bar.bottom()) {
    curve.band.back().setRight(bar.right());
  } else {
    curve.band.push_back(bar);
  }
}

}  // namespace

Curve curve(std::span<const Column> columns, const StepAxis& axis, const QRectF& plot, double top) {
  Curve curve;
  if (columns.empty()) return curve;
  const bool dense = axis.px_per_step < 1;
  const std::size_t bucket = dense ? kCalm : 1;
  for (std::size_t c = 0; c < columns.size(); c += bucket) {
    curve.line.push_back(calm_point(columns.subspan(c, std::min(bucket, columns.size() - c)), plot, top));
  }
  if (curve.line.front().x() > axis.left) curve.line.insert(curve.line.begin(), {axis.left, curve.line.front().y()});
  if (curve.line.back().x() < axis.right()) curve.line.emplace_back(axis.right(), curve.line.back().y());

  curve.fill = curve.line;
  curve.fill.emplace_back(curve.line.back().x(), plot.bottom());
  curve.fill.emplace_back(curve.line.front().x(), plot.bottom());
  if (!dense) return curve;
  for (const Column& column : columns) add_band(curve, column, plot, top);
  return curve;
}

// --- marks -----------------------------------------------------------------------------------------------------------

QString short_count(std::int64_t count) {
  if (count < 10'000) return QString::number(count);
  constexpr std::array kUnits{'k', 'M', 'G', 'T'};
  for (const char unit : kUnits) {
    count /= 1000;
    if (count < 1000) return QString::number(count) + QLatin1Char(unit);
  }
  return QStringLiteral("999T");
}

namespace {

constexpr double kDenseBins = 3;    // factor by which bins are wider if most would be full
constexpr double kBesideGlyph = 2;  // [px] between a glyph and its count, and after it

double group_width(std::int64_t count, GlyphSize size) {
  const double number = count > 1 ? static_cast<double>(short_count(count).size()) * size.digit + kBesideGlyph : 0;
  return size.glyph + number;
}

// A bin: a range of the axis whose marks are drawn either as one glyph per step or as one glyph in total.
struct Bin {
  double left = 0, right = 0;  // [px]
  std::vector<MarkGroup> items;
};

// Whether every item finds a place at most its own width away from its step.
bool spread_out(Bin& bin, GlyphSize size) {
  double free_from = bin.left;
  for (MarkGroup& item : bin.items) {
    const double wanted = item.x - size.glyph / 2;
    const double latest = bin.right - kBesideGlyph - item.width;
    const double left = std::max(std::min(wanted, latest), free_from);
    if (left > latest || std::abs(left - wanted) > item.width) return false;
    item.x = left + size.glyph / 2;
    free_from = left + item.width + kBesideGlyph;
  }
  return true;
}

MarkGroup merged(const Bin& bin, GlyphSize size) {
  MarkGroup group = bin.items.front();
  group.last = bin.items.back().last;
  for (std::size_t i = 1; i < bin.items.size(); ++i) group.count += bin.items[i].count;
  group.width = group_width(group.count, size);
  const double earliest = bin.left + size.glyph / 2;
  const double latest = bin.right - kBesideGlyph - group.width + size.glyph / 2;
  group.x = std::max(std::min(group.x, latest), earliest);
  return group;
}

}  // namespace

std::vector<MarkGroup> mark_groups(std::span<const std::int32_t> counts, const StepAxis& axis, GlyphSize size) {
  std::vector<MarkGroup> groups;
  const auto [first, end] = axis.visible();
  if (first >= end) return groups;
  // Bins are ranges of the run, not of the screen, so that scrolling does not regroup the marks. They divide the run
  // evenly; each is wide enough for a glyph and four characters.
  const double content = axis.px_per_step * static_cast<double>(axis.steps);
  const double narrowest = size.glyph + 4 * size.digit + 2 * kBesideGlyph;
  const auto marked = static_cast<double>(std::ranges::count_if(counts, [](std::int32_t n) { return n > 0; }));
  // Very frequent marks need fewer, wider bins: numbers without a gap between them cannot be read.
  const double least = marked * narrowest > content / 2 ? kDenseBins * narrowest : narrowest;
  const double bins = std::clamp(std::floor(content / least), 1.0, static_cast<double>(axis.steps));
  const double width = content / bins;
  // The first step whose middle is in a bin or after it.
  const auto start_of = [&](double bin) {
    const double index = std::ceil(bin * width / axis.px_per_step - 0.5);
    return static_cast<std::int64_t>(std::clamp(index, 0.0, static_cast<double>(axis.steps)));
  };
  const auto bin_of = [&](std::int64_t index) {
    return std::clamp(std::floor((static_cast<double>(index) + 0.5) * axis.px_per_step / width), 0.0, bins - 1);
  };
  for (double b = std::max(bin_of(first) - 1, 0.0); b <= std::min(bin_of(end - 1) + 1, bins - 1); ++b) {
    Bin bin{axis.left - axis.offset + b * width, axis.left - axis.offset + (b + 1) * width, {}};
    const std::int64_t stop = b == bins - 1 ? axis.steps : start_of(b + 1);
    for (std::int64_t i = b == 0 ? 0 : start_of(b); i < stop; ++i) {
      const std::int64_t count = counts[static_cast<std::size_t>(i)];
      if (count > 0) bin.items.push_back({axis.x(i), group_width(count, size), i, i, count});
    }
    if (bin.items.empty()) continue;
    const MarkGroup one = merged(bin, size);
    if (spread_out(bin, size)) {
      groups.insert(groups.end(), bin.items.begin(), bin.items.end());
    } else {
      groups.push_back(one);
    }
  }
  // The boundaries of bins must not be visible: the glyph of a single step moves towards its step until it meets an
  // adjacent glyph.
  for (std::size_t g = 0; g < groups.size(); ++g) {
    MarkGroup& group = groups[g];
    if (group.first != group.last) continue;
    const double from = g == 0 ? axis.edge(0) + size.glyph / 2 : groups[g - 1].x + groups[g - 1].width + kBesideGlyph;
    const double to = g + 1 == groups.size() ? axis.edge(static_cast<double>(axis.steps)) + size.glyph / 2
                                             : groups[g + 1].x - kBesideGlyph;
    group.x = std::max(std::min(axis.x(group.first), to - group.width), from);
  }
  // Removes the groups of the outermost bins that are not visible.
  std::erase_if(groups, [end = end, first = first](const MarkGroup& g) { return g.last < first || g.first >= end; });
  return groups;
}

// --- layout ----------------------------------------------------------------------------------------------------------

namespace {

// Sizes in px at font scale 1.
constexpr double kDigit = 6.6;         // of the mono font at 11 px: 0.6 em
constexpr double kBesideLabel = 8;     // between a plot and the labels of its axis
constexpr double kStackedGutter = 92;  // names of lanes and of axes
constexpr double kTopInset = 7;        // half a label above the topmost line
constexpr double kLegend = 26;         // a line of a legend above its plot
constexpr double kWideLegend = 760;    // minimum width for a legend of one line, with larger text than normal
constexpr double kBetweenPlots = 14;
constexpr double kStripLane = 13, kStackedLane = 19;
constexpr double kAround = 4;  // between the plot and the lanes or labels below it
constexpr double kStepLabels = 18, kTimeLabels = 16;
constexpr double kLowestPlot = 36;                               // below this height, the parts around it are omitted
constexpr double kLowestStacked = 280, kNarrowestStacked = 300;  // a body smaller than this has a single plot

// Lanes for the kinds that occur, from `top` down; none when `lane` is 0.
std::array<QRectF, kMarks> lanes_below(double left, double width, double top, double lane, const TimelineNeeds& needs) {
  std::array<QRectF, kMarks> lanes{};
  for (std::size_t m = 0; m < kMarks && lane > 0; ++m) {
    if (!needs.marks[m]) continue;
    lanes[m] = QRectF(left, top, width, lane);
    top += lane;
  }
  return lanes;
}

}  // namespace

QRectF TimelineLayout::all() const {
  QRectF all = shares.united(counts);
  for (const QRectF& lane : lanes) all = lane.isEmpty() ? all : all.united(lane);
  return all;
}

std::vector<QLineF> TimelineLayout::lines(double x) const {
  if (!stacked) return {{x, all().top(), x, all().bottom()}};
  return {{x, shares.top(), x, shares.bottom()}, {x, counts.top(), x, all().bottom()}};
}

TimelineLayout timeline_layout(const QRectF& body, bool stacked, const TimelineNeeds& needs, const Viewport& viewport,
                               double font_scale) {
  const auto px = [font_scale](double size) { return std::round(size * font_scale); };
  const auto labels = [&](int characters) { return px(characters * kDigit + kBesideLabel); };
  TimelineLayout layout;
  layout.stacked =
      stacked && body.height() >= kLowestStacked * font_scale && body.width() >= kNarrowestStacked * font_scale;
  layout.left_labels = layout.stacked ? px(kStackedGutter) : labels(5);  // "100 %"
  layout.right_labels = labels(std::max(2, layout.stacked ? needs.token_digits : needs.count_digits));
  const double left = std::round(body.left() + layout.left_labels);
  const double width = std::max(std::round(body.right() - layout.right_labels) - left, 1.0);
  layout.axis = step_axis(left, width, needs.steps, viewport);

  const auto kinds = static_cast<double>(std::ranges::count(needs.marks, true));
  const double top = std::round(body.top()), bottom = std::floor(body.bottom());
  double lane = px(layout.stacked ? kStackedLane : kStripLane);
  double steps = px(kStepLabels), times = layout.stacked ? px(kTimeLabels) : 0;
  const double legend = font_scale > 1 && width < kWideLegend * font_scale ? 2 * px(kLegend) : px(kLegend);
  const double above = layout.stacked ? 2 * legend + px(kBetweenPlots) : px(kTopInset);
  const auto left_over = [&] {
    return bottom - top - above - steps - times - (lane > 0 ? kinds * lane : 0) - px(kAround);
  };
  if (left_over() < px(kLowestPlot)) lane = 0;
  if (left_over() < px(kLowestPlot)) steps = 0;
  const double plots = std::max(left_over(), 1.0);

  double y = top;
  if (layout.stacked) {
    const double upper = std::floor(plots / 2);
    layout.shares_legend = QRectF(left, y, width, legend);
    layout.shares = QRectF(left, y + legend, width, upper);
    y = layout.shares.bottom() + px(kBetweenPlots);
    layout.counts_legend = QRectF(left, y, width, legend);
    layout.counts = QRectF(left, y + legend, width, plots - upper);
    y = layout.counts.bottom();
  } else {
    layout.shares = layout.counts = QRectF(left, y + above, width, plots);
    y = layout.shares.bottom();
  }
  if (lane > 0 && kinds > 0) {
    y += px(kAround);
    layout.lanes = lanes_below(left, width, y, lane, needs);
    y += kinds * lane;
  } else {
    y += px(kAround);
  }
  if (steps > 0) layout.step_labels = QRectF(left, y, width, steps);
  if (times > 0) layout.time_labels = QRectF(left, y + steps, width, times);
  return layout;
}

std::optional<std::int64_t> step_at(const TimelineLayout& layout, QPointF at) {
  const QRectF all = layout.all().united(layout.step_labels).united(layout.time_labels);
  return all.contains(at) ? layout.axis.at(at.x()) : std::nullopt;
}

Readout readout(const QRectF& bounds, double x, std::size_t rows, QSizeF row, double padding) {
  const auto count = [](double room, std::size_t most) {
    return static_cast<std::size_t>(std::clamp(std::floor(room), 0.0, static_cast<double>(most)));
  };
  const double between = 2 * padding;
  const std::size_t below = count((bounds.height() - 2 * padding) / row.height() - 1, rows);  // the title takes one
  const std::size_t beside = count((bounds.width() - 2 * padding + between) / (row.width() + between), rows);
  const std::size_t shown = std::min(rows, below * beside);
  const auto columns = static_cast<double>(shown == 0 ? 1 : (shown + below - 1) / below);
  const auto lines = static_cast<double>(std::min(shown, below) + 1);
  const double across = columns * (row.width() + between) - between;
  const QSizeF size(across + 2 * padding, lines * row.height() + 2 * padding);

  const double right = x + padding, left = x - padding - size.width();
  const double wanted = right + size.width() <= bounds.right() ? right : left;
  const QPointF corner(std::max(std::min(wanted, bounds.right() - size.width()), bounds.left()), bounds.top());
  Readout readout{{corner, size}, {corner + QPointF(padding, padding), QSizeF(across, row.height())}, {}};
  for (std::size_t i = 0; i < shown; ++i) {
    const QPointF at(static_cast<double>(i / below) * (row.width() + between),
                     static_cast<double>(i % below + 1) * row.height());
    readout.rows.emplace_back(readout.title.topLeft() + at, row);
  }
  return readout;
}

std::optional<std::int64_t> index_of(const Timeline& timeline, StepIdx step) {
  const auto found = std::lower_bound(timeline.step.begin(), timeline.step.end(), step.value);
  if (found == timeline.step.end() || *found != step.value) return std::nullopt;
  return found - timeline.step.begin();
}

}  // namespace kvscope::viz
