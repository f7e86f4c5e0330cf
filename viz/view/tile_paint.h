// The look of a tile's rows, the same in every panel: a hue for each page, a lightness for each row of it, a hatch on
// every second page so that hue is never alone, and the row's number where there is room. Rows to come are an
// outline, what is on its way is half filled, what is there is filled; rows that hold no token are free cells.
//
//   paint_tile_cell(painter, rect, *scene.theme, *scene.tile, row, arrival_of_chunk(tile, now, chunk));
#pragma once

#include <cstdint>

#include <QtCore/QRectF>
#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/playback/selection.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_state.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

// The fill of a row; the free cell's for a row that holds no token.
[[nodiscard]] QColor tile_row_color(const Theme& theme, const Tile& tile, std::int64_t row);
// Of the row's page; the accents of a page's box or heading.
[[nodiscard]] QColor tile_page_color(const Theme& theme, std::int64_t page);  // index into Tile::pages

// Sharp edges, no round corners: cells are a few pixels high.
void paint_tile_cell(QPainter& painter, const QRectF& rect, const Theme& theme, const Tile& tile, std::int64_t row,
                     Arrival arrival);
// What is written on such a cell.
[[nodiscard]] QColor tile_ink(const Theme& theme, const Tile& tile, std::int64_t row, Arrival arrival);

// Columns [first, first + count) of a row that is drawn as `row` and has `columns`. The whole row if these are unknown.
[[nodiscard]] QRectF part_of_row(const QRectF& row, std::int64_t first, std::int64_t count, std::int64_t columns);

// The outline of the pinned or hovered object.
void paint_tile_outline(QPainter& painter, const QRectF& rect, const Theme& theme, bool pinned);

// Whether `lit` means the object: its row, chunk, lane or register. Tokens are lit as their rows.
[[nodiscard]] bool is_lit(const Tile& tile, const LitTile& lit, const Selection& object);

}  // namespace kvscope::viz
