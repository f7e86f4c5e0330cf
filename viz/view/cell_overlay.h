// What lights up in a grid of cells: the selection that is pinned, and what the pointer is over. Both may be there at
// once and look different: pinned is a full accent line, hovered a thin one with a wash.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/geometry/cell_grid.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

enum class LitHow : std::uint8_t { pinned, hovered };

struct LitCells {
  std::vector<CellPlace> cells;  // in reading order: runs of them are painted at once
  std::optional<CellPlace> one;  // the one that is meant among them: painted strongest
};

// Outlines from kSmallestOutline on, filled cells below; only what the grid's area shows.
void paint_lit(QPainter& painter, const CellGrid& grid, const LitCells& lit, LitHow how, const Theme& theme);

// A few lines in the middle of a panel that has nothing to show, and why.
void paint_message(QPainter& painter, const QRectF& body, const QString& text, const Theme& theme, double font_scale);

}  // namespace kvscope::viz
