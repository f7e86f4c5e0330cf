#include "viz/geometry/attention_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

// Sizes in px at font scale 1.
constexpr double kStripLabel = 52, kStripGap = 6, kLargestStrip = 84, kSmallestStrip = 12;
constexpr double kFlowRow = 20, kFlowHead = 22, kFlowLine = 19, kBelowChart = 8;
constexpr double kHeatName = 20, kHeatNumbers = 14, kHeatLabel = 62, kHeatGap = 10, kLowestMap = 26;
constexpr double kOutputLabel = 52, kOutputGap = 10, kLowestErrors = 20, kSmallestBar = 3;

struct ColumnSize {
  FlowColumn column;
  double width;  // [px] at font scale 1
  int rank;      // columns of a higher rank go first when there is no room
};
constexpr std::array<ColumnSize, kFlowColumns> kColumnSizes{{{FlowColumn::tile, 44, 0},
                                                             {FlowColumn::keys, 88, 3},
                                                             {FlowColumn::pages, 64, 5},
                                                             {FlowColumn::largest, 78, 1},
                                                             {FlowColumn::rescale, 86, 2},
                                                             {FlowColumn::tile_sum, 78, 6},
                                                             {FlowColumn::sum, 78, 1},
                                                             {FlowColumn::share, 66, 4}}};

std::vector<FlowColumnPlace> flow_columns(double left, double width, double font_scale) {
  std::vector<ColumnSize> kept(kColumnSizes.begin(), kColumnSizes.end());
  const auto needed = [&] {
    double sum = 0;
    for (const ColumnSize& c : kept) sum += c.width * font_scale;
    return sum;
  };
  while (kept.size() > 1 && needed() > width) kept.erase(std::ranges::max_element(kept, {}, &ColumnSize::rank));
  const double stretch = std::min(1.5, std::max(1.0, width / needed()));
  std::vector<FlowColumnPlace> places;
  for (const ColumnSize& c : kept) {
    const double right = left + c.width * font_scale * stretch;
    places.push_back({c.column, left, right});
    left = right;
  }
  return places;
}

}  // namespace

QRectF FlowLayout::column_rect(std::int64_t tile) const {
  if (strips[0].isEmpty() || tiles < 1) return {};
  const double pitch = strips[0].width() / static_cast<double>(tiles);
  return {strips[0].left() + static_cast<double>(tile) * pitch, strips[0].top(), pitch,
          strips[kFlowStrips - 1].bottom() - strips[0].top()};
}

std::optional<QRectF> FlowLayout::row_rect(std::int64_t tile) const {
  if (tile < first_row || tile >= end_row) return std::nullopt;
  return QRectF(head.left(), head.bottom() + static_cast<double>(tile - first_row) * row_height, head.width(),
                row_height);
}

std::optional<std::int64_t> FlowLayout::tile_at(QPointF point) const {
  for (const QRectF& chart : {column_rect(0).united(column_rect(std::max<std::int64_t>(tiles - 1, 0)))}) {
    if (chart.isEmpty() || !chart.contains(point)) continue;
    const auto tile =
        static_cast<std::int64_t>((point.x() - chart.left()) / chart.width() * static_cast<double>(tiles));
    return std::min(tile, tiles - 1);
  }
  if (end_row > first_row && point.x() >= head.left() && point.x() < head.right() && point.y() >= head.bottom()) {
    const auto row = static_cast<std::int64_t>((point.y() - head.bottom()) / row_height);
    if (first_row + row < end_row) return first_row + row;
  }
  return std::nullopt;
}

FlowLayout flow_layout(std::int64_t tiles, std::int64_t now, int lines, const QRectF& body, double font_scale) {
  FlowLayout layout;
  layout.tiles = tiles;
  if (tiles < 1) return layout;
  const auto px = [&](double size) { return std::round(size * font_scale); };
  // The words come first, then a table of two rows, then the chart; the remaining height goes to the table.
  const double line = px(kFlowLine);
  const double words =
      std::min(line * std::clamp<double>(std::floor(0.25 * body.height() / line), 2, lines), body.height());
  layout.result = QRectF(body.left(), body.bottom() - words, body.width(), words);
  double room = body.height() - words;
  double top = body.top();
  const double least_table = px(kFlowHead) + 2 * px(kFlowRow);
  const double rows_wanted = px(kFlowHead) + static_cast<double>(tiles) * px(kFlowRow);
  const double for_chart = room - least_table - px(kBelowChart);
  const double smallest = kFlowStrips * px(kSmallestStrip) + (kFlowStrips - 1) * kStripGap;
  if (for_chart >= smallest) {
    const double wish = std::max({smallest, room - rows_wanted - px(kBelowChart), 0.38 * room});
    const double chart = std::min({for_chart, wish, kFlowStrips * px(kLargestStrip) + (kFlowStrips - 1) * kStripGap});
    const double strip = std::floor((chart - (kFlowStrips - 1) * kStripGap) / kFlowStrips);
    layout.label_right = body.left() + px(kStripLabel);
    for (QRectF& rect : layout.strips) {
      rect = QRectF(layout.label_right, top, std::max(1.0, body.right() - layout.label_right), strip);
      top += strip + kStripGap;
    }
    top += px(kBelowChart) - kStripGap;
    room -= top - body.top();
  }
  const double height = px(kFlowRow);
  const auto fitting = static_cast<std::int64_t>((room - px(kFlowHead)) / height);
  if (fitting < 1) return layout;
  layout.head = QRectF(body.left(), top, body.width(), px(kFlowHead));
  layout.columns = flow_columns(body.left(), body.width(), font_scale);
  layout.row_height = height;
  const std::int64_t shown = std::min(fitting, tiles);
  layout.first_row = std::clamp<std::int64_t>(now - 1 - shown / 2, 0, tiles - shown);
  layout.end_row = layout.first_row + shown;
  return layout;
}

