#include "viz/view/tile_paint.h"

#include <algorithm>
#include <cmath>

#include "viz/playback/tile_selection.h"
#include "viz/view/cell_paint.h"

namespace kvscope::viz {
namespace {

constexpr double kDarkest = 0.34, kLightest = 0.64;  // HSL lightness of a page's first and last row, dark surface
constexpr double kMoving = 0.45;                     // how much of the fill is there on the way
constexpr double kLeastOutline = 4.5;                // [px] of a side: a lower outline looks like a filled cell
constexpr double kFaint = 0.22;                      // how much of the fill such a cell has instead
constexpr double kHatch = 5;                         // [px] from line to line
constexpr std::int64_t kHues = 5;

QColor mixed_color(const QColor& a, const QColor& b, double share_of_a) {
  const auto mix = [&](double x, double y) { return static_cast<float>(share_of_a * x + (1 - share_of_a) * y); };
  return QColor::fromRgbF(mix(a.redF(), b.redF()), mix(a.greenF(), b.greenF()), mix(a.blueF(), b.blueF()));
}

// Blue and green next to each other, then amber, magenta, teal: neighbors stay apart under each color blindness
// because their lightness ramps begin anew at every page.
double hue_of(std::int64_t page) {
  constexpr std::array<double, kHues> kHue{208, 148, 36, 316, 182};
  return kHue[static_cast<std::size_t>(page % kHues)] / 360;
}

std::int64_t page_index(const Tile& tile, std::int64_t row) {
  return tile.page_of(row).value_or(0);
}

// 0 for the first row of the tile on its page, 1 for the last.
double place_on_page(const Tile& tile, std::int64_t row) {
  if (!tile.memory) {
    return tile.rows() > 1 ? static_cast<double>(row) / static_cast<double>(tile.rows() - 1) : 0;
  }
  const std::int64_t size = tile.memory->page_size;
  const std::int64_t first =
      std::max<std::int64_t>(tile.opened.first_token.value, tile.token_of(row).value / size * size);
  const std::int64_t last =
      std::min(tile.opened.first_token.value + tile.rows(), (tile.token_of(row).value / size + 1) * size) - 1;
  return last > first ? static_cast<double>(tile.token_of(row).value - first) / static_cast<double>(last - first) : 0;
}

}  // namespace

QColor tile_page_color(const Theme& theme, std::int64_t page) {
  return QColor::fromHslF(static_cast<float>(hue_of(page)), 0.5F, theme.on_dark() ? 0.55F : 0.42F);
}

QColor tile_row_color(const Theme& theme, const Tile& tile, std::int64_t row) {
  if (!tile.holds_token(row)) return theme.cell_free;
  const double at = place_on_page(tile, row);
  const double lightness = kDarkest + (kLightest - kDarkest) * at;
  return QColor::fromHslF(static_cast<float>(hue_of(page_index(tile, row))), 0.46F,
                          static_cast<float>(theme.on_dark() ? lightness : lightness + 0.12));
}

void paint_tile_cell(QPainter& painter, const QRectF& rect, const Theme& theme, const Tile& tile, std::int64_t row,
                     Arrival arrival) {
  const QColor color = tile_row_color(theme, tile, row);
  const bool token = tile.holds_token(row);
  const QColor fill = arrival == Arrival::there    ? color
                      : arrival == Arrival::moving ? mixed_color(color, theme.card, kMoving)
                                                   : theme.card;
  painter.fillRect(rect, token || arrival != Arrival::outlined ? fill : theme.card);
  const double side = std::min(rect.width(), rect.height());
  if (arrival == Arrival::there && token && page_index(tile, row) % 2 == 1 && side >= kSmallestPattern) {
    painter.save();
    painter.setClipRect(rect, Qt::IntersectClip);
    painter.setPen(QPen(with_alpha(theme.ink_on(fill), 0.16), 1));
    for (double x = std::floor(rect.left() / kHatch) * kHatch - rect.height(); x < rect.right(); x += kHatch) {
      painter.drawLine(QPointF(x, rect.bottom()), QPointF(x + rect.height(), rect.top()));
    }
    painter.restore();
  }
  if (arrival == Arrival::there) return;
  if (std::min(rect.width(), rect.height()) < kLeastOutline) {
    if (arrival == Arrival::outlined && token) painter.fillRect(rect, mixed_color(color, theme.card, kFaint));
    return;
  }
  painter.save();
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(token ? mixed_color(color, theme.card, 0.75) : theme.cell_line, 1));
  painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5));
  painter.restore();
}

