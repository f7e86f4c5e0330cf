#include "viz/geometry/table_layout.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked.h"

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr QSizeF kLargestFit{140, 72}, kLargest{180, 96};
constexpr double kPageNumbersHeight = 18, kNameGap = 10;
constexpr double kNameHeight = 15;  // of a line of names
constexpr double kSmallestEntry = 9, kLargestEntry = 16;
constexpr double kPageNumber = 11;        // font
constexpr double kEntryAdvance = 0.6;     // width of a digit / font size: JetBrains Mono
constexpr double kEntryCapHeight = 0.73;  // height of a digit / font size
constexpr double kEntryPadding = 4, kSmallestNumberRow = 14;

constexpr double kRoundingOfWidths = 1e-9;  // [px] the number's size is computed from the same width

std::int64_t rows_with_room(std::int64_t rows) {
  std::int64_t room = 8;
  while (room < rows) room = room % 3 == 0 ? room / 3 * 4 : room / 2 * 3;  // 8, 12, 16, 24, 32, ...
  return room;
}

double number_width(const TableSize& size, double px) {
  return digits(size.blocks) * kEntryAdvance * px + kEntryPadding;
}

// What the texts of cells at font scale 1 need when they are larger. [px]
QSizeF least_pitch(const TableSize& size, const TableLayout& usual, double font_scale) {
  QSizeF least(1, 1);
  if (usual.fit_pitch.height() >= kNameHeight) least.setHeight(std::ceil(kNameHeight * font_scale));
  if (usual.detail != TableDetail::pixels) least = least.expandedTo({kSmallestCell, kSmallestCell});
  if (usual.detail != TableDetail::numbers) return least;
  const double gap = 4;  // at most, between two cells
  return least.expandedTo({std::ceil(number_width(size, kSmallestEntry * font_scale) + gap),
                           std::ceil(kSmallestNumberRow * font_scale + gap)});
}

double largest_zoom(const TableLayout& layout, double font_scale) {
  return std::max({1.0, kLargest.width() * font_scale / layout.fit_pitch.width(),
                   kLargest.height() * font_scale / layout.fit_pitch.height()});
}

double zoom_in_force(const TableLayout& layout, double zoom, double font_scale) {
  return std::clamp(zoom, 1.0, largest_zoom(layout, font_scale));
}

}  // namespace

std::optional<std::int64_t> TableLayout::name_at(QPointF point) const {
  if (point.x() < names.left() || point.x() >= names.right()) return std::nullopt;
  const std::optional<CellPlace> at = grid.at({grid.area.left(), point.y()});
  if (!at) return std::nullopt;
  return at->row;
}

QRectF TableLayout::page_number_rect(std::int64_t page) const {
  const QRectF cell = grid.rect({page, 0});
  const double width = std::max(cell.width(), page_number_width);
  const double left = std::min(cell.center().x() - width / 2, page_numbers.right() - width);
  return {left, page_numbers.top(), width, page_numbers.height()};
}

QRectF TableLayout::name_rect(std::int64_t row) const {
  const QRectF cell = grid.rect({0, row});
  // A name higher than its row is kept visible at the lower edge; at the upper edge it extends into the empty corner.
  const double height = std::max(cell.height(), name_height);
  const double lowest = std::max(names.bottom() - height, names.top() - height / 2);
  const double top = cell.height() >= name_height ? cell.top() : std::min(cell.center().y() - height / 2, lowest);
  return {names.left(), top, names.width(), height};
}

std::vector<std::int64_t> TableLayout::named_rows() const {
  const CellRange seen = grid.visible();
  std::vector<std::int64_t> rows;
  double end = names.top() - name_height / 2;
  for (std::int64_t row = round_up(seen.first_row, name_step); row < seen.end_row; row += name_step) {
    const QRectF name = name_rect(row);
    // Skips a name that would overlap the one above after it was moved into view, and a name half scrolled out.
    if (name.top() < end - 0.5) continue;
    rows.push_back(row);
    end = name.bottom();
  }
  return rows;
}

QRectF TableLayout::name_mark(std::int64_t row) const {
  const QRectF cell = grid.rect({0, row});
  const QRectF name = QRectF(names.left(), cell.top(), names.width(), cell.height()).intersected(names);
  return name.isEmpty() ? QRectF() : QRectF(name.right() - 5, name.top(), 3, std::max(1.0, name.height()));
}

QRectF TableLayout::row_line(std::int64_t row) const {
  const QRectF whole = grid.whole_rect({0, row});
  const double height = whole.height() < 16 ? 1 : 2;
  return {grid.area.left(), whole.bottom() - height, grid.area.width(), height};
}