ErrorsLayout errors_layout(const ErrorsSize& size, int lines, const QRectF& body, double font_scale) {
  ErrorsLayout layout;
  const auto px = [&](double length) { return std::round(length * font_scale); };
  // Where it is tight the words keep two lines, then the numbers of columns go, then the lower map.
  const double line = px(kFlowLine), gaps = 2 * kHeatGap, lowest = px(kLowestMap);
  const double name = px(kHeatName);
  double numbers = px(kHeatNumbers);
  const auto left_for_words = [&](int maps) { return body.height() - maps * (name + numbers + lowest) - gaps; };
  const double most = std::min(line * lines, std::round(0.45 * body.height()));
  if (left_for_words(2) < 2 * line) numbers = 0;
  const int maps = left_for_words(2) < 2 * line ? 1 : 2;
  const double words = std::clamp(left_for_words(maps), 0.0, most);
  layout.words = QRectF(body.left(), body.bottom() - words, body.width(), words);
  layout.label_width = std::min(px(kHeatLabel), body.width() / 3);
  const double room = body.height() - words - maps * (name + numbers) - gaps;
  if (room < 2 * kSmallestHeatCell || size.sequences < 1) return layout;
  // Each map gets what it can use at its largest cells; too little room is shared by the number of rows, with at least
  // a quarter for each.
  const double largest = kLargestHeatCell * font_scale;
  const double want_heads = static_cast<double>(size.sequences) * largest;
  const double want_elements = maps == 2 ? static_cast<double>(std::max<std::int64_t>(size.queries, 1)) * largest : 0;
  double heads = want_heads;
  if (want_heads + want_elements > room) {
    heads = maps == 1 ? room : std::clamp(room * want_heads / (want_heads + want_elements), 0.25 * room, 0.75 * room);
    heads = std::min(heads, want_heads);
    if (want_elements < room - heads) heads = std::min(want_heads, room - want_elements);
  }
  const double left = body.left() + layout.label_width, width = body.width() - layout.label_width;
  layout.head_name = QRectF(body.left(), body.top(), body.width(), name);
  layout.head_numbers = QRectF(left, layout.head_name.bottom(), width, numbers);
  layout.head_map =
      heat_grid(size.sequences, size.heads, {left, layout.head_numbers.bottom(), width, heads}, font_scale);
  if (maps == 1) return layout;
  const double below = layout.head_numbers.bottom() + heads + kHeatGap;
  layout.element_name = QRectF(body.left(), below, body.width(), name);
  layout.element_numbers = QRectF(left, layout.element_name.bottom(), width, numbers);
  layout.element_map = heat_grid(size.queries, size.dims,
                                 {left, layout.element_numbers.bottom(), width,
                                  std::max(0.0, layout.words.top() - kHeatGap - layout.element_numbers.bottom())},
                                 font_scale);
  return layout;
}

QRectF OutputLayout::bar(const QRectF& strip, std::int64_t number) const {
  return {strip.left() + static_cast<double>(number) * pitch, strip.top(), pitch, strip.height()};
}

std::optional<std::int64_t> OutputLayout::bar_at(QPointF point) const {
  const QRectF all = values.united(errors);
  if (dims < 1 || !all.contains(point)) return std::nullopt;
  const auto number = static_cast<std::int64_t>((point.x() - all.left()) / pitch);
  return number < bars() ? std::optional(number) : std::nullopt;
}

OutputLayout output_layout(std::int64_t dims, const QRectF& body, double font_scale) {
  OutputLayout layout;
  layout.dims = dims;
  layout.label_width = std::round(kOutputLabel * font_scale);
  const double width = body.width() - layout.label_width;
  if (dims < 1 || width < kSmallestBar) return layout;
  const auto most = static_cast<std::int64_t>(width / kSmallestBar);
  layout.bin = std::max<std::int64_t>(1, (dims + most - 1) / most);
  layout.pitch = width / static_cast<double>(layout.bars());
  const double errors = std::floor(0.4 * (body.height() - kOutputGap));
  const bool both = errors >= kLowestErrors * font_scale;
  layout.values = QRectF(body.left() + layout.label_width, body.top(), width,
                         both ? body.height() - kOutputGap - errors : body.height());
  if (both) layout.errors = QRectF(layout.values.left(), layout.values.bottom() + kOutputGap, width, errors);
  return layout;
}

double error_level(double ratio) {
  if (std::isnan(ratio)) return 1;
  if (!(ratio > 0)) return 0;
  return std::clamp((std::log10(ratio) + 3) / 6, 0.0, 1.0);
}

}  // namespace kvscope::viz
