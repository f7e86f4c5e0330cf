#include "viz/geometry/cell_grid.h"

#include <algorithm>
#include <cmath>

#include "viz/geometry/viewport.h"

namespace kvscope::viz {
namespace {

double gap_for(double pitch) {
  if (pitch < kSmallestCell) return 0;
  if (pitch < 10) return 1;
  if (pitch < 20) return 2;
  return pitch < 36 ? 3 : 4;
}

// Cells [first, end) of `count` along one axis that are at least partly in the window of `length` at `offset`.
std::pair<std::int64_t, std::int64_t> cut(double offset, double length, double pitch, std::int64_t count) {
  const auto first = static_cast<std::int64_t>(std::floor(offset / pitch));
  const auto end = static_cast<std::int64_t>(std::ceil((offset + length) / pitch));
  const std::int64_t from = std::clamp<std::int64_t>(first, 0, count);
  return {from, std::clamp(end, from, count)};
}

}  // namespace

QSizeF CellGrid::content() const {
  return {static_cast<double>(columns) * pitch.width(), static_cast<double>(rows) * pitch.height()};
}

double CellGrid::shorter_pitch() const {
  return std::min(pitch.width(), pitch.height());
}

QSizeF CellGrid::gap() const {
  const double gap = gap_for(shorter_pitch());
  return {gap, gap};
}

QRectF CellGrid::whole_rect(CellPlace place) const {
  const QPointF corner(static_cast<double>(place.column) * pitch.width(),
                       static_cast<double>(place.row) * pitch.height());
  return {area.topLeft() + corner - offset, pitch};
}

QRectF CellGrid::rect(CellPlace place) const {
  const QRectF whole = whole_rect(place);
  return {whole.topLeft(), whole.size() - gap()};
}

std::optional<CellPlace> CellGrid::at(QPointF point) const {
  // Half open: the pixel to the right of the area belongs to another panel.
  const QPointF inside = point - area.topLeft();
  if (inside.x() < 0 || inside.y() < 0 || inside.x() >= area.width() || inside.y() >= area.height())
    return std::nullopt;
  const QPointF content_point = inside + offset;
  const CellPlace place{static_cast<std::int64_t>(std::floor(content_point.x() / pitch.width())),
                        static_cast<std::int64_t>(std::floor(content_point.y() / pitch.height()))};
  if (place.column < 0 || place.row < 0 || place.column >= columns || place.row >= rows) return std::nullopt;
  return place;
}

CellRange CellGrid::visible() const {
  const auto [first_column, end_column] = cut(offset.x(), area.width(), pitch.width(), columns);
  const auto [first_row, end_row] = cut(offset.y(), area.height(), pitch.height(), rows);
  return {first_column, end_column, first_row, end_row};
}

Lane column_lane(const CellGrid& grid, double x, double top) {
  const double pitch = grid.pitch.width(), origin = grid.area.left() - grid.offset.x();
  const double column =
      std::clamp(std::round((std::min(x, grid.area.right()) - origin) / pitch), 1.0, static_cast<double>(grid.columns));
  double lane = origin + column * pitch - grid.gap().width() / 2;
  if (lane >= grid.area.right()) lane -= pitch;
  if (lane <= grid.area.left()) lane += pitch;
  const double bottom = grid.area.top() - grid.offset.y() + grid.content().height();
  return {lane, std::min(top, grid.area.top()), std::min(grid.area.bottom(), bottom)};
}

Lane row_lane_below(const CellGrid& grid, const QRectF& cell, double left) {
  const double right = grid.area.left() - grid.offset.x() + grid.content().width();
  return {cell.bottom() + grid.gap().height() / 2, left, std::min(grid.area.right(), right)};
}

Lane row_lane_above(const CellGrid& grid, const QRectF& cell, double left) {
  Lane lane = row_lane_below(grid, cell, left);
  lane.at = cell.top() - grid.gap().height() / 2;
  return lane;
}

double snapped_pitch(double pitch) {
  return pitch < kSmallestCell ? pitch : std::floor(pitch);
}

QRectF whole_pixels(const QRectF& rect) {
  const double left = std::ceil(rect.left()), top = std::ceil(rect.top());
  return {left, top, std::max(1.0, std::floor(rect.right()) - left), std::max(1.0, std::floor(rect.bottom()) - top)};
}

QPointF grid_offset(QPointF offset, const CellGrid& grid) {
  const QPointF clamped = clamp_offset(offset, grid.content(), grid.area.size());
  return {std::round(clamped.x()), std::round(clamped.y())};
}

QPointF offset_after_zoom(const CellGrid& before, const CellGrid& after, QPointF at) {
  const QPointF inside = at - before.area.topLeft();
  const QPointF cells((before.offset.x() + inside.x()) / before.pitch.width(),
                      (before.offset.y() + inside.y()) / before.pitch.height());
  return QPointF(cells.x() * after.pitch.width(), cells.y() * after.pitch.height()) - inside;
}

QPointF offset_to_reveal(const CellGrid& grid, CellPlace place) {
  const QRectF target = grid.whole_rect(place).translated(grid.offset - grid.area.topLeft());
  const double margin = std::min({grid.shorter_pitch() / 2, (grid.area.width() - grid.pitch.width()) / 2,
                                  (grid.area.height() - grid.pitch.height()) / 2});
  return grid_offset(offset_to_show(grid.offset, target, grid.area.size(), std::max(0.0, margin)), grid);
}

std::vector<std::int32_t> pixels_of_cells(double pitch, double offset, double scale, std::int64_t first,
                                          std::int64_t count) {
  std::vector<std::int32_t> pixels(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double place = (static_cast<double>(first + i) * pitch - offset) * scale;
    pixels[static_cast<std::size_t>(i)] = place < 0 ? -1 : static_cast<std::int32_t>(place);
  }
  return pixels;
}

std::int64_t label_step(double pitch, double needed) {
  std::int64_t step = 1;
  for (int i = 0; static_cast<double>(step) * pitch < needed && i < 54; ++i) {
    step = i % 3 == 1 ? step / 2 * 5 : step * 2;  // 1 -> 2 -> 5 -> 10
  }
  return step;
}

int digits(std::int64_t number) {
  int count = 1;
  while (number >= 10) number /= 10, ++count;
  return count;
}

}  // namespace kvscope::viz