QPointF TableLayout::number_at(const QRectF& cell, double width) const {
  return {std::round(cell.center().x() - width / 2), std::round(cell.center().y() + kEntryCapHeight * number_px / 2)};
}

namespace {

TableLayout with_pitch(const TableSize& size, const QRectF& body, const Viewport& viewport, double font_scale,
                       QSizeF least) {
  TableLayout layout;
  CellGrid& grid = layout.grid;
  const QRectF whole = whole_pixels(body);
  const double left = std::min(std::ceil(size.name_width + kNameGap * font_scale), whole.width() - 1);
  const double top = std::min(std::ceil(kPageNumbersHeight * font_scale), whole.height() - 1);
  grid.area = whole.adjusted(left, top, 0, 0);
  layout.page_numbers = QRectF(grid.area.left(), whole.top(), grid.area.width(), top);
  layout.names = QRectF(whole.left(), grid.area.top(), left, grid.area.height());

  grid.rows = size.rows;
  grid.columns = std::max<std::int64_t>(size.columns, 1);
  const double width =
      std::min(grid.area.width() / static_cast<double>(grid.columns), kLargestFit.width() * font_scale);
  const double height =
      std::min(grid.area.height() / static_cast<double>(rows_with_room(size.rows)), kLargestFit.height() * font_scale);
  layout.fit_pitch = QSizeF(snapped_pitch(width), snapped_pitch(height)).expandedTo(least);
  const double zoom = zoom_in_force(layout, viewport.zoom, font_scale);
  const auto grown = [&](double fit, double most) { return snapped_pitch(std::max(fit, std::min(fit * zoom, most))); };
  grid.pitch = {grown(layout.fit_pitch.width(), kLargest.width() * font_scale),
                grown(layout.fit_pitch.height(), kLargest.height() * font_scale)};
  grid.offset = grid_offset(viewport.offset, grid);

  const QSizeF cell = grid.pitch - grid.gap();
  const double widest = (cell.width() - kEntryPadding) / (digits(size.blocks) * kEntryAdvance);
  layout.number_px =
      std::clamp(std::min(cell.height() * 0.5, widest), kSmallestEntry * font_scale, kLargestEntry * font_scale);
  if (grid.shorter_pitch() < kSmallestCell) {
    layout.detail = TableDetail::pixels;
  } else {
    const bool room = cell.width() >= number_width(size, layout.number_px) - kRoundingOfWidths &&
                      cell.height() >= kSmallestNumberRow * font_scale;
    layout.detail = room ? TableDetail::numbers : TableDetail::cells;
  }
  layout.page_number_width = digits(grid.columns - 1) * kEntryAdvance * kPageNumber * font_scale;
  layout.name_height = kNameHeight * font_scale;
  layout.page_step = label_step(grid.pitch.width(), layout.page_number_width + kNameGap);
  layout.name_step = label_step(grid.pitch.height(), layout.name_height);
  return layout;
}

}  // namespace

TableLayout table_layout(const TableSize& size, const QRectF& body, const Viewport& viewport, double font_scale) {
  const QSizeF least =
      font_scale > 1 ? least_pitch(size, with_pitch(size, body, {}, 1, {1, 1}), font_scale) : QSizeF(1, 1);
  return with_pitch(size, body, viewport, font_scale, least);
}

Viewport table_zoomed(const TableSize& size, const QRectF& body, const Viewport& viewport, double font_scale,
                      double factor, QPointF at) {
  const TableLayout before = table_layout(size, body, viewport, font_scale);
  const double to =
      std::min(zoom_in_force(before, viewport.zoom, font_scale) * factor, largest_zoom(before, font_scale));
  if (to <= 1) return {};
  const TableLayout after = table_layout(size, body, {to, {0, 0}}, font_scale);
  const QPointF offset = offset_after_zoom(before.grid, after.grid, at);
  return {to, clamp_offset(offset, after.grid.content(), after.grid.area.size())};
}

Viewport table_scrolled(const TableLayout& layout, const Viewport& viewport, QPointF by) {
  const QSizeF content = layout.grid.content(), window = layout.grid.area.size();
  return {viewport.zoom, clamp_offset(clamp_offset(viewport.offset, content, window) + by, content, window)};
}

Viewport table_revealing(const TableLayout& layout, const Viewport& viewport, CellPlace place) {
  const QPointF offset = offset_to_reveal(layout.grid, place);
  return offset == layout.grid.offset ? viewport : Viewport{viewport.zoom, offset};
}

}  // namespace kvscope::viz
