#include "viz/geometry/heat_grid.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

struct HeatAxis {
  double pitch = 0;
  std::int64_t bin = 1;
};

HeatAxis heat_axis(std::int64_t values, double room, double largest) {
  const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(room / kSmallestHeatCell));
  HeatAxis axis;
  axis.bin = std::max<std::int64_t>(1, (values + most - 1) / most);
  const std::int64_t cells = (values + axis.bin - 1) / axis.bin;
  axis.pitch = std::min(largest, room / static_cast<double>(cells));
  // Whole pixels keep the gaps between cells equal; cells of a few pixels would lose too much of the room.
  if (axis.pitch >= 8) axis.pitch = std::floor(axis.pitch);
  return axis;
}

}  // namespace

QRectF HeatGrid::rect(HeatCell at) const {
  return {area.left() + static_cast<double>(at.column) * cell.width(),
          area.top() + static_cast<double>(at.row) * cell.height(), cell.width(), cell.height()};
}

std::optional<HeatCell> HeatGrid::at(QPointF point) const {
  if (area.isEmpty() || point.x() < area.left() || point.y() < area.top()) return std::nullopt;
  const HeatCell found{static_cast<std::int64_t>((point.y() - area.top()) / cell.height()),
                       static_cast<std::int64_t>((point.x() - area.left()) / cell.width())};
  if (found.row >= drawn_rows() || found.column >= drawn_columns()) return std::nullopt;
  return found;
}

HeatGrid heat_grid(std::int64_t rows, std::int64_t columns, const QRectF& room, double font_scale) {
  HeatGrid grid;
  grid.rows = std::max<std::int64_t>(rows, 0);
  grid.columns = std::max<std::int64_t>(columns, 0);
  if (rows < 1 || columns < 1 || room.width() < kSmallestHeatCell || room.height() < kSmallestHeatCell) return grid;
  const double largest = kLargestHeatCell * font_scale;
  const HeatAxis across = heat_axis(columns, room.width(), largest), down = heat_axis(rows, room.height(), largest);
  grid.row_bin = down.bin;
  grid.column_bin = across.bin;
  grid.cell = QSizeF(across.pitch, down.pitch);
  grid.area = QRectF(room.topLeft(), QSizeF(across.pitch * static_cast<double>(grid.drawn_columns()),
                                            down.pitch * static_cast<double>(grid.drawn_rows())));
  return grid;
}

}  // namespace kvscope::viz