QColor tile_ink(const Theme& theme, const Tile& tile, std::int64_t row, Arrival arrival) {
  if (!tile.holds_token(row)) return theme.text_quiet;
  const QColor color = tile_row_color(theme, tile, row);
  if (arrival == Arrival::there) return theme.ink_on(color);
  return readable(theme, color, arrival == Arrival::moving ? mixed_color(color, theme.card, kMoving) : theme.card);
}

QRectF part_of_row(const QRectF& row, std::int64_t first, std::int64_t count, std::int64_t columns) {
  if (columns < 1 || count < 1 || first < 0 || first >= columns) return row;
  const double column = row.width() / static_cast<double>(columns);
  const auto wide = static_cast<double>(std::min(count, columns - first));
  return {row.left() + column * static_cast<double>(first), row.top(), column * wide, row.height()};
}

void paint_tile_outline(QPainter& painter, const QRectF& rect, const Theme& theme, bool pinned) {
  painter.save();
  painter.setBrush(Qt::NoBrush);
  const double width = pinned ? 2 : 1.5;
  painter.setPen(QPen(pinned ? theme.accent : theme.hover, width));
  painter.drawRect(rect.adjusted(-width / 2, -width / 2, width / 2, width / 2));
  painter.restore();
}

bool is_lit(const Tile& tile, const LitTile& lit, const Selection& object) {
  using Kind = Selection::Kind;
  switch (object.kind) {
    case Kind::token: {
      const auto row = tile.row_of(object.seq, object.token);
      return row && std::ranges::binary_search(lit.rows, *row);
    }
    case Kind::tile_row:
      return std::ranges::binary_search(lit.rows, object.element.row);
    case Kind::tile_chunk: {
      const auto chunk = tile.chunk_of(object.element);
      return chunk && std::ranges::binary_search(lit.chunks, *chunk);
    }
    case Kind::tile_scale: {
      // A row that is lit as a whole lights all its scales, a chunk or a register the one of its elements.
      if (!tile.source.scales || !std::ranges::binary_search(lit.rows, object.element.row)) return false;
      const std::int64_t of_scale = tile.source.scales->granularity;
      const std::int64_t first = object.element.column * of_scale - (tile.memory ? tile.memory->first_column : 0);
      for (std::int64_t column = std::max<std::int64_t>(first, 0); column < std::min(first + of_scale, tile.columns());
           ++column) {
        const auto chunk = tile.chunk_of({object.element.row, column});
        if (chunk && std::ranges::binary_search(lit.chunks, *chunk)) return true;
      }
      return false;
    }
    case Kind::tile_bytes: {
      if (!std::ranges::binary_search(lit.rows, object.element.row)) return false;
      const auto column = column_of_byte(tile, object.element.column);
      const auto chunk = column ? tile.chunk_of({object.element.row, *column}) : std::nullopt;
      return chunk && std::ranges::binary_search(lit.chunks, *chunk);
    }
    case Kind::tile_lane: {
      const auto at = std::ranges::lower_bound(lit.registers, TileRegister{object.reg.wave, object.reg.lane, -1, -1});
      return at != lit.registers.end() && at->wave == object.reg.wave && at->lane == object.reg.lane;
    }
    case Kind::tile_register:
      return std::ranges::binary_search(lit.registers, object.reg);
    default:
      return false;
  }
}

}  // namespace kvscope::viz
